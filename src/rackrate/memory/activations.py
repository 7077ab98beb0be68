"""Activations: what a forward pass keeps for its backward pass, and what inference holds while it runs.

All per-token figures are for one layer and one token on one card.
"""

from __future__ import annotations

from rackrate.facts.accelerator import Precision
from rackrate.facts.engine import TrainingPolicy
from rackrate.facts.model import Model
from rackrate.memory.traits import (
    FUSED_IN_HUB,
    RELU,
    TANH_IN_PYTHON,
    WIDE_NORMS,
    caps_scores,
    has_layer_norm,
    norm_inputs,
    norm_outputs,
    normalises_heads,
)
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
    ``tokens`` of one micro-batch. ``code`` says what the engine's own layers
    keep; ``quantised``: the frozen weights are unpacked for each product.
    """

    element_bytes: int
    tensor: int
    flash: bool
    adapters: tuple[str, ...]
    adapter_bytes: int
    tokens_per_sequence: int
    tokens: int
    code: TrainingPolicy | None = None
    quantised: bool = False
    compiled: bool = False
    sequence: bool = False

    @property
    def whole(self) -> int:
        """Cards that divide what tensor parallelism leaves whole: norms, their outputs and residuals."""
        return self.tensor if self.sequence else 1

    @property
    def expands_heads(self) -> bool:
        """Whether grouped keys and values are copied to all query heads."""
        return self.code is not None and self.code.expands_heads

    @property
    def fused_qkv(self) -> bool:
        """Whether one matrix makes queries, keys and values."""
        return self.code is not None and self.code.fused_qkv

    @property
    def dropout(self) -> bool:
        """Whether the inputs of adapters are dropped out."""
        return self.code is not None and self.code.adapter_dropout

    @property
    def hub(self) -> bool:
        """Whether layers are those of transformers."""
        return self.code is not None and self.code.hub_code

    @property
    def fused(self) -> bool:
        """Whether norms and gates are single kernels that keep their inputs alone."""
        return self.code is not None and self.code.fused_layers

    @property
    def plain_norms(self) -> bool:
        """Whether norms keep their input alone, in the compute type."""
        return self.compiled or self.fused or (self.code is not None and self.code.fused_norms)

    @property
    def writes_over(self) -> bool:
        """Whether hand-written kernels put gradients where kept values were."""
        return self.code is not None and self.code.writes_over

    @property
    def keeps_inputs(self) -> bool:
        """Whether quantised layers keep their inputs."""
        return self.quantised and self.code is not None and self.code.keeps_inputs


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
    branch = size + how.adapter_bytes if "down" in how.adapters and how.adapter_bytes > size else 0
    return widths * mlp_width(model) / how.tensor * size + hidden * (size + branch) / how.whole


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
    return (2 * (model.hidden_size or 0) / how.whole + inner / how.tensor) * how.element_bytes


def checkpoint_bytes_per_token(model: Model, how: Pass) -> float:
    """What one layer keeps of one token with full checkpointing: its input (arXiv 1604.06174; 2 s b h in 16 bits)."""
    return (model.hidden_size or 0) * how.element_bytes / how.whole


def inference_bytes_per_token(model: Model, tensor: int, element_bytes: int, *, attention_alone: bool = False) -> float:
    """Held for one token while a layer runs without gradients.

    The residual and the layer's input, then the larger of attention (query,
    key, value, output) and feed-forward block (gate and up together, then their
    product), with a copy of the token for each of its experts. Read from
    vllm/model_executor/models/llama.py; nothing outlives its layer.
    """
    hidden = model.hidden_size or 0
    attention = 2 * query_width(model) + key_width(model) + value_width(model)
    block = 0 if attention_alone else matrices_per_mlp(model) * mlp_width(model)
    routed = (model.experts_per_token or 0) * hidden if model.is_moe else 0
    return (2 * hidden + max(attention, block) / tensor + routed) * element_bytes


def planned_graph_bytes(model: Model, batch: int, context: int, *, scores: bool) -> float:
    """The compute buffer of ggml for a batch of tokens against a cache of ``context`` tokens, in FP32.

    The larger of three moments: logits of every token and a hidden state;
    attention: query, key, value and output as wide as the hidden state, the mask
    in FP32 and, for flash attention, in FP16, or the scores of all heads; the
    feed-forward block. ggml-org/llama.cpp src/llama-graph.cpp, reserved at
    start for a full batch (llama-context.cpp): 296 MiB for Llama-2-7B at 4,096
    tokens with scores, 258.5 for Llama-3-8B at 8,192 without.
    """
    hidden = model.hidden_size or 0
    logits = (model.vocab_size or 0) + hidden
    mask = context * (1.0 if scores else 1.5)
    attention = 4 * hidden + mask + ((model.attention_heads or 0) * context if scores else 0)
    block = 3 * hidden + (2 if is_gated(model) else 1) * mlp_width(model)
    return FP32_BYTES * batch * max(logits, attention, block)


def eager_prefill_bytes_per_token(model: Model, element_bytes: int) -> float:
    """Held for one prompt token where a layer runs operation by operation, at its fullest.

    In the feed-forward block: the activated gate, up and their product (three
    widths; two without a gate), and four hidden states: the model's input, the
    layer's, the residual and the norm's output, each still held by a caller;
    the rotary angles (cosine and sine, one head wide) and three 64-bit integers
    of ids, positions and mask. transformers 4.46 modeling_qwen2.py:
    6 f h + 8 h + 4 d + 24 bytes in 16 bits. A mixture of experts works on one
    expert's share at a time, at most every token.
    """
    hidden, size = model.hidden_size or 0, element_bytes
    width = (model.moe_intermediate_size or 0) if model.is_moe else (model.intermediate_size or 0)
    block = (3 if is_gated(model) else 2) * width
    attention = 2 * query_width(model) + key_width(model) + value_width(model)
    angles = 2 * (model.head_dim or 0)
    return (4 * hidden + max(block, attention) + angles) * size + 3 * 8
