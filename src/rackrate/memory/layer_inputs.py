"""Inputs of linear layers that are kept for the gradients of their weights or of their adapters.

All figures are for one layer and one token on one card, in bytes.
"""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.layer_pass import Pass
from rackrate.memory.traits import norm_outputs
from rackrate.memory.weights import is_gated, key_width, query_width

ALL_TARGETS = ("q", "k", "v", "o", "gate", "up", "down")


def mlp_width(model: Model) -> int:
    """Intermediate values of one token: of the dense block, or of its experts, routed and shared."""
    if not model.is_moe:
        return model.intermediate_size or 0
    return ((model.experts_per_token or 0) + (model.shared_experts or 0)) * (model.moe_intermediate_size or 0)


def value_width(model: Model) -> int:
    """Width of all value heads together."""
    if model.is_mla:
        return (model.attention_heads or 0) * (model.mla_v_head_dim or 0)
    return key_width(model)


def linear_input_bytes(model: Model, how: Pass) -> float:
    """Saved inputs of the linear layers whose weights get gradients.

    Trained in full: one copy each of the norm outputs and of the product
    before the down projection (the attention output is kept by attention
    already; compiled code makes norm outputs again). Adapters: see
    ``adapter_input_bytes``.
    """
    size, hidden = how.element_bytes, model.hidden_size or 0
    if how.adapters:
        return adapter_input_bytes(model, how) + quantised_input_bytes(model, how)
    norms = 0 if how.compiled else norm_outputs(model) * hidden
    return (norms / how.whole + mlp_width(model) / how.tensor) * size


def adapter_input_bytes(model: Model, how: Pass) -> float:
    """Saved inputs of the adapters.

    Each target keeps its own copy when it is cast to a wider adapter type (peft
    lora/layer.py _cast_input_dtype) or dropped out (a byte of mask and a copy:
    torch native_dropout), else the targets of one input share it, and frozen
    layers keep nothing. A fused projection has one adapter; where that leaves
    out one of queries, keys and values, what it adds is kept once more
    (litgpt/lora.py zero_pad: index_copy keeps its source).
    """
    hidden, size = model.hidden_size or 0, how.element_bytes
    width, query = mlp_width(model), query_width(model)
    names = set(how.adapters)
    if how.adapter_bytes == size and not how.dropout:
        shared = (not names.isdisjoint("qkv")) + (not names.isdisjoint(("gate", "up")))
        return (shared * hidden + ("down" in names) * width / how.tensor) * size
    separate: list[str] = [name for name in ("q", "k", "v", "gate", "up") if name in names]
    source = 0.0
    if how.fused_qkv and not names.isdisjoint("qkv"):
        separate = ["qkv", *(name for name in separate if name not in {"q", "k", "v"})]
        if not names >= {"q", "k", "v"}:
            source = float(sum(part for name, part in _qkv_widths(model) if name in names)) * size
    if not is_gated(model):
        separate = [name for name in separate if name != "gate"]
    inner = ("o" in names) * query + ("down" in names) * width
    each = how.adapter_bytes + (1 if how.dropout else 0)
    return (len(separate) * hidden + inner / how.tensor) * each + source / how.tensor


def _qkv_widths(model: Model) -> tuple[tuple[str, int], ...]:
    return ("q", query_width(model)), ("k", key_width(model)), ("v", value_width(model))


def quantised_input_bytes(model: Model, how: Pass) -> float:
    """Inputs that quantised layers keep although no gradient needs them.

    bitsandbytes before 0.43.2 stored the input of every 4-bit product
    (autograd/_functions.py MatMul4Bit.forward, mended by commit 9e753741):
    norm outputs and the product before the down projection; the attention
    output is there already.
    """
    if not how.keeps_inputs:
        return 0.0
    return (norm_outputs(model) * (model.hidden_size or 0) + mlp_width(model) / how.tensor) * how.element_bytes


def left_input_bytes(model: Model, how: Pass) -> float:
    """Those inputs of the micro-batch before, the attention output among them, while its graph is still referenced."""
    if not how.keeps_inputs:
        return 0.0
    return quantised_input_bytes(model, how) + query_width(model) * how.element_bytes / how.tensor
