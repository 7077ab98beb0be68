"""The two sides of an encoder-decoder: one reads the input once, the other writes a token at a time."""

from __future__ import annotations

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.memory.traits import biases_scores
from rackrate.memory.weights import attention_params, is_gated, key_width, matrices_per_mlp, query_width
from rackrate.values import Value, replace
from rackrate.workload.workload import Training, Workload

_BOTH_WAYS = "full (bidirectional, no KV cache)"
_KERNEL = 3
"""Frames under a kernel of Whisper's convolutions, of which the first runs at twice as many places as the second."""


_PLAIN, _BIASED_GATE = 36, 9
"""Operations of a layer of Llama as transformers runs it, of which the launch time was fitted; and of T5's gate.

Counted on tiny models (transformers 5.24, operations that launch a kernel, one token at a time).
"""

_ENCODED, _DECODED = {False: 12, True: 23}, {False: 21, True: 35}
"""The same of a layer of either side, without and with biased scores (T5)."""

_REORDERED, _OUTSIDE, _SEARCHED = 4, 45, 110
"""The same: copies that put a layer's caches in the order of beams; of a step outside the layers, and with beams."""


class Launches(Value, frozen=True, kw_only=True):
    """Kernels of a pass, in layers of a decoder alone: of each layer, and outside the layers."""

    layer: float = 1.0
    outside: float = 0.0


PLAIN = Launches()
"""A decoder alone, of which launch times were fitted with all that is outside its layers."""


def eager_launches(model: Model, beams: int, *, decodes: bool) -> Launches:
    """What transformers launches in a pass of one side."""
    biased = biases_scores(model)
    gate = _BIASED_GATE if biased and is_gated(model) else 0
    if not decodes:
        return Launches(layer=(_ENCODED[biased] + gate) / _PLAIN)
    searched = beams > 1
    layer = _DECODED[biased] + gate + (_REORDERED if searched else 0)
    return Launches(layer=layer / _PLAIN, outside=(_SEARCHED if searched else _OUTSIDE) / _PLAIN)


QUANTISED = {"ct2-int8": 39 / 33}
"""Kernels of a layer that quantises inputs and scales outputs back, over 16 bits (CTranslate2 layers/common.cc)."""


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
    return Side(
        model=replace(model, layers=layers),
        multiplied_params=float(inside + head),
        read_bytes=inside * form.bytes_per_weight + head * form.head_bytes,
    )


def _block(model: Model) -> int:
    return matrices_per_mlp(model) * (model.hidden_size or 0) * (model.intermediate_size or 0)


def training_sides(workload: Workload, run: Training) -> tuple[tuple[Workload, Training], tuple[Workload, Training]]:
    """What each side does of a training run, as if it were a model of its own: the encoder, then the decoder.

    A model's parameters are those that a token of the side is multiplied with;
    attention to the encoder's positions is left to whoever counts it.
    """
    reads, writes = (side(workload.model, workload.weights) for side in (encoder_side, decoder_side))
    alone = replace(run, target_tokens=0, source_positions=0)
    decoder = replace(writes.model, encoder_layers=None, attention="full")
    return (
        (_as_model(workload, reads.model, reads), replace(alone, sequence_tokens=run.read_tokens)),
        (_as_model(workload, decoder, writes), replace(alone, sequence_tokens=run.written_tokens)),
    )


def _as_model(workload: Workload, model: Model, side: Side) -> Workload:
    params = int(side.multiplied_params)
    return replace(
        workload, model=replace(model, params_total=params, params_active=params, tie_embeddings=True), serving=None
    )
