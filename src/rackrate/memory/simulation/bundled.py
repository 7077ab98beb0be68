"""From a bundled model's record to the configuration that transformers builds it from.

Types that differ from a record by nothing but what is here; of any other model its own config.json is needed.
"""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.model import Model

TYPES = {
    "LLaMA 1": "llama",
    "Llama 2": "llama",
    "Llama 3": "llama",
    "Llama 3.1": "llama",
    "Llama 3.2": "llama",
    "Llama 3.3": "llama",
    "CodeLlama": "llama",
    "DeepSeek Coder": "llama",
    "DeepSeek LLM": "llama",
    "Falcon 3": "llama",
    "OpenLLaMA": "llama",
    "Salamandra": "llama",
    "SmolLM": "llama",
    "SmolLM2": "llama",
    "TinyLlama": "llama",
    "Yi": "llama",
    "Mistral": "mistral",
    "Mixtral": "mixtral",
    "QwQ": "qwen2",
    "Qwen2": "qwen2",
    "Qwen2.5": "qwen2",
    "Qwen2.5-1M": "qwen2",
    "Qwen2.5-Coder": "qwen2",
    "Qwen2.5-Math": "qwen2",
    "Qwen3": "qwen3",
    "Qwen3 MoE": "qwen3_moe",
    "Gemma": "gemma",
    "Gemma 2": "gemma2",
}
"""The type of each family in transformers (src/transformers/models/<type>)."""

_DISTILLED = "DeepSeek R1 distill"


def config_of(model: Model) -> tuple[tuple[str, object], ...] | Unknown:
    """The configuration of a bundled model."""
    kind = TYPES.get(model.family, "")
    if model.family == _DISTILLED:
        kind = "llama" if "Llama" in model.id else "qwen2"
    if not kind or model.modality != "text" or None in {model.hidden_size, model.layers, model.vocab_size}:
        return Unknown(f"{model.id} cannot be built from its record")
    if model.is_moe and kind not in {"mixtral", "qwen3_moe"}:
        return Unknown(f"{model.id} has experts that its record does not describe")
    values: dict[str, object] = {
        "model_type": kind,
        "vocab_size": model.vocab_size,
        "hidden_size": model.hidden_size,
        "intermediate_size": model.intermediate_size or model.moe_intermediate_size,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.attention_heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "max_position_embeddings": model.max_context,
        "tie_word_embeddings": bool(model.tie_embeddings),
        "pad_token_id": None,
    }
    if kind == "mistral":
        values["sliding_window"] = model.window
    if kind == "mixtral":
        values |= {"num_local_experts": model.experts, "num_experts_per_tok": model.experts_per_token}
    if kind == "qwen3_moe":
        values |= {
            "num_experts": model.experts,
            "num_experts_per_tok": model.experts_per_token,
            "moe_intermediate_size": model.moe_intermediate_size,
        }
    return tuple(values.items())
