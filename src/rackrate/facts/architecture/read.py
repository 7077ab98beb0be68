"""From a configuration to a model: which family reads it, and what all families have in common."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.facts.architecture import diffusion, encoder, hybrid, latent, mixture, seq2seq, uneven
from rackrate.facts.architecture.dense import STYLES, dense
from rackrate.facts.architecture.mixture import EXPERTS
from rackrate.facts.architecture.pipeline_shapes import pipeline_shape
from rackrate.facts.architecture.quantization import native_format
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.architecture.towers import TOWERS
from rackrate.facts.architecture.vision import vision_language
from rackrate.facts.model import Model
from rackrate.problems import Code, Finding
from rackrate.values import replace

MOST_PARAMETERS = 10**17
"""A count above this is no model: a thousand times the largest."""

# Types that are another one under a second name.
_SAME = {
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma3n": "gemma3n_text",
    "glm4v_text": "glm4",
    "llama4": "llama4_text",
    "kimi_k25": "deepseek_v3",
    "phi4": "phi3",
    "deci": "nemotron-nas",
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "deepseek": "deepseek_v2",
    "grok": "grok-1",
    "minimax_text_01": "minimax",
    "MiniMaxText01": "minimax",
    "deepseek_ref": "deepseek_v4",
}


def model_of(config: Mapping[str, object], *, id: str) -> Model | tuple[Finding, ...]:  # noqa: A002 - as users say
    """The model that a Hugging Face ``config.json`` describes, or what is wrong with it.

    Parameter counts are exact for types whose class is known; an unknown type
    is read as a decoder of the usual kind, and a remark says so. Never raises,
    whatever the table holds.
    """
    table: object = config  # from outside: whatever a file held
    if not isinstance(table, Mapping):
        return (_no_table(),)
    reader = Reader(table, "config.json")
    if "_class_name" in reader:
        return _diffusion(reader, id)
    kind = kind_of(reader)
    if not kind and not any(key in reader for key in ("hidden_size", "n_embd", "d_model")):
        reader.missing("model_type", "the type of the model, such as 'llama' or 'qwen3'")
        return tuple(reader.findings)
    found = _model(reader, kind)
    return finished(reader, found, id=id, kind=kind)


def _diffusion(reader: Reader, name: str) -> Model | tuple[Finding, ...]:
    """A component of a diffusion pipeline, or a whole pipeline of which only the index is at hand."""
    kind = reader.text("_class_name")
    found = diffusion.component(reader, kind)
    if found is None and diffusion.parts_of(reader):
        reader = Reader(reader.table, "model_index.json")
        found = diffusion.pipeline(reader, {})
    if found is None:
        reader.wrong("_class_name", kind, f"one of {', '.join(diffusion.CLASSES)}, or a pipeline with its parts")
        return tuple(reader.findings)
    return finished(reader, found, id=name, kind=kind)


def pipeline_of(
    index: Mapping[str, object],
    counts: Mapping[str, int],
    configs: Mapping[str, Mapping[str, object]],
    *,
    id: str,  # noqa: A002 - as users say
) -> Model | tuple[Finding, ...]:
    """The diffusion pipeline of a ``model_index.json`` whose parts have these parameters and configurations.

    A part without a count is a finding that names the files that would give
    it; one without a configuration leaves the shapes unknown, with a remark.
    """
    table: object = index
    if not isinstance(table, Mapping):
        return (_no_table(),)
    reader = Reader(table, "model_index.json")
    found = diffusion.pipeline(reader, counts)
    shape = pipeline_shape(reader, configs, counts) if not reader.findings else None
    made = finished(reader, found, id=id, kind=reader.text("_class_name"))
    return replace(made, pipeline=replace(shape, id=id)) if isinstance(made, Model) and shape is not None else made


def rotary_positions(reader: Reader, context: int | None) -> int | None:
    """Positions in all tables of rotary angles where linear scaling stretches them; None elsewhere.

    ``factor`` times the context, and the context once more where windows have
    angles of their own (Gemma 3: vllm-project/vllm layers/rotary_embedding,
    linear_scaling_rope.py).
    """
    text = reader.inner("text_config", "llm_config", "language_config", "thinker_config") or reader
    scaling = text.inner("rope_scaling", "rope_parameters")
    whole = (scaling.inner("full_attention") or scaling) if scaling is not None else None
    if whole is None or not context or "linear" not in {whole.text("rope_type"), whole.text("type")}:
        return None
    factor = whole.table.get("factor")
    if not isinstance(factor, int | float) or not 1 <= factor <= _MOST_STRETCH:
        return None
    windows = "rope_local_base_freq" in text or (scaling is not None and "sliding_attention" in scaling)
    return int(context * factor) + context * windows


_MOST_STRETCH = 1024


def finished(reader: Reader, found: Model, *, id: str, kind: str) -> Model | tuple[Finding, ...]:  # noqa: A002
    """The model with its name and native format; or the findings that came up."""
    if not 0 < found.params_total <= MOST_PARAMETERS and not reader.findings:
        reader.wrong("hidden_size", found.params_total, f"sizes that make at most {MOST_PARAMETERS} parameters")
    if reader.findings:
        return tuple(reader.findings)
    if reader.defaulted:
        _remark_defaults(reader)
    return replace(
        found,
        id=id,
        family=kind or "decoder",
        rotary_positions=rotary_positions(reader, found.max_context),
        native_dtype=native_format(reader),
        source="config.json of the model itself",
        remarks=tuple(reader.remarks),
    )


def kind_of(reader: Reader) -> str:
    """The type of the model, in the spelling of the tables of types."""
    kind = reader.text("model_type")
    return _SAME.get(kind, kind) if not _nested(reader) else kind


def _nested(reader: Reader) -> bool:
    return reader.inner("text_config", "llm_config", "language_config", "thinker_config") is not None


def _model(reader: Reader, kind: str) -> Model:
    if kind in encoder.TYPES:
        return encoder.TYPES[kind](reader, kind)
    if kind in seq2seq.TYPES:
        return seq2seq.TYPES[kind](reader, kind)
    if _nested(reader) or kind in TOWERS:
        return vision_language(reader, kind, text_model)
    return text_model(reader, kind)


def text_model(reader: Reader, kind: str) -> Model:
    """A decoder of any family."""
    kind = _SAME.get(kind, kind)
    if kind in hybrid.TYPES:
        return hybrid.TYPES[kind](reader, kind)
    if kind in uneven.TYPES:
        return uneven.TYPES[kind](reader, kind)
    if kind in latent.TYPES:
        return latent.latent(reader, kind)
    if kind in mixture.TYPES:
        return mixture.mixture(reader, kind)
    if kind in STYLES:
        return dense(reader, kind)
    return _fallback(reader, kind)


def _fallback(reader: Reader, kind: str) -> Model:
    """An unknown type, read by the keys that it has."""
    read_as, model = "a decoder like Llama", dense
    if "kv_lora_rank" in reader:
        read_as, model = "a decoder with latent attention like DeepSeek-V3", latent.latent
    elif any(key in reader for key in EXPERTS):
        read_as, model = "a mixture of experts like Mixtral", mixture.mixture
    reader.remark(
        "model_type",
        f"the unknown type {kind!r}, read as {read_as}",
        "a type whose class is known",
        "treat the parameter count as approximate; give the folder with its safetensors for the exact one",
    )
    return model(reader, kind)


def _remark_defaults(reader: Reader) -> None:
    used = ", ".join(f"{key} {value}" for key, value in sorted(reader.defaulted.items()))
    reader.remark("text_config", f"left out: {used}", "every size", "compare them with the model's documentation")


def _no_table() -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject="config.json",
        observed="no table",
        expected='an object such as {"model_type": "llama", ...}',
        action="give the config.json of the model",
    )
