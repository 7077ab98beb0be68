"""Activations of inference: what one layer holds while it runs, nothing of which outlives it."""

from __future__ import annotations

from rackrate.facts.model import Model
from rackrate.memory.layer_inputs import mlp_width, value_width
from rackrate.memory.layer_pass import FP32_BYTES
from rackrate.memory.weights import is_gated, key_width, matrices_per_mlp, query_width


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


def batch_buffer_bytes(model: Model, tokens: int, tensor: int, element_bytes: int) -> float:
    """What a full batch of ``tokens`` tokens leaves in place while the next tokens are drawn.

    Its hidden states, and the workspaces of fused experts, which are kept for
    the next layer and the next batch: for each chosen expert the larger of gate
    with up and the output, which share one buffer, and the product between
    them (vllm-project/vllm model_executor/layers/fused_moe/fused_moe.py,
    v1/worker/workspace.py). 1.93 GiB are logged for DeepSeek-V2-Lite and 2.47
    for Qwen1.5-MoE-A2.7B, 0.4 and 0.3 more than for dense models of their
    vocabularies (llm-d-incubation/llm-d-planner, vLLM 0.19 on an H100).
    """
    hidden = model.hidden_size or 0
    if not model.is_moe:
        return float(element_bytes * tokens * hidden)
    inner = (model.moe_intermediate_size or 0) / tensor
    experts = (model.experts_per_token or 0) * (max(2 * inner, hidden) + inner)
    return element_bytes * tokens * (hidden + experts)


def split_expert_bytes_per_token(model: Model, split: int, element_bytes: int) -> float:
    """Held for one prompt token while all experts are multiplied at once, in ``split`` partial sums.

    Gate and up of each chosen expert, once a partial sum and once added up, and
    four hidden states (casper-hansen/AutoAWQ awq/modules/fused/moe.py asks for
    8; AutoAWQ_kernels awq_ext/quantization/gemm_cuda_gen.cu makes the sums as
    one tensor). 1.0 GiB in 1,024 tokens of Mixtral.
    """
    each = 2 * (model.moe_intermediate_size or 0) * (split + 1)
    return ((model.experts_per_token or 0) * each + 4 * (model.hidden_size or 0)) * element_bytes


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
