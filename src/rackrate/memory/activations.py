"""Activations of training: what a forward pass keeps for its backward pass.

All figures are for one layer and one token on one card, in bytes.
"""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.layer_inputs import linear_input_bytes, mlp_width, value_width
from rackrate.memory.layer_pass import FP32_BYTES, Pass
from rackrate.memory.traits import (
    FUSED_IN_HUB,
    RELU,
    TANH_IN_PYTHON,
    WIDE_NORMS,
    caps_scores,
    has_layer_norm,
    norm_inputs,
    normalises_heads,
)
from rackrate.memory.weights import is_encoder, is_gated, key_width, matrices_per_mlp, query_width


def norm_bytes(model: Model, how: Pass) -> float:
    """Saved by the norms of a layer, their outputs aside.

    RMSNorm works on an FP32 copy of its input (4 B) and keeps the normalised
    value for the gradient of its weight when that is trained; LayerNorm keeps
    its input. transformers modeling_llama.py LlamaRMSNorm, litgpt and torchtune
    RMSNorm, and torch native_layer_norm. Models without a gate are taken to use
    LayerNorm. Compiled norms keep their input in the compute type and make the
    rest again (Inductor fuses them with what reads them).
    """
    size = how.element_bytes
    width = norm_inputs(model) * (model.hidden_size or 0)
    if how.plain_norms or has_layer_norm(model):
        return width * size / how.whole
    heads = (query_width(model) + key_width(model)) / how.tensor if normalises_heads(model) else 0.0
    normalised = FP32_BYTES if model.family in WIDE_NORMS and how.hub else size
    return (width / how.whole + heads) * (FP32_BYTES + (0 if how.adapters else normalised))


def final_norm_bytes(model: Model, how: Pass) -> float:
    """Saved of one token by the last norm, and by a trained head: its input."""
    hidden, size = model.hidden_size or 0, how.element_bytes
    trained = not how.adapters
    if how.plain_norms or has_layer_norm(model):
        norm = size
    else:
        normalised = FP32_BYTES if model.family in WIDE_NORMS and how.hub else size
        norm = FP32_BYTES + (normalised if trained else 0)
    head = size if trained and not is_encoder(model) else 0
    return hidden * (norm + head) / how.whole


def attention_bytes(model: Model, how: Pass) -> float:
    """Saved by attention: queries, keys, values, output and, with flash attention, 4 B per head and token.

    FlashAttention keeps the log-sum-exp instead of the scores (arXiv
    2205.14135). Without it each head keeps, for every pair of tokens, the
    softmax in FP32 and its cast (transformers eager_attention_forward), and an
    encoder also a dropout mask and the dropped scores (arXiv 2205.05198,
    section 4.1), and capped scores the hyperbolic tangent. Code that expands grouped heads keeps keys and values of all
    query heads; where one matrix makes all three and none is expanded, its
    whole output stays beside the rotated queries and keys, because the values
    are a view of it (litgpt/model.py CausalSelfAttention).
    """
    heads, size = model.attention_heads or 0, how.element_bytes
    query, keys, values = query_width(model), key_width(model), value_width(model)
    grouped = keys < query and not model.is_mla
    if how.expands_heads and grouped:
        keys = values = query
    widths = 2 * query + keys + values
    fused = how.fused_qkv or (how.hub and model.family in FUSED_IN_HUB)
    if fused and not (how.expands_heads and grouped):
        widths += query + keys
    capped = caps_scores(model) and not how.hub
    if how.flash and not capped:
        return (widths * size + FP32_BYTES * heads) / how.tensor
    pair = FP32_BYTES + (size if size < FP32_BYTES else 0) + ((1 + size) if is_encoder(model) else 0)
    pair += size if capped else 0
    return (widths * size + heads * pair * how.tokens_per_sequence) / how.tensor


def mlp_bytes(model: Model, how: Pass) -> float:
    """Saved between the matrices of the feed-forward block, linear inputs aside.

    Gated: gate, activation of gate, up (three widths; fused kernels activate
    again and keep two: Megatron-LM fusions/fused_bias_swiglu.py); without a gate:
    the input of the activation function. A mixture of experts also keeps a copy of
    the token for each expert and each expert's output before weighting
    (transformers modeling_mixtral.py). An encoder keeps two dropout masks.
    """
    hidden, size = model.hidden_size or 0, how.element_bytes
    widths = (2 if how.fused else 3) if is_gated(model) else _ungated_widths(model, how)
    routed = 2 * (model.experts_per_token or 0) * hidden if model.is_moe else 0
    masks = 2 * hidden if is_encoder(model) else 0
    return (widths * mlp_width(model) / how.tensor + routed) * size + masks


