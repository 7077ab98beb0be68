"""Training a denoiser: trained parameters, and the bytes that its forward pass keeps for the backward pass.

Counted on the classes of diffusers 0.42 under autocast to 16 bits: norms run
and keep their input in FP32, every adapted matrix keeps a 16-bit copy of its
input (PEFT casts it to the adapter's FP32 and autocast back), convolutions keep
their input also where they are frozen, frozen matrices keep nothing. Attention
stores no scores. Kinds of video are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.denoiser import Denoiser
from rackrate.memory.optimizer import FP32_BYTES
from rackrate.values import Value

ATTENTION = ("q", "k", "v", "o")
FEED = frozenset({"up", "down", "gate"})

FLUX_SINGLE_SHARE = 2 / 3
"""Blocks of FLUX that have one stream: 38 of 57."""

GEGLU = 24.0
"""Bytes a value of width of a U-Net's feed-forward block: 8 widths of the projection and 4 of the gate, 16 bits."""

OUTER, OUTER_AGAIN = 6.0, 4.0
"""Around the blocks of a U-Net's transformer: the group norm's FP32 input; the output, where all is kept."""

CONVOLVED = 2.0, 4.0
"""More where the projections are convolutions, which keep their inputs (use_linear_projection false)."""

RUNNING = 24.0
"""Bytes a token and unit of width that the block at work holds beside what it keeps: GELU, the output, gradients."""


class Adapted(Value, frozen=True, kw_only=True):
    """What is trained: the adapters' ``rank`` (0: all weights) and their targets."""

    rank: int
    targets: tuple[str, ...]

    @property
    def attention(self) -> tuple[str, ...]:
        """Matrices of attention whose inputs are kept: the adapted ones, or all."""
        return tuple(name for name in ATTENTION if not self.rank or name in self.targets)

    @property
    def feeds(self) -> bool:
        """Whether the feed-forward blocks are trained too."""
        return not self.rank or bool(FEED & set(self.targets))


# ---------------------------------------------------------------- adapters


def lora_params(shape: Denoiser, trained: Adapted) -> float:
    """Parameters of the adapters: rank x (inputs + outputs) of each adapted matrix (arXiv 2106.09685).

    In a U-Net the matrices of self- and cross-attention; in SD3 and FLUX those of
    both streams (``add_q_proj`` and so on), FLUX's single blocks without an
    output of attention. Source: huggingface/diffusers examples/dreambooth
    train_dreambooth_lora_flux.py and _sd3.py, target_modules.
    """
    if shape.is_unet:
        return float(sum(_unet_adapters(shape, trained, piece.outputs, piece.depth) for piece in _pieces(shape)))
    width, names = shape.widths[0], trained.attention
    pair = trained.rank * 2 * width
    feed = 2 * trained.rank * 5 * width if trained.feeds else 0
    both = 2 * (len(names) * pair + feed)
    if shape.kind == "flux":
        single = round(shape.layers * FLUX_SINGLE_SHARE)
        return float((shape.layers - single) * both + single * len([n for n in names if n != "o"]) * pair)
    return float(shape.layers * both - ("o" in names) * pair - (feed if trained.feeds else 0))


def _unet_adapters(shape: Denoiser, trained: Adapted, width: int, depth: int) -> int:
    own = len(trained.attention) * 2 * width
    wide = sum(2 * width if name in {"q", "o"} else width + shape.context_width for name in trained.attention)
    feed = (width + 8 * width) + (4 * width + width) if trained.feeds else 0
    return depth * trained.rank * (own + wide + feed)


# ---------------------------------------------------------------- a U-Net


class _Piece(Value, frozen=True, kw_only=True):
    """A residual block, or (with a ``depth``) a transformer, at one level of a U-Net."""

    inputs: int
    outputs: int
    level: int
    depth: int = 0


def _pieces(shape: Denoiser) -> Iterator[_Piece]:
    """The pieces in the order of the forward pass; what went down is joined on the way up."""
    widths, kept, before, last = shape.widths, [shape.widths[0]], shape.widths[0], len(shape.widths) - 1
    for level, width in enumerate(widths):
        for _ in range(shape.layers):
            yield from _pair(shape, before, level)
            before = width
            kept.append(width)
        kept += [width] if level < last else []
    yield _Piece(inputs=before, outputs=before, level=last)
    yield _Piece(inputs=before, outputs=before, level=last, depth=shape.middle_depth)
    yield _Piece(inputs=before, outputs=before, level=last)
    for level in reversed(range(len(widths))):
        for _ in range(shape.layers + 1):
            yield from _pair(shape, before + kept.pop(), level)
            before = widths[level]


def _pair(shape: Denoiser, inputs: int, level: int) -> Iterator[_Piece]:
    width, depth = shape.widths[level], shape.depths[level]
    yield _Piece(inputs=inputs, outputs=width, level=level)
    if depth:
        yield _Piece(inputs=width, outputs=width, level=level, depth=depth)


