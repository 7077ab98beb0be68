"""Vision-language models: a decoder, a tower that sees, and the projection between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.architecture.towers import TOWERS
from rackrate.facts.model import Model, Tower
from rackrate.values import replace

TextModel = Callable[[Reader, str], Model]

# Sizes that a nested text model may leave out: the defaults of its class (transformers configuration_<type>.py).
_LLAMA = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}
TEXT_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA | {"intermediate_size": 14336, "num_key_value_heads": 8},
    "qwen2": {"num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 151936},
    "gemma": {"num_hidden_layers": 28, "num_attention_heads": 16, "vocab_size": 256000, "head_dim": 256},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
}
_TEXT_TYPES = {
    "llava": "llama",
    "llava_next": "llama",
    "idefics3": "llama",
    "smolvlm": "llama",
    "paligemma": "gemma",
    "gemma3": "gemma3_text",
}
_TEXT_TYPES |= {"llava_onevision": "qwen2", "glm4v": "glm4v_text", "glm4v_moe": "glm4v_moe_text"}
_TEXT_TYPES |= {
    "minimax_m3_vl": "minimax_m3_vl_text",
    "step3p7": "step3p7",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "vipllava": "llama",
}


def vision_language(reader: Reader, kind: str, text_model: TextModel) -> Model:
    """The text model with the tower's parameters added; what is not known about a tower is said in a remark."""
    inner = reader.inner("text_config", "llm_config", "language_config", "thinker_config")
    text = inner if inner is not None else reader
    text_kind = _text_kind(text, kind)
    if inner is not None:
        text.defaults = TEXT_DEFAULTS.get(text_kind, {})
        text = _with_tie(reader, text)
    found = text_model(text, text_kind)
    reader.defaulted |= text.defaulted
    account = _tower(reader, kind, found.hidden_size or 0)
    if account is None:
        notes = _noted(found, "text tower only")
        return replace(found, modality="image+text", notes=notes, tower=tower_shape(reader))
    groups = dict(found.params_by_group)
    groups["vision"] = groups.get("vision", 0) + account.total
    return replace(
        found,
        params_total=found.params_total + account.total,
        params_active=found.params_active + account.total,
        params_by_group=tuple(groups.items()),
        modality="image+text",
        tower=tower_shape(reader),
    )


_INNER, _DEPTH = ("vt_intermediate_size", "intermediate_size"), ("vt_num_hidden_layers", "num_hidden_layers", "depth")
_MERGES = ("spatial_merge_size", "scale_factor", "pooling_kernel_size")


def tower_shape(reader: Reader) -> Tower | None:
    """The sizes of the tower, under the names that families give them; what is not said is left to the family."""
    vision = reader.inner("vision_config")
    if vision is None:
        return None
    width = vision.maybe("vt_hidden_size", "embed_dim", "hidden_size") or 0
    ratio = vision.table.get("mlp_ratio")
    return Tower(
        width=width,
        feed=vision.maybe(*_INNER) or (int(ratio * width) if isinstance(ratio, int | float) and 0 < ratio < 100 else 0),  # noqa: PLR2004
        layers=(vision.maybe(*_DEPTH) or 0) + (vision.maybe("num_global_layers") or 0),
        side=reader.maybe("force_image_size") or _square(vision, "image_size"),
        patch=_square(vision, "patch_size"),
        merge=vision.maybe(*_MERGES) or reader.maybe(*_MERGES) or 0,
    )


def _square(vision: Reader, key: str) -> int:
    """A side that is written once, or for both directions."""
    if isinstance(vision.table.get(key), list | tuple):
        return next(iter(vision.wholes(key)), 0)
    return vision.maybe(key) or 0


def _text_kind(text: Reader, kind: str) -> str:
    named = text.text("model_type")
    if named and named != kind:
        return named
    return {"qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", **_TEXT_TYPES}.get(kind, named or kind)


def _with_tie(reader: Reader, text: Reader) -> Reader:
    """The text table with the outer table's word on tied embeddings, which goes before its own."""
    if "tie_word_embeddings" not in reader:
        return text
    made = Reader({**text.table, "tie_word_embeddings": reader.table["tie_word_embeddings"]}, text.where, text)
    made.defaults, made.defaulted = text.defaults, text.defaulted
    return made


def _noted(found: Model, note: str) -> str:
    return f"{found.notes}; {note}" if found.notes else note


def _tower(reader: Reader, kind: str, text: int) -> Account | None:
    """The tower and what joins it to a text model of width ``text``; None where the type's tower is not known."""
    vision = reader.inner("vision_config")
    if kind not in TOWERS or vision is None:
        if vision is not None or reader.inner("audio_config", "visual") is not None:
            reader.remark(
                "vision_config",
                f"a tower of {kind!r} whose class is not known",
                "a known tower",
                "the text model alone is counted; give the folder with its safetensors for the whole",
            )
        return None
    return TOWERS[kind](reader, vision, text)
