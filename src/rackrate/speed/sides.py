"""The two sides of an encoder-decoder: one reads the input once, the other writes a token at a time."""

from __future__ import annotations

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.memory.weights import attention_params, key_width, matrices_per_mlp, query_width
from rackrate.values import Value, replace

_BOTH_WAYS = "full (bidirectional, no KV cache)"
_KERNEL = 3
"""Frames under a kernel of Whisper's convolutions, of which the first runs at twice as many places as the second."""


class Side(Value, frozen=True, kw_only=True):
    """One side as speed sees it: a model of its layers, what a token is multiplied with, and bytes a pass reads."""

    model: Model
    multiplied_params: float
    read_bytes: float


def encoder_side(model: Model, form: WeightFormat) -> Side:
    """The encoder, with the keys and values that the decoder's layers make of each of its positions.

    ``E (4 h q + m h f) + D 2 h k`` multiplications a position (arXiv 1706.03762,
    section 3; m matrices of width f), and Whisper's convolutions, ``3 h (2 mels +
    h)`` (arXiv 2212.04356, section 2.2). Every position attends to all.
    """
    hidden, layers = model.hidden_size or 0, model.encoder_layers or 0
    params = layers * (attention_params(model) + _block(model))
    params += (model.decoder_layers or 0) * 2 * hidden * key_width(model)
    if model.mel_bins:
        params += _KERNEL * hidden * (2 * model.mel_bins + hidden)
    plain = replace(
        model,
        layers=layers,
        layers_full=layers,
        vocab_size=None,
        encoder_layers=None,
        decoder_layers=None,
        attention=_BOTH_WAYS,
    )
    return Side(model=plain, multiplied_params=float(params), read_bytes=params * form.bytes_per_weight)


def decoder_side(model: Model, form: WeightFormat) -> Side:
    """The decoder with its head: ``D (4 h q + 2 h q + m h f) + v h``; it asks the encoder's keys, made before."""
    hidden, layers = model.hidden_size or 0, model.decoder_layers or 0
    inside = layers * (attention_params(model) + 2 * hidden * query_width(model) + _block(model))
    head = (model.vocab_size or 0) * hidden
    wide = max(2.0, form.bytes_per_weight) if form.head_16bit else form.bytes_per_weight
    return Side(
        model=replace(model, layers=layers),
        multiplied_params=float(inside + head),
        read_bytes=inside * form.bytes_per_weight + head * wide,
    )


def _block(model: Model) -> int:
    return matrices_per_mlp(model) * (model.hidden_size or 0) * (model.intermediate_size or 0)