def _residual_bytes(piece: _Piece) -> float:
    """Two norms (input and output in FP32) and the 16-bit inputs of the convolutions behind them (ResnetBlock2D)."""
    shortcut = 2 * piece.inputs if piece.inputs != piece.outputs else 0
    return 10.0 * (piece.inputs + piece.outputs) + shortcut


def _block_bytes(trained: Adapted) -> float:
    """A block of self-attention, cross-attention and GEGLU, bytes a position and unit of width.

    Three norms' FP32 inputs, queries, keys, values and results of attention, the
    adapters' inputs, the feed-forward block (class BasicTransformerBlock).
    """
    cross = len([name for name in trained.attention if name in {"q", "o"}])
    feed = 10.0 if trained.feeds else 0.0
    return 3 * FP32_BYTES + 6 + 2 + 2 + 2 + GEGLU + 2 * (len(trained.attention) + cross) + feed


def _convolved(shape: Denoiser) -> tuple[float, float]:
    return CONVOLVED if shape.kind == "unet" else (0.0, 0.0)


def _unet_bytes(shape: Denoiser, places: float, trained: Adapted) -> float:
    block, found, outer = _block_bytes(trained), 0.0, OUTER + _convolved(shape)[0]
    for piece in _pieces(shape):
        each = (outer + piece.depth * block) * piece.outputs if piece.depth else _residual_bytes(piece)
        found += each * places / 4**piece.level
    sampled = [2.0 * width * places / 4.0 ** (level - 1) for level, width in enumerate(shape.widths) if level]
    return float(found + sum(sampled))


def _unet_again(shape: Denoiser, places: float, trained: Adapted) -> float:
    """The most that is held where each residual block and transformer block is computed again.

    The inputs of all blocks up to one, that block, and of its backward pass two
    FP32 gradients of its input (of a transformer's block those of GEGLU).
    """
    held, most, outer = 0.0, 0.0, OUTER_AGAIN + _convolved(shape)[1]
    for piece in _pieces(shape):
        area = places / 4**piece.level
        held += (outer + 2 * piece.depth) * piece.outputs * area if piece.depth else 2 * piece.inputs * area
        own = (_block_bytes(trained) + GEGLU) * piece.outputs
        own = own if piece.depth else _residual_bytes(piece) + 2 * FP32_BYTES * piece.inputs
        most = max(most, held + own * area)
    return most


# ---------------------------------------------------------------- transformers


def _stream_bytes(shape: Denoiser, trained: Adapted) -> tuple[float, float]:
    """Bytes a token and unit of width of a block with two streams, and of a block with one.

    Two norms' FP32 inputs (8), queries, keys and values (6), the result (2), the
    feed-forward block's middle (8), and two for each adapted matrix; where
    queries and keys are normed, their FP32 copies (8), and in SD3 the results
    (4). FLUX's single block has one norm, and no output of attention.
    Source: huggingface/diffusers transformer_flux.py, attention.py (JointTransformerBlock).
    """
    inputs = 2 * len(trained.attention)
    feed = 10.0 if trained.feeds else 0.0
    if shape.kind == "flux":
        single = 2 * len([name for name in trained.attention if name != "o"])
        return 32.0 + inputs + feed, 28.0 + single
    return (36.0 if shape.kind == "sd3-normed" else 24.0) + inputs + feed, 0.0


def _layers(shape: Denoiser) -> tuple[int, int]:
    """Blocks with two streams and with one."""
    single = round(shape.layers * FLUX_SINGLE_SHARE) if shape.kind == "flux" else 0
    return shape.layers - single, single


# ---------------------------------------------------------------- of either kind


def kept_bytes(shape: Denoiser, latents: float, images: int, trained: Adapted) -> float:
    """Bytes that the forward pass keeps for the backward pass, nothing computed again."""
    if shape.is_unet:
        return images * _unet_bytes(shape, latents, trained)
    two, one = _stream_bytes(shape, trained)
    double, single = _layers(shape)
    return images * (latents + shape.text_tokens) * shape.widths[0] * (double * two + single * one)


def again_bytes(shape: Denoiser, latents: float, images: int, trained: Adapted) -> float:
    """Bytes held at the most where each block is computed again: the blocks' inputs, and one block at work."""
    if shape.is_unet:
        return images * _unet_again(shape, latents, trained)
    two, one = _stream_bytes(shape, trained)
    return images * (latents + shape.text_tokens) * shape.widths[0] * (2.0 * shape.layers + (one or two) + RUNNING)


def running_bytes(shape: Denoiser, latents: float, images: int) -> float:
    """Bytes of the last block's work beside what is kept, at the end of the forward pass."""
    if shape.is_unet:
        return images * latents * shape.widths[0] * 4.0
    return RUNNING / 2 * images * (latents + shape.text_tokens) * shape.widths[0]
