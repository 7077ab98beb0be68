"""Adapters: the trainable parameters of low-rank adaptation."""

from __future__ import annotations

from functools import lru_cache

from rackrate.facts.model import Model
from rackrate.memory.layer_inputs import ALL_TARGETS, mlp_width, value_width
from rackrate.memory.weights import attention_layers, dense_layers, key_width, query_width


def expanded(targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets with ``all`` spelled out."""
    return ALL_TARGETS if not targets or "all" in targets else targets


@lru_cache(maxsize=16)  # one question asks it a thousand times
def adapter_params(model: Model, rank: int, targets: tuple[str, ...]) -> float:
    """Parameters of all adapters: rank x (in + out) for each target (LoRA, arXiv 2106.09685 section 4.1).

    A target inside a mixture of experts gets one adapter per expert, as PEFT
    does where experts are separate linear layers.
    """
    names = expanded(targets)
    sizes = _attention_sizes(model)
    per_attention = sum(sizes[name] for name in names if name in sizes)
    total = float(attention_layers(model) * per_attention)
    blocks = _block_count(model)
    for layers, copies, width in blocks:
        one = sum((model.hidden_size or 0) + width for name in names if name in _mlp_names(model))
        total += layers * copies * one
    return rank * total


def output_widths(model: Model, targets: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """The output width of each target in one layer, experts of one token together (grouped-query attention)."""
    hidden, key, width = model.hidden_size or 0, key_width(model), mlp_width(model)
    widths = {"q": query_width(model), "k": key, "v": key, "o": hidden, "gate": width, "up": width, "down": hidden}
    blocks = _mlp_names(model)
    return tuple((n, widths[n]) for n in expanded(targets) if n in {"q", "k", "v", "o"} or n in blocks)


def magnitude_params(model: Model, targets: tuple[str, ...]) -> float:
    """Magnitudes of DoRA: one for each output of each target (arXiv 2402.09353 section 4.1)."""
    return float((model.layers or 0) * sum(width for _, width in output_widths(model, targets)))


def _attention_sizes(model: Model) -> dict[str, int]:
    """Input plus output width of each attention projection."""
    hidden, query = model.hidden_size or 0, query_width(model)
    heads, rope = model.attention_heads or 0, model.mla_qk_rope_head_dim or 0
    if not model.mla_kv_lora_rank:
        key = key_width(model)
        return {"q": hidden + query, "k": hidden + key, "v": hidden + key, "o": query + hidden}
    rank, value = model.mla_kv_lora_rank, value_width(model)
    q_rank = model.mla_q_lora_rank
    q = (hidden + q_rank) + (q_rank + query) if q_rank else hidden + query
    up = rank + query - heads * rope + value
    return {"q": q, "k": hidden + rank + rope, "v": up, "o": value + hidden}


def _mlp_names(model: Model) -> tuple[str, ...]:
    return ("up", "down") if model.mlp_gated is False else ("gate", "up", "down")


def _block_count(model: Model) -> tuple[tuple[int, int, int], ...]:
    """(layers, copies in a layer, width) of the dense and of the expert feed-forward blocks."""
    dense = dense_layers(model)
    experts = (model.experts or 0) + (model.shared_experts or 0)
    return (
        (dense, 1, model.intermediate_size or 0),
        ((model.layers or 0) - dense, experts, model.moe_intermediate_size or 0),
    )
