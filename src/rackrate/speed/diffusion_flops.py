"""FLOPs of a diffusion model: convolutions, matrix products and attention of one pass at one size."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.denoiser import Denoiser
from rackrate.values import Value

KERNEL = 9
"""Weights of a 3 x 3 convolution for each pair of channels."""

VAE_FLOP_PER_PIXEL = 9.5e6
"""Of a decoder from 1/8 of the side with 128 to 512 channels (arXiv 2112.10752; class AutoencoderKL of diffusers).

Summed over its convolutions: 2.5 TFLOP for 512 x 512 pixels.
"""

CAUSAL_VAE_TIMES = 3.0
"""The same with kernels that also span three frames (arXiv 2408.06072, section 2.1)."""


LTX_VAE_SHARE = 1 / 16
"""LTX-Video's decoder works on patches of 4 x 4 pixels (class AutoencoderKLLTXVideo, patch_size)."""


class Canvas(Value, frozen=True, kw_only=True):
    """What is made at a time: ``batch`` images, or videos of ``frames``, of ``width`` x ``height`` pixels."""

    width: int
    height: int
    frames: int = 1
    batch: int = 1

    @property
    def pixels(self) -> float:
        """Pixels of all frames and images."""
        return float(self.width * self.height * self.frames * self.batch)


class Work(Value, frozen=True, kw_only=True):
    """One pass over one canvas.

    ``matrix_flop``: linear layers and convolutions; ``attention_flop``: scores and
    weighted values; ``scores``: exponentials; ``moved_values``: token x layer x
    width, which element-wise work is in proportion to; ``blocks``: blocks that
    the host launches.
    """

    matrix_flop: float
    attention_flop: float
    scores: float
    moved_values: float
    blocks: float

    def __add__(self, other: Work) -> Work:
        return Work(
            matrix_flop=self.matrix_flop + other.matrix_flop,
            attention_flop=self.attention_flop + other.attention_flop,
            scores=self.scores + other.scores,
            moved_values=self.moved_values + other.moved_values,
            blocks=self.blocks + other.blocks,
        )


NOTHING = Work(matrix_flop=0.0, attention_flop=0.0, scores=0.0, moved_values=0.0, blocks=0.0)


def pass_work(model: Denoiser, canvas: Canvas) -> Work:
    """One pass of the denoiser over one image or video (batch and guidance multiply it, its blocks excepted)."""
    return unet_work(model, canvas) if model.is_unet else transformer_work(model, canvas)


def tokens(model: Denoiser, canvas: Canvas) -> float:
    """Tokens of a latent video or image: patches of latents, without those of the text."""
    side = model.latent_scale * model.patch
    frames = 1 + (canvas.frames - 1) / model.frame_scale
    return frames * (canvas.width / side) * (canvas.height / side)


def transformer_work(model: Denoiser, canvas: Canvas) -> Work:
    """A transformer whose text tokens go through every layer beside the latent ones.

    ``24 d^2`` a token and layer (attention 4 d^2 weights, MLP 8 d^2, times 2)
    and ``4 d t^2`` for attention; each stream has weights of its own, each
    token meets one stream's (arXiv 2403.03206, section 4).
    """
    if model.kind in CROSS_KINDS:
        return cross_work(model, canvas)
    count = tokens(model, canvas) + model.text_tokens
    width, layers = model.widths[0], model.layers
    return Work(
        matrix_flop=24 * layers * width * width * count,
        attention_flop=4 * layers * width * count * count,
        scores=layers * model.heads * count * count,
        moved_values=layers * width * count,
        blocks=layers,
    )


CROSS_KINDS = frozenset({"wan", "wan-tokenwise", "ltx"})
"""Kinds whose blocks look at the text in an attention of its own, and have it in no stream."""


