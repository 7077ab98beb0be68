"""Activations of training an encoder-decoder: what both sides keep for the backward pass.

Bytes of one token of the side, without stored scores (arXiv 1706.03762, section 3; 2205.14135). Read from
huggingface/transformers 5.24, src/transformers/models/{whisper,bart,mbart,pegasus,marian,m2m_100,t5}/modeling_*.py.
"""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.layer_pass import FP32_BYTES, Pass
from rackrate.memory.traits import biases_scores, drops_out, is_relu, norms_embeddings, norms_first
from rackrate.memory.weights import is_gated, key_width, query_width
from rackrate.values import Value

_TANH = 3
"""Widths more where a gate's GELU is written out in Python (T5's gelu_new): tanh, half the input, 1 + tanh."""

_CONVOLVED = 5
"""Hidden states of a position that Whisper's two convolutions keep: the first makes two for each."""

BIAS_BYTES = (2.0, 2.0, 9.0)
"""Kept of biased scores for each head, layer and pair of positions, in 16 bits.

transformers 5 keeps the sum of bias and mask for fused attention; 4 kept the softmax in FP32, its cast, a mask of
dropout and what it left (models/t5/modeling_t5.py, T5Attention.forward).
"""


class Sides(Value, frozen=True, kw_only=True):
    """Bytes that each layer keeps of a token: the encoder's, the decoder's own, and the decoder's of what is read."""

    encoder: float
    decoder: float
    crossing: float


def sides(model: Model, how: Pass) -> Sides:
    """What one layer of either side keeps of one token, without checkpointing.

    Trained in full, in 16 bits, with LayerNorm and GELU, an encoder's layer keeps 16 h + 4 f bytes, a
    decoder's 24 h + 4 f of a token that is written and 4 h of one that is read.
    """
    once = _norm(model, how) + _attention(model, how)
    masks = (model.hidden_size or 0) if drops_out(model) else 0
    feed = _norm(model, how) + _feed_forward(model, how)
    return Sides(
        encoder=once + _inputs(model, how, "qkvo") + feed + 2 * masks,
        decoder=once + _inputs(model, how, "qkvo") + _crossing_query(model, how) + feed + 3 * masks,
        crossing=2 * key_width(model) * how.element_bytes + _inputs(model, how, "kv", shared=False),
    )


def ends(model: Model, how: Pass) -> tuple[float, float]:
    """Kept of a token outside the layers: by the encoder with its output, and by the decoder with its head.

    Last norms (BART and Marian have none), the input of the head and of the keys that are made of the
    encoder's output, norms and masks behind embeddings, Whisper's convolutions. Beside adapters the
    embeddings are frozen: nothing is kept of what stands before the first adapter.
    """
    hidden, size, trained = model.hidden_size or 0, how.element_bytes, not how.adapters
    last = _norm(model, how) if norms_first(model) else 0.0
    read = hidden * size if trained else 0.0
    before = _norm(model, how) if norms_embeddings(model) and trained else 0.0
    masks = float(hidden) if drops_out(model) else 0.0
    masks *= 2 if biases_scores(model) else 1  # T5 drops out behind its last norm too
    first = 0.0 if trained or not norms_first(model) else -_norm(model, how)
    both = last + read + before + (masks if trained else 0.0) + first
    convolved = _CONVOLVED * hidden * size if model.mel_bins and trained else 0.0
    return both + convolved, both


def _norm(model: Model, how: Pass) -> float:
    """Kept by one norm: LayerNorm its input, T5's also an FP32 copy and, trained, the normalised value."""
    hidden, size = model.hidden_size or 0, how.element_bytes
    if not biases_scores(model):
        return float(hidden * size)
    copy = FP32_BYTES if size < FP32_BYTES else 0
    return float(hidden * (size + copy + (0 if how.adapters else size)))


def _attention(model: Model, how: Pass) -> float:
    """Queries, keys, values, output, and the log-sum-exp of each head."""
    widths = 2 * query_width(model) + 2 * key_width(model)
    return (widths * how.element_bytes + FP32_BYTES * (model.attention_heads or 0)) / how.tensor


def _crossing_query(model: Model, how: Pass) -> float:
    """Kept by cross-attention of a token that asks: norm, its output, query, output and log-sum-exp."""
    kept = 2 * query_width(model) * how.element_bytes + FP32_BYTES * (model.attention_heads or 0)
    return _norm(model, how) + _inputs(model, how, "qo") + kept / how.tensor


def _inputs(model: Model, how: Pass, targets: str, *, shared: bool = True) -> float:
    """Inputs of attention's projections, whose output is kept already: one copy, or one for each adapter that casts.

    Keys and values of cross-attention read the encoder's output, which is there once for all layers.
    """
    hidden = model.hidden_size or 0
    if not how.adapters:
        return float(hidden * how.element_bytes) if shared else 0.0
    if how.adapter_bytes == how.element_bytes:
        return float(hidden * how.element_bytes) if shared and set(targets) & set(how.adapters) & set("qkv") else 0.0
    widths = {"q": hidden, "k": hidden, "v": hidden, "o": query_width(model) / how.tensor}
    return float(sum(widths[name] for name in targets if name in how.adapters) * how.adapter_bytes)


def _feed_forward(model: Model, how: Pass) -> float:
    """Kept of the feed-forward block beside its norm."""
    hidden, size = model.hidden_size or 0, how.element_bytes
    width = (model.intermediate_size or 0) / how.tensor
    gated, drops = is_gated(model), biases_scores(model)
    between = (_TANH + 1 + 2) if gated else (0 if is_relu(model) and not drops else 1)
    kept = between * width * size + (width if drops else 0.0)
    if not how.adapters:
        return kept + (hidden + width) * size
    if is_relu(model) and not drops:
        kept += width * size  # the activation's own output, which a trained matrix would keep anyway
    wide = how.adapter_bytes if how.adapter_bytes != size else 0
    into = [name for name in ("gate", "up") if name in how.adapters and (gated or name == "up")]
    if not wide:
        return kept + ((hidden if into else 0) + (width if "down" in how.adapters else 0.0)) * size
    return kept + (len(into) * hidden + (width if "down" in how.adapters else 0.0)) * wide
