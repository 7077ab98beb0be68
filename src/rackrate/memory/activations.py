"""Activations: what a forward pass keeps for its backward pass, and what inference holds while it runs.

All per-token figures are for one layer and one token on one card.
"""

from __future__ import annotations

from rackrate.facts.accelerator import Precision
from rackrate.facts.model import Model
from rackrate.memory.weights import is_encoder, is_gated, key_width, matrices_per_mlp, query_width
from rackrate.values import Value

FP32_BYTES = 4

ALL_TARGETS = ("q", "k", "v", "o", "gate", "up", "down")


class Pass(Value, frozen=True, kw_only=True):
    """How a layer is run when it is trained.

    ``element_bytes`` of an activation (2, or 4 in FP32); ``tensor``: cards that
    divide a layer; ``flash``: attention never stores scores; ``adapters``: the
    linear layers with adapters, empty when all weights are trained;
    ``adapter_bytes`` of one adapter weight; ``tokens_per_sequence`` and
    ``tokens`` of one micro-batch.
    """

    element_bytes: int
    tensor: int
    flash: bool
    adapters: tuple[str, ...]
    adapter_bytes: int
    tokens_per_sequence: int
    tokens: int


def element_bytes(precision: Precision) -> int:
    """Bytes of one activation: 4 in FP32 and TF32, else 2 (8-bit and 4-bit types keep 16-bit activations)."""
    return FP32_BYTES if precision in {Precision.FP32, Precision.TF32} else 2


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


def norm_bytes(model: Model, how: Pass) -> float:
    """Saved by the two norms of a layer, their outputs aside.

    RMSNorm works on an FP32 copy of its input (4 B) and keeps the normalised
    value for the gradient of its weight when that is trained; LayerNorm keeps
    its input. transformers modeling_llama.py LlamaRMSNorm and torch
    native_layer_norm. Models without a gate are taken to use LayerNorm.
    """
    hidden, size = model.hidden_size or 0, how.element_bytes
    if not is_gated(model):
        return 2 * hidden * size
    return 2 * hidden * (FP32_BYTES + (0 if how.adapters else size))


def linear_input_bytes(model: Model, how: Pass) -> float:
    """Saved inputs of the linear layers whose weights get gradients.

    Trained in full: one copy each of the two norm outputs and of the product
    before the down projection (the attention output is kept by attention
    already). Adapters: each target keeps its own copy when it is cast to a
    wider adapter type (peft lora/layer.py _cast_input_dtype), else the targets
    of one input share it, and frozen layers keep nothing.
    """
    hidden, size = model.hidden_size or 0, how.element_bytes
    width, query = mlp_width(model), query_width(model)
    if not how.adapters:
        return (2 * hidden + width / how.tensor) * size
    names = set(how.adapters)
    if how.adapter_bytes == size:
        shared = (not names.isdisjoint("qkv")) + (not names.isdisjoint(("gate", "up")))
        return (shared * hidden + ("down" in names) * width / how.tensor) * size
    wide = sum(name in names for name in ("q", "k", "v", "gate", "up")) * hidden
    inner = ("o" in names) * query + ("down" in names) * width
    return (wide + inner / how.tensor) * how.adapter_bytes


def attention_bytes(model: Model, how: Pass) -> float:
    """Saved by attention: queries, keys, values, output and, with flash attention, 4 B per head and token.

    FlashAttention keeps the log-sum-exp instead of the scores (arXiv
    2205.14135). Without it each head keeps, for every pair of tokens, the
    softmax in FP32 and its cast (transformers eager_attention_forward), and an
    encoder also a dropout mask and the dropped scores (arXiv 2205.05198,
    section 4.1).
    """
    heads, size = model.attention_heads or 0, how.element_bytes
    widths = 2 * query_width(model) + key_width(model) + value_width(model)
    if how.flash:
        return (widths * size + FP32_BYTES * heads) / how.tensor
    pair = FP32_BYTES + (size if size < FP32_BYTES else 0) + ((1 + size) if is_encoder(model) else 0)
    return (widths * size + heads * pair * how.tokens_per_sequence) / how.tensor


def mlp_bytes(model: Model, how: Pass) -> float:
    """Saved between the matrices of the feed-forward block, linear inputs aside.

    Gated: gate, activation of gate, up (three widths); without a gate: the
    input of the activation function. A mixture of experts also keeps a copy of
    the token for each expert and each expert's output before weighting
    (transformers modeling_mixtral.py). An encoder keeps two dropout masks.
    """
    hidden, size = model.hidden_size or 0, how.element_bytes
    widths = 3 if is_gated(model) else 1
    routed = 2 * (model.experts_per_token or 0) * hidden if model.is_moe else 0
    masks = 2 * hidden if is_encoder(model) else 0
    return (widths * mlp_width(model) / how.tensor + routed) * size + masks


def saved_bytes_per_token(model: Model, how: Pass) -> float:
    """Everything one layer keeps of one token for the backward pass, without checkpointing.

    For a gated decoder in 16 bits with flash attention, trained in full:
    h (20 + 8 f + 4 g) + 4 heads bytes, with f = intermediate / hidden and
    g = key / query heads. Korthikanti et al., arXiv 2205.05198 equation 1 is
    the same count for the GPT layer with dropout and stored scores; tensor
    parallelism divides what lies inside attention and feed-forward blocks, not
    the norms and their outputs (equation 2). Fused norm or activation kernels
    keep less.
    """
    return norm_bytes(model, how) + linear_input_bytes(model, how) + attention_bytes(model, how) + mlp_bytes(model, how)


def selective_bytes_per_token(model: Model, how: Pass) -> float:
    """What one layer keeps of one token with selective checkpointing.

    With flash attention: the layer's input, the attention output and every
    second matrix product (query, value, gate, down), that is h (8 + 2 f + 2 g)
    in 16 bits: pytorch/torchtitan distributed/activation_checkpoint.py,
    per-operator policy. With stored scores: everything but the scores, arXiv
    2205.05198 section 5.
    """
    if not how.flash:
        scores = attention_bytes(model, how)
        kept = 2 * query_width(model) + key_width(model) + value_width(model)
        return saved_bytes_per_token(model, how) - scores + kept * how.element_bytes / how.tensor
    inner = 2 * query_width(model) + value_width(model) + mlp_width(model)
    return (2 * (model.hidden_size or 0) + inner / how.tensor) * how.element_bytes


def checkpoint_bytes_per_token(model: Model, how: Pass) -> float:
    """What one layer keeps of one token with full checkpointing: its input (arXiv 1604.06174; 2 s b h in 16 bits)."""
    return (model.hidden_size or 0) * how.element_bytes


def inference_bytes_per_token(model: Model, tensor: int, element_bytes: int) -> float:
    """Held for one token while a layer runs without gradients.

    The residual and the layer's input, then the larger of attention (query,
    key, value, output) and feed-forward block (gate and up together, then their
    product), with a copy of the token for each of its experts. Read from
    vllm/model_executor/models/llama.py; nothing outlives its layer.
    """
    hidden = model.hidden_size or 0
    attention = 2 * query_width(model) + key_width(model) + value_width(model)
    block = matrices_per_mlp(model) * mlp_width(model)
    routed = (model.experts_per_token or 0) * hidden if model.is_moe else 0
    return (2 * hidden + max(attention, block) / tensor + routed) * element_bytes