def cross_work(model: Denoiser, canvas: Canvas) -> Work:
    """A transformer with cross-attention to the text: Wan (arXiv 2503.20314), LTX-Video (arXiv 2501.00103).

    ``2 (6 d^2 + 2 d f)`` a token and layer (self-attention 4 d^2, queries and
    output of the other 2 d^2), ``4 d^2`` a token of text (keys and values), and
    ``4 d t (t + x)`` for attention.
    """
    count, width, layers, text = tokens(model, canvas), model.widths[0], model.layers, model.text_tokens
    return Work(
        matrix_flop=2.0 * layers * (count * (6 * width * width + 2 * width * model.feed) + text * 2 * width * width),
        attention_flop=4.0 * layers * width * count * (count + text),
        scores=layers * model.heads * count * (count + text),
        moved_values=layers * width * count,
        blocks=layers,
    )


def unet_work(model: Denoiser, canvas: Canvas) -> Work:
    """The U-Net of Stable Diffusion level by level (class UNet2DConditionModel of diffusers)."""
    found = NOTHING
    for part in _parts(model, tokens(model, canvas)):
        found = found + part
    return found


def _parts(model: Denoiser, whole: float) -> Iterator[Work]:
    """Down, the middle, and up with what was kept joined on."""
    widths, depths = model.widths, model.depths
    kept, before = [widths[0]], widths[0]
    for level, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        area = whole / 4**level
        for _ in range(model.layers):
            yield _residual(before, width, area)
            yield _attends(model, width, depth, area)
            before = width
            kept.append(width)
        if level < len(widths) - 1:
            yield _convolution(width, width, area / 4)
            kept.append(width)
    area = whole / 4 ** (len(widths) - 1)
    yield _residual(before, before, area)
    yield _residual(before, before, area)
    yield _attends(model, before, depths[-1] or model.middle_depth, area)
    for level in reversed(range(len(widths))):
        area = whole / 4**level
        for _ in range(model.layers + 1):
            yield _residual(before + kept.pop(), widths[level], area)
            yield _attends(model, widths[level], depths[level], area)
            before = widths[level]
        if level:
            yield _convolution(before, before, 4 * area)


def _convolution(inputs: int, outputs: int, area: float) -> Work:
    flop = 2.0 * KERNEL * inputs * outputs * area
    return Work(matrix_flop=flop, attention_flop=0.0, scores=0.0, moved_values=0.0, blocks=0.0)


def _residual(inputs: int, outputs: int, area: float) -> Work:
    """Two convolutions with norms, and a shortcut where the width changes (class ResnetBlock2D)."""
    flop = 2.0 * KERNEL * (inputs + outputs) * outputs * area
    flop += 2.0 * inputs * outputs * area if inputs != outputs else 0.0
    return Work(
        matrix_flop=flop, attention_flop=0.0, scores=0.0, moved_values=(inputs + outputs) / 2 * area, blocks=1.0
    )


def _attends(model: Denoiser, width: int, depth: int, area: float) -> Work:
    """A projection in and out, and blocks of self-attention, cross-attention and a gated MLP (4 d wide)."""
    if not depth:
        return NOTHING
    own, cross, feed = 4 * width * width, 2 * width * width, 12 * width * width
    text = 2 * model.context_width * width * model.text_tokens
    flop = 2.0 * (2 * width * width * area + depth * ((own + cross + feed) * area + text))
    pairs = depth * area * (area + model.text_tokens)
    return Work(
        matrix_flop=flop,
        attention_flop=4.0 * width * pairs,
        scores=pairs * width / model.head_width,
        moved_values=float(depth * width * area),
        blocks=float(depth),
    )


def vae_flop(model: Denoiser, canvas: Canvas) -> float:
    """FLOPs of decoding all latents to pixels."""
    share = LTX_VAE_SHARE if model.kind == "ltx" else 1.0
    return VAE_FLOP_PER_PIXEL * (CAUSAL_VAE_TIMES if model.makes_video else 1.0) * share * canvas.pixels
