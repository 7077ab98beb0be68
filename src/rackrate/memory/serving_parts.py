"""Inference: everything on one card but its KV cache and its CUDA context."""

from __future__ import annotations

import math

from rackrate.evidence import Range
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.memory.encoder_decoder import source_parts
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.inference_activations import (
    batch_buffer_bytes,
    eager_prefill_bytes_per_token,
    inference_bytes_per_token,
    planned_graph_bytes,
    split_expert_bytes_per_token,
)
from rackrate.memory.kv_cache import replaced_table_bytes, rotary_table_bytes
from rackrate.memory.layer_pass import element_bytes
from rackrate.memory.logits import prompt_logit_bytes, sampler_bytes
from rackrate.memory.phases import part
from rackrate.memory.seen import seen_parts
from rackrate.memory.stages import Stage
from rackrate.memory.towers import left_wide_bytes
from rackrate.memory.weights import (
    attention_layers,
    is_encoder,
    key_width,
    padded_experts,
    parameter_groups,
    qkv_params,
    query_width,
    shared_experts_out,
    stacked_bytes,
    weight_bytes,
)
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

ACTIVATION_SPREAD = (0.3, 0.3)
"""Relative half widths of activations under and over the formula: kernels reuse buffers or keep a few more."""


EAGER_SPREAD = (0.1, 0.1)
"""The same where operations run one by one, as counted (Qwen2.5 tables of transformers 4.46)."""


PLANNED_SPREAD = (0.1, 0.2)
"""The same where a buffer is planned: newer builds of llama.cpp print up to 15 % more than is counted."""


def _on_the_card(stage: Stage, policy: ServingPolicy) -> Stage:
    """The stage without the input embedding where that stays with the host.

    ggml-org/llama.cpp src/llama-model.cpp: the input layer is never offloaded, and
    a tied head is a second copy on the card.
    """
    return replace(stage, first=False) if policy.planned_graph else stage


