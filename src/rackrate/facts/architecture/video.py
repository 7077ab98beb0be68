"""Transformers that denoise video: parameters by class (huggingface/diffusers src/diffusers/models/transformers)."""

from __future__ import annotations

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.parameters import layer_norm, linear
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader

TIME = 256
"""Channels of the sinusoidal embedding of time."""


def _plain(inputs: int, outputs: int) -> int:
    """A linear map without a bias."""
    return inputs * outputs


def _feed(width: int, inner: int) -> int:
    return linear(width, inner) + linear(inner, width)


def _heads(reader: Reader, heads: int, size: int) -> tuple[int, int]:
    """The width and the size of one head."""
    size = reader.whole("attention_head_dim", default=size)
    return reader.whole("num_attention_heads", default=heads) * size, size


def _layers(reader: Reader, usual: int) -> int:
    return reader.whole("num_layers", default=usual, high=MOST_LAYERS)


def cogvideox(reader: Reader) -> Account:
    """CogVideoX: one stream of text and video, two adaptive norms a block (arXiv 2408.06072)."""
    width, size = _heads(reader, 30, 64)
    time, inputs = reader.whole("time_embed_dim", default=512), reader.whole("in_channels", default=16)
    area = reader.whole("patch_size", default=2) ** 2
    norm = linear(time, 6 * width) + layer_norm(width)
    block = 2 * norm + 4 * linear(width, width) + 2 * layer_norm(size) + _feed(width, 4 * width)
    parts = linear(area * inputs, width) + linear(reader.whole("text_embed_dim", default=4096), width)
    parts += linear(width, time) + linear(time, time) + _layers(reader, 30) * block
    out = area * reader.whole("out_channels", default=16)
    return Account(other=parts + 2 * layer_norm(width) + linear(time, 2 * width) + linear(width, out))


def hunyuan(reader: Reader) -> Account:
    """HunyuanVideo: a refiner of the text, blocks with two streams, blocks with one (arXiv 2412.03603)."""
    width, size = _heads(reader, 24, 128)
    area = reader.whole("patch_size", default=2) ** 2 * reader.whole("patch_size_t", default=1)
    text, embed = reader.whole("text_embed_dim", default=4096), linear(TIME, width) + linear(width, width)
    own = 4 * linear(width, width)
    refined = 2 * layer_norm(width) + own + _feed(width, 4 * width) + linear(width, 2 * width)
    parts = linear(area * reader.whole("in_channels", default=16), width)
    parts += embed + 2 * linear(text, width) + linear(width, width)
    parts += reader.whole("num_refiner_layers", default=2, high=MOST_LAYERS) * refined
    parts += embed * (2 if reader.flag("guidance_embeds", default=True) else 1)
    parts += linear(reader.whole("pooled_projection_dim", default=768), width) + linear(width, width)
    parts += _layers(reader, 20) * 2 * (linear(width, 6 * width) + own + 2 * size + _feed(width, 4 * width))
    single = linear(width, 3 * width) + linear(width, 4 * width) + linear(5 * width, width)
    single += 3 * linear(width, width) + 2 * size
    parts += reader.whole("num_single_layers", default=40, low=0, high=MOST_LAYERS) * single
    out = area * reader.whole("out_channels", default=16)
    return Account(other=parts + linear(width, 2 * width) + linear(width, out))


def wan(reader: Reader) -> Account:
    """Wan: self- and cross-attention in every block, one table of shifts (arXiv 2503.20314)."""
    width, _ = _heads(reader, 40, 128)
    time, text = reader.whole("freq_dim", default=TIME), reader.whole("text_dim", default=4096)
    area = 1
    for side in reader.wholes("patch_size")[:3] or (1, 2, 2):
        area *= side
    own = 4 * linear(width, width) + 2 * width
    block = 2 * own + layer_norm(width) + _feed(width, reader.whole("ffn_dim", default=13824)) + 6 * width
    parts = linear(area * reader.whole("in_channels", default=16), width) + linear(time, width)
    parts += linear(width, width) + linear(width, 6 * width) + linear(text, width) + linear(width, width)
    out = area * reader.whole("out_channels", default=16)
    return Account(other=parts + _layers(reader, 40) * block + linear(width, out) + 2 * width)


def ltx(reader: Reader) -> Account:
    """LTX-Video: as Wan's blocks, on latents of 32 x 32 pixels and 8 frames (arXiv 2501.00103)."""
    width, _ = _heads(reader, 32, 64)
    inputs, cross = reader.whole("in_channels", default=128), reader.whole("cross_attention_dim", default=2048)
    own = 4 * linear(width, width) + 2 * width
    across = 2 * linear(width, width) + 2 * linear(cross, width) + 2 * width
    block = own + across + _feed(width, 4 * width) + 6 * width
    parts = linear(inputs, width) + linear(TIME, width) + linear(width, width) + linear(width, 6 * width)
    parts += linear(reader.whole("caption_channels", default=4096), width) + linear(width, width)
    out = reader.maybe("out_channels") or inputs
    return Account(other=parts + _layers(reader, 28) * block + 2 * width + linear(width, out))


def mochi(reader: Reader) -> Account:
    """Mochi: a wide stream of video and a narrow one of text, gated feed-forward blocks without biases."""
    width, size = _heads(reader, 24, 128)
    text, narrow = reader.whole("text_embed_dim", default=4096), reader.whole("pooled_projection_dim", default=1536)
    inputs = reader.whole("in_channels", default=12)
    area = reader.whole("patch_size", default=2) ** 2
    parts = linear(area * inputs, width) + linear(TIME, width) + linear(width, width)
    parts += linear(text, 2 * text) + linear(text, text) + linear(text, width) + linear(text, narrow)
    video = linear(width, 4 * width) + 3 * _plain(width, width) + linear(width, width) + 4 * size
    video += _gated(width)
    texts = 3 * _plain(narrow, width)
    full = linear(width, 4 * narrow) + linear(width, narrow) + _gated(narrow)
    layers = _layers(reader, 48)
    parts += layers * (video + texts) + max(layers - 1, 0) * full + linear(width, narrow)
    parts += reader.whole("num_attention_heads", default=24) * 3 * size // 2
    out = area * (reader.maybe("out_channels") or inputs)
    return Account(other=parts + linear(width, 2 * width) + linear(width, out))


def _gated(width: int) -> int:
    """A gated block of two thirds of four widths, without biases."""
    inner = 4 * width * 2 // 3
    return _plain(width, 2 * inner) + _plain(inner, width)
