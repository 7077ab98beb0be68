"""Activations of a diffusion pipeline in inference: what is alive at the worst moment of each network.

Nothing is kept for a backward pass, so that a network holds the inputs and
outputs of the operation it is at, what its callers' variables still name, and
in a U-Net the skip connections. Counted on the classes of diffusers 0.42 with
attention that stores no scores (memory-efficient kernels).
"""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.facts.denoiser import Denoiser
from rackrate.facts.pipeline import Pipeline
from rackrate.memory.video_activations import latent_frames, video_values

COPIES = 3
"""A normalisation, its input and the activation of its output are alive together (ResnetBlock2D.forward)."""

FLUX_STATES = 17.0
"""Hidden states of all tokens in a single block of FLUX, where rotary positions are applied in FP32."""

SD3_STATES = 12.0
"""Hidden states of the image in a block of SD3: the feed-forward block before and after GELU (8), and four kept."""

GEGLU_STATES = 16.0
"""The feed-forward block of a U-Net: 8 for the projection, 4 each for GELU and the gated product."""

ENCODER_STATES = 5.0
"""The first states, the block's input, its last convolution, their sum, and the sum divided by the output's scale."""

BLOCK_STATES = 5.0
"""What a transformer in a U-Net and its callers keep meanwhile: residuals, a norm, the residual block's output."""


def pixels(pipe: Pipeline, width: int, height: int) -> float:
    """Pixels of an image as the pipeline makes it: sides are whole latents."""
    scale = pipe.denoiser.latent_scale
    return float(-(-width // scale) * -(-height // scale) * scale * scale)


# ---------------------------------------------------------------- text encoders


def encode_bytes(pipe: Pipeline, images: int, element: float) -> float:
    """Activations of the widest text encoder in one layer.

    tokens x (2 feed-forward + 6 hidden) x bytes. Source: huggingface/transformers
    models/t5/modeling_t5.py (T5DenseGatedActDense keeps both branches) and
    models/clip/modeling_clip.py; attention scores (below 0.2 GiB) left out.
    """
    rows = images * (2 if pipe.denoiser.guided else 1) * pipe.denoiser.text_tokens
    return rows * (2 * pipe.text_feed + 6 * pipe.text_width) * element


# ---------------------------------------------------------------- denoisers


def denoise_bytes(pipe: Pipeline, pixel_count: float, images: int, element: float, frames: int = 1) -> float:
    """Activations of one step of the denoiser, for images with and without their prompt where it is guided.

    ``frames`` of a video are denoised together; Wan runs once after the other with
    and without the prompt (pipelines/wan/pipeline_wan.py).
    """
    shape = pipe.denoiser
    rows = images * (2 if shape.guided and not shape.kind.startswith("wan") else 1)
    tokens = latent_frames(shape, frames) * pixel_count / (shape.latent_scale * shape.patch) ** 2
    if shape.is_unet:
        return rows * unet_values(shape, tokens) * element
    width, text = shape.widths[0], shape.text_tokens
    kept = text * shape.context_width * element
    if shape.makes_video:
        return rows * (video_values(shape, tokens) * element + kept)
    if shape.kind == "flux":
        return rows * (flux_values(width, tokens, text) * element + kept)
    return rows * (sd3_values(width, tokens, text) * element + kept)


def flux_values(width: int, tokens: float, text: int) -> float:
    """Values alive in a single block of FLUX.

    17 x (image + text tokens) x width: 4 for the feed-forward branch, 6 for
    queries in FP32 before and after rotation, 7 for projections, states and the
    image's own. Source: huggingface/diffusers transformer_flux.py
    (FluxSingleTransformerBlock) and embeddings.py (apply_rotary_emb). Valid for 16-bit states.
    """
    return FLUX_STATES * (tokens + text) * width


def sd3_values(width: int, tokens: float, text: int) -> float:
    """Values alive in the feed-forward block of Stable Diffusion 3.

    12 x image tokens x width + the attention's output of all tokens + two states of the
    text. Source: huggingface/diffusers attention.py (JointTransformerBlock, FeedForward).
    """
    return SD3_STATES * tokens * width + (tokens + text) * width + 2 * text * width


def unet_values(shape: Denoiser, latents: float) -> float:
    """Values alive at the worst level on the way up through a U-Net, for one image.

    At a level of width w and t positions, with the upsampled states of the level
    below (b wide) and the skips s of this level and all finer ones:

    with attention: (16 + 5) w t + b t + s
    residual block: b t + 3 (b + w) t + s

    Source: huggingface/diffusers unet_2d_blocks.py (CrossAttnUpBlock2D, UpBlock2D),
    resnet.py, attention.py (FeedForward, GEGLU).
    """
    most, skips = 0.0, 0.0
    for level, width in enumerate(shape.widths):
        places = latents / 4**level
        entering = shape.widths[max(0, level - 1)]
        skips += places * (entering + shape.layers * width)
        below = shape.widths[min(level + 1, len(shape.widths) - 1)]
        if shape.depths[level]:
            most = max(most, ((GEGLU_STATES + BLOCK_STATES) * width + below) * places + skips)
        most = max(most, (below + COPIES * (below + width)) * places + skips)
    return most


# ---------------------------------------------------------------- VAE


def decode_bytes(pipe: Pipeline, pixel_count: float, images: int, element: float) -> Range:
    """Activations of the VAE's decoder for images decoded together.

    With c channels at full resolution before the last block narrows them, and d
    in the block before it, in values a pixel:

    normalisation in the last block: 3 c
    convolution behind the last upsampling: 2 c + c / 4 + d / 4, and its workspace

    Source: huggingface/diffusers unet_2d_blocks.py (UpDecoderBlock2D), upsampling.py
    (Upsample2D), resnet.py. The workspace depends on the algorithm that cuDNN
    picks: kernels for tensor cores work on channels-last copies (NVIDIA, Convolutional
    Layers User's Guide, tensor layouts), of nothing, of the input (taken
    as likely) or of input and output. Assumed, not measured apart.
    """
    widths = pipe.vae_widths
    last, before = widths[1], widths[min(2, len(widths) - 1)]
    block = COPIES * last
    convolution = 2 * last + last / 4 + before / 4
    ends = (max(block, convolution + copies * last) for copies in (0, 1, 2))
    low, likely, high = (values * pixel_count * images * element for values in ends)
    return Range(low, likely, high)


def encoder_bytes(pipe: Pipeline, pixel_count: float, element: float) -> float:
    """Activations of the VAE's encoder for one image: five states at full size (class DownEncoderBlock2D)."""
    return ENCODER_STATES * pipe.vae_widths[0] * pixel_count * element


def tiled_pixels(pipe: Pipeline, pixel_count: float) -> float:
    """Pixels that are decoded at a time with tiling: a tile, or the image where that is smaller.

    Source: huggingface/diffusers autoencoder_kl.py (tile_sample_min_size is the VAE's sample_size).
    """
    return min(pixel_count, float(pipe.vae_tile**2))


def picture_bytes(pixel_count: float, images: int, element: float) -> float:
    """Decoded images: three channels a pixel."""
    return 3 * pixel_count * images * element