def rest_parts(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> tuple[Component, ...]:
    """Everything on one card but its KV cache and its CUDA context."""
    assert workload.serving is not None
    model, serving = workload.model, workload.serving
    form = replace(workload.weights, head_16bit=False) if policy.quantises_head else workload.weights
    ties = not policy.quantises_head and form.id not in policy.unties
    groups = parameter_groups(model)
    if form.id in policy.padded_formats and model.is_moe:
        shared = layout.tensor if layout.expert == 1 else 1
        groups, model = padded_experts(model, groups, shared, policy.padding), replace(model, stored=None)
    groups = shared_experts_out(groups, layout.expert // layout.tensor)
    wide = left_wide_bytes(workload.model, workload.sight, form) * stage.fraction
    weights = (weight_bytes(model, groups, _on_the_card(stage, policy), form, ties=ties) + wide) / layout.tensor
    tokens, prompt = _prefill_tokens(serving, layout, policy)
    working = _working_bytes(workload, layout, policy, tokens)
    parts = [
        part("weights", weights),
        part("activations", _around(working, policy), Phase.PREFILL),
        part("graphs", policy.graph_bytes),
        part("non_torch", policy.non_torch_bytes),
        part("tensor_buffers", policy.tensor_bytes if layout.tensor > 1 else 0.0),
        *_code_parts(workload, stage, layout, policy),
    ]
    if stage.last and not is_encoder(model) and not policy.planned_graph:
        vocabulary = model.vocab_size or 0
        size = element_bytes(workload.precision)
        each = policy.sampler_bytes.shifted(size - 2.0)  # logits in the precision of the model, the rest in FP32
        drawn = sampler_bytes(_rows(serving, layout, policy) * serving.beams, vocabulary, each)
        parts.append(part("sampler", drawn, Phase.DECODE))
        if policy.keeps_batch_buffers:
            parts.append(part("batch_buffers", batch_buffer_bytes(model, tokens, layout.tensor, size), Phase.DECODE))
        if policy.full_prompt_logits:
            kept = tokens * 2 * (model.hidden_size or 0) if policy.eager_prefill else 0.0
            beyond = max(0.0, prompt_logit_bytes(prompt, vocabulary) + kept - working)
            parts.append(part("prompt_logits", beyond, Phase.PREFILL, note="beyond the activations freed by then"))
    if stage.first:
        parts.extend(seen_parts(workload, layout, policy, tokens, working))
        parts.extend(source_parts(workload, layout, policy, working))
    return tuple(parts)


def _around(working: float, policy: ServingPolicy) -> Range:
    if not policy.prefill_seen:
        return Range(0.0, 0.0, working)
    below, above = EAGER_SPREAD if policy.eager_prefill else ACTIVATION_SPREAD
    if policy.planned_graph:
        below, above = PLANNED_SPREAD
    return Range.around(working, below=below, above=above)


def _working_bytes(workload: Workload, layout: Layout, policy: ServingPolicy, tokens: int) -> float:
    """What a layer holds for ``tokens`` tokens, the scores of its attention among them where they are made.

    Scores: 16-bit products and mask sum, an FP32 copy and its softmax, 10 bytes
    per head and pair of tokens (AutoAWQ modules/fused/attn.py). They and the
    feed-forward block are not there at once. Engines with a cache of fixed size
    make the scores of one batch against the whole of it (llama.cpp's compute
    buffer without flash attention: FP32, 4 bytes).
    """
    model, size = workload.model, element_bytes(workload.precision)
    if policy.planned_graph:
        return planned_graph_bytes(model, tokens, _context(workload), scores=policy.score_bytes > 0)
    if not policy.eager_prefill:
        scores = policy.score_bytes * (model.attention_heads or 0) / layout.tensor * tokens * _context(workload)
        return tokens * inference_bytes_per_token(model, layout.tensor, size) + scores
    block = tokens * eager_prefill_bytes_per_token(model, size) / layout.tensor
    if policy.split_k and model.is_moe:
        block = max(block, tokens * split_expert_bytes_per_token(model, policy.split_k, size) / layout.tensor)
    if not policy.score_bytes or workload.serving is None:
        return block
    pairs = float(tokens * workload.serving.prompt_tokens)
    heads = (model.attention_heads or 0) / layout.tensor
    attention = tokens * inference_bytes_per_token(model, layout.tensor, size, attention_alone=True)
    return max(block, attention + policy.score_bytes * heads * pairs)


def _context(workload: Workload) -> int:
    """Tokens that the tokens of a batch attend to at most: in an encoder those of its own input."""
    serving = workload.serving
    if serving is None:
        return 0
    return serving.prompt_tokens if serving.encoded else serving.cached_tokens


def _code_parts(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> list[Component]:
    """What some engines' code holds beside the model: tables of angles, unpacked matrices, copies while loading."""
    model, serving = workload.model, workload.serving
    assert serving is not None
    parts = []
    if policy.rotary_tables and model.head_dim:
        tables = rotary_table_bytes(model, policy, serving.output_tokens)
        tables *= 1 if policy.rotary_tables == "once" else stage.layers
        parts.append(part("rotary_tables", tables))
    if policy.loads_tables:
        left = stage.layers * replaced_table_bytes(model)
        parts.append(part("rotary_tables", left, note="of the layers that fused ones replace"))
    quantised = workload.weights.bits_per_weight < 8 * element_bytes(workload.precision)
    if quantised and policy.unpacked_bytes and stage.last:
        head = policy.unpacked_bytes * (model.vocab_size or 0) * (model.hidden_size or 0)
        parts.append(part("dequantised_matrix", head / layout.tensor, Phase.PREFILL))
    if workload.weights.id in policy.ties_late and model.tie_embeddings and stage.last:
        head = 2.0 * (model.vocab_size or 0) * (model.hidden_size or 0)
        parts.append(part("loading_copies", head / layout.tensor, Phase.LOAD, note="a tied head until it is tied"))
    if policy.square_mask:
        parts.append(part("mask", float(serving.context_tokens**2)))
    if policy.expands_on_read and key_width(model) < query_width(model):
        read = 2 * query_width(model) * element_bytes(workload.precision) / layout.tensor
        parts.append(part("expanded_cache", read * serving.context_tokens * serving.concurrency, Phase.DECODE))
    if policy.loads_twice and quantised:
        twice = attention_layers(model) * stage.fraction * qkv_params(model) * workload.weights.bytes_per_weight
        parts.append(part("loading_copies", twice / layout.tensor, Phase.LOAD))
    if policy.stacks_experts and quantised and model.is_moe:
        parts.append(part("loading_copies", stacked_bytes(model, workload.weights) / layout.tensor, Phase.LOAD))
    return parts


def _prefill_tokens(serving: Serving, layout: Layout, policy: ServingPolicy) -> tuple[int, int]:
    """Tokens processed at once, and prompt tokens of one batch."""
    prompt = math.ceil(serving.concurrency / layout.data) * serving.prompt_tokens
    most = policy.batched_tokens or max(serving.context_tokens, serving.prompt_tokens + serving.output_tokens)
    if serving.encoded and serving.prompt_tokens:  # an encoder reads whole inputs
        most = max(1, most // serving.prompt_tokens) * serving.prompt_tokens
    if policy.continuous_batching:
        return most, min(prompt, most)
    return min(prompt, most), prompt


def _rows(serving: Serving, layout: Layout, policy: ServingPolicy) -> int:
    """Sequences that draw a token together; an engine that measures itself at start tries its largest batch."""
    asked = math.ceil(serving.concurrency / layout.data)
    if policy.memory_share is not None and policy.share_of == "total":
        return policy.default_sequences
    return min(asked, policy.default_sequences) if policy.continuous_batching else asked
