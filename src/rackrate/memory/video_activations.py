"""Activations of video models in inference: denoisers over all frames at once, decoders over a few at a time.

Counted on the classes of diffusers 0.42 on tensors without values, with
attention that stores no scores; workspaces of convolutions are not seen there.
"""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.facts.denoiser import Denoiser
from rackrate.facts.pipeline import Pipeline
from rackrate.values import Value

FP32_TIMES = 2.0
"""FP32 values in values of 16 bits."""


def latent_frames(shape: Denoiser, frames: int) -> int:
    """Frames of latents: the first frame is one of its own (causal VAEs: arXiv 2408.06072, section 2.1)."""
    return 1 + (frames - 1) // shape.frame_scale


def video_values(shape: Denoiser, tokens: float) -> float:
    """Values alive at the worst moment of a block of a video transformer, for one video.

    With t tokens of video, x of text, width d, feed-forward width f and heads of size s:

    CogVideoX: 12 (t + x) d in the feed-forward block; 13 t d + 9 x d + 2 t s where positions rotate in FP32
    HunyuanVideo: 18 (t + x) d + 4 t s in a single block (FLUX's, and FP32 tables of angles)
    Wan: the larger of 2 f + 4 d and 11 d (normed queries in FP32), and 4 s, for each token of
    video; 19 d more where each token has a time of its own
    LTX-Video: 16 t d, FP32 tables of angles as wide as the model among them
    Mochi: 4 f + 6 d for each token of video, in the gated block

    Source: huggingface/diffusers models/transformers, transformer_<kind>.py.
    """
    width, text, angles = shape.widths[0], shape.text_tokens, 2 * FP32_TIMES * shape.head_width * tokens
    found = {
        "cogvideox": 12.0 * (tokens + text) * width,
        "cogvideox-rope": (13.0 * tokens + 9.0 * text) * width + angles / 2,
        "hunyuan": 18.0 * (tokens + text) * width + angles,
        "ltx": 16.0 * tokens * width,
        "mochi": (4.0 * shape.feed + 6.0 * width) * tokens,
    }
    if shape.kind in found:
        return found[shape.kind]
    each = max(2.0 * shape.feed + 4.0 * width, 11.0 * width)
    return (each + (19.0 * width if shape.kind == "wan-tokenwise" else 0.0)) * tokens + angles


class Decoder(Value, frozen=True, kw_only=True):
    """How a video VAE decodes, in values a pixel of one frame over its narrowest width.

    ``frames`` are decoded at a time (0: all); ``first`` is held for each frame
    of a chunk, ``later`` in all where frames that went before are cached (0:
    as in the first). ``copied`` is the input of the largest convolution, for
    each frame of a chunk.
    """

    frames: int
    first: float
    later: float
    copied: float


DECODERS = {
    "cogvideox": Decoder(frames=9, first=14.9, later=178.0, copied=1.1),
    "hunyuan": Decoder(frames=17, first=9.06, later=0.0, copied=2.24),
    "wan": Decoder(frames=4, first=12.7, later=0.0, copied=1.5),
    "wan-residual": Decoder(frames=4, first=5.25, later=0.0, copied=0.75),
    "ltx": Decoder(frames=0, first=0.369, later=0.0, copied=0.0625),
    "mochi": Decoder(frames=0, first=5.1, later=0.0, copied=1.0),
}
"""Counted on autoencoder_kl_cogvideox.py (two latent frames at a time, caches of convolutions), _hunyuan_video.py
(16 frames at a time), _wan.py (one latent frame at a time, caches), _ltx.py and _mochi.py (all frames)."""

OVERLAP_TIMES = {"hunyuan": 1.4, "wan": 1.78, "wan-residual": 1.78}
"""Finished tiles over the finished video, where tiles overlap: 17 frames of 12, and 256 pixels of 192 each way."""

JOINED_TIMES = 4.7
"""Wan's tiled video while it is put together: all tiles, their rows, the whole, and the whole cut to its range."""

SPLIT_BYTES = 2 * 2**30
"""A convolution of Mochi above this works in parts that are joined (CogVideoXSafeConv3d)."""


def video_decode_bytes(pipe: Pipeline, sizes: tuple[float, int], element: float, *, tiling: bool) -> Range:
    """Activations of the decoder for one video of ``sizes`` (pixels of a frame, frames), and the finished frames.

    The workspace of convolutions is of nothing, of a copy of the input (taken as
    likely) or of input and output, as for images. Assumed, not measured apart.
    """
    pixels, frames = sizes
    how, width = DECODERS[pipe.vae], pipe.vae_widths[0]
    made = latent_frames(pipe.denoiser, frames) * pipe.denoiser.frame_scale if pipe.vae == "mochi" else frames
    chunk = min(how.frames or made, made)
    states = how.later if how.later and frames > how.frames else how.first * chunk
    area = min(pixels, float(pipe.vae_tile**2)) if tiling else pixels
    if pipe.vae == "mochi" and 2 * width * made * area > SPLIT_BYTES:
        states += 1.86 * made
    finished = 3.0 * pixels * frames
    copy = how.copied * chunk * width * area
    counted = states * width * area + finished * (OVERLAP_TIMES.get(pipe.vae, 1.0) if tiling else 1.0)
    joined = JOINED_TIMES * finished if tiling and pipe.vae.startswith("wan") else 0.0
    low, likely, high = (max(counted + times * copy, joined) * element for times in (0, 1, 2))
    return Range(low, likely, high)