def _ungated_widths(model: Model, how: Pass) -> int:
    """Widths that an activation function without a gate keeps beside the input of the next matrix."""
    if model.family in RELU:
        return 1 if how.adapters else 0
    return 4 if how.hub and model.family in TANH_IN_PYTHON else 1


def saved_bytes_per_token(model: Model, how: Pass) -> float:
    """Everything one layer keeps of one token for the backward pass, without checkpointing.

    For a gated decoder in 16 bits with flash attention, trained in full:
    h (20 + 8 f + 4 g) + 4 heads bytes, with f = intermediate / hidden and
    g = key / query heads. Korthikanti et al., arXiv 2205.05198 equation 1 is
    the same count for the GPT layer with dropout and stored scores; tensor
    parallelism divides what lies inside attention and feed-forward blocks, not
    the norms and their outputs (equation 2), which sequence parallelism divides
    too (equation 4). Fused activation kernels keep less.
    """
    return norm_bytes(model, how) + linear_input_bytes(model, how) + attention_bytes(model, how) + mlp_bytes(model, how)


def first_norm_bytes_per_token(model: Model, how: Pass) -> float:
    """What the first norm does not keep where the embedding is frozen: its input needs no gradient."""
    if not how.adapters or has_layer_norm(model):
        return 0.0
    return (model.hidden_size or 0) * (how.element_bytes if how.plain_norms else FP32_BYTES) / how.whole


def running_bytes_per_token(model: Model, how: Pass) -> float:
    """Held beside what a layer keeps while it runs operation by operation in the backward pass, at its fullest.

    The gradients of gate and up, or of the one matrix before the activation,
    and the arriving gradient. Adapters in a wider type add what their branch
    beside the down projection is handed: one hidden state more in the compute
    type and one in the adapter's. transformers modeling_llama.py LlamaMLP, peft
    lora/layer.py. Compiled code fuses these, and some kernels write over what
    was kept.
    """
    if how.compiled or how.writes_over:
        return 0.0
    hidden, size = model.hidden_size or 0, how.element_bytes
    widths = matrices_per_mlp(model) - 1
    at_once = experts_at_once(model, how)
    branch = size + how.adapter_bytes if "down" in how.adapters and how.adapter_bytes > size else 0
    return widths * mlp_width(model) * at_once / how.tensor * size + hidden * (size + branch) / how.whole


def experts_at_once(model: Model, how: Pass) -> float:
    """The part of a token's experts that run together: all, or one of the layer's where a loop goes through them.

    transformers modeling_mixtral.py MixtralSparseMoeBlock: each expert sees its
    own tokens, tokens x experts a token / experts of them on average.
    """
    return 1.0 / model.experts if how.hub and model.is_moe and model.experts else 1.0


def selective_bytes_per_token(model: Model, how: Pass) -> float:
    """What one layer keeps of one token with selective checkpointing.

    With flash attention: the layer's input, the attention output and every
    second matrix product (query, value, gate, down), that is h (8 + 2 f + 2 g)
    in 16 bits, 2 h less where compiled: pytorch/torchtitan distributed/activation_checkpoint.py,
    per-operator policy. With stored scores: everything but the scores, arXiv
    2205.05198 section 5.
    """
    if not how.flash:
        scores = attention_bytes(model, how)
        kept = 2 * query_width(model) + key_width(model) + value_width(model)
        return saved_bytes_per_token(model, how) - scores + kept * how.element_bytes / how.tensor
    inner = 2 * query_width(model) + value_width(model) + mlp_width(model)
    return ((model.hidden_size or 0) * _selected_hidden(how) + inner / how.tensor) * how.element_bytes


def _selected_hidden(how: Pass) -> float:
    """Hidden states of one layer that selective checkpointing keeps: its input and what the policy saves beside.

    The down projection's product, which compiled code leaves out because nothing
    is made of it again. Where a sequence is divided, that product is whole, a
    part of a sum, and what both sums are scattered to is kept too.
    """
    product = 0 if how.compiled else 1
    return (1 + product * how.whole + (1 + product if how.whole > 1 else 0)) / how.whole


def checkpoint_bytes_per_token(model: Model, how: Pass) -> float:
    """What one layer keeps of one token with full checkpointing: its input (arXiv 1604.06174; 2 s b h in 16 bits)."""
    return (model.hidden_size or 0) * how.element_bytes / how.whole
