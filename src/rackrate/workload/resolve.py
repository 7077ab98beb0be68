"""Resolving: the names in a request looked up in the facts, and the ones not given chosen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rackrate.facts.accelerator import Precision
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.names import base_of_tuned, resolve_card, resolve_engine, resolve_model
from rackrate.problems import Code, Finding, Severity, nearest
from rackrate.values import Value, replace
from rackrate.workload.draft import Draft
from rackrate.workload.workload import Task

_NATIVE_PRECISION = {"bfloat16": Precision.BF16, "float16": Precision.FP16, "float32": Precision.FP16}
# Checkpoints whose type names a container: the format inside. compressed-tensors holds the 4-bit
# groups of Kimi K2.5 and K3 (config.json of moonshotai/Kimi-K2.5: pack-quantized, int, 4 bits).
_CONTAINED_FORMAT = {"compressed-tensors": "gptq-int4"}
_USUAL_ENGINES = {
    Task.INFERENCE: ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "transformers"),
    Task.LORA: ("peft-trl", "axolotl", "torchtune"),
    Task.QLORA: ("peft-trl", "axolotl", "torchtune"),
    Task.FULL_FINETUNE: ("fsdp", "deepspeed", "axolotl", "torchtune"),
    Task.PRETRAIN: ("fsdp", "deepspeed"),
}
_OWN_ENGINES = {"gguf": "llama.cpp"}
"""Formats that one engine made and most others load as a sideline, by the first word of their ids."""


class Chosen(Value, frozen=True, kw_only=True):
    """The facts that a workload stands on."""

    model: Model
    engine: Engine
    weights: WeightFormat
    precision: Precision


def resolve(draft: Draft, task: Task, vendors: tuple[str, ...], book: FactBook) -> Chosen | None:
    """All names looked up and the rest chosen; None when that fails, which the draft's findings then say."""
    model, engine, weights = named_model(draft, book), named_engine(draft, book), named_format(draft, book)
    if model is not None:
        _check_model(draft, task, model)
    if engine is not None:
        _check_engine(draft, task, engine, book)
        _check_vendors(draft, engine, vendors)
    if weights is not None:
        _check_format(draft, task, weights)
    if draft.refused or model is None:
        return None
    precision = _precision(draft, task, model, weights)
    if weights is None:
        weights = _default_format(draft, _format_wishes(task, model, precision), engine, book)
    if engine is None:
        engine = _default_engine(draft, task, weights, vendors, book)
    elif weights.id not in engine.weight_formats:
        _refuse_pair(draft, engine, weights, book)
    return None if engine is None else Chosen(model=model, engine=engine, weights=weights, precision=precision)


# ---------------------------------------------------------------- names that were given


def named_model(draft: Draft, book: FactBook) -> Model | None:
    """The model asked for; None, with a finding, when it is not known or not given."""
    text = draft.text("model")
    if text is None:
        if not any(f.subject == draft.subject("model") for f in draft.findings):
            draft.problem("model", Code.MISSING_VALUE, "no model", f"one of {len(book.model_ids)} ids", _MODEL_NEXT)
        return None
    found = resolve_model(text, book.model_ids)
    if isinstance(found, Finding):
        base = base_of_tuned(text, book.model_ids)
        other = _as_base(text, base) if base else found
        draft.findings.append(replace(other, subject=draft.subject("model")))
        found = base or ""
    if not found:
        return None
    model = book.model(found)
    draft.findings.extend(model.remarks)
    return model


def _as_base(text: str, base: str) -> Finding:
    return Finding(
        code=Code.MODEL_INEXACT,
        subject="model",
        severity=Severity.WARNING,
        observed=text,
        expected=f"a bundled model; the shape of {base} is used, from which this name differs by tuning alone",
        action="give its config.json or hub:owner/name to read its own shape",
    )


_MODEL_NEXT = 'give model = "meta-llama/Llama-2-7b-hf", or --model'


def named_engine(draft: Draft, book: FactBook) -> Engine | None:
    """The engine asked for; None when none was, or, with a finding, when it is not known."""
    text = draft.text("engine")
    if text is None:
        return None
    name, mark, version = text.partition("==")
    if mark and not any(map(str.isdigit, version)):
        action = f"write {name}==4.46, or {name} alone for its newest version"
        draft.problem("engine", Code.BAD_VALUE, text, "a version in numbers behind ==", action)
        return None
    found = resolve_engine(name, book.engine_ids)
    if isinstance(found, Finding):
        draft.findings.append(replace(found, subject=draft.subject("engine")))
        return None
    return book.engine(f"{found}{mark}{version.strip()}")


def named_format(draft: Draft, book: FactBook) -> WeightFormat | None:
    """The weight format asked for; None when none was, or, with a finding, when it is not known."""
    text = draft.text("quantization")
    if text is None:
        return None
    known = {_plain(format_id): format_id for format_id in book.formats}
    if _plain(text) in known:
        return book.formats[known[_plain(text)]]
    draft.findings.append(_unknown_name(draft.subject("quantization"), text, "a weight format", book.formats))
    return None


def named_cards(draft: Draft, book: FactBook) -> tuple[str, ...]:
    """The ids of the cards allowed; a name that means several cards allows them all."""
    found: dict[str, None] = {}
    for text in draft.texts("limits.gpus"):
        ids, profile = resolve_card(text, book.accelerators), _MIG_PROFILE.search(text.casefold())
        whole = ids or resolve_card(text[: profile.start()], book.accelerators) if profile else ()
        if profile and whole:
            draft.findings.append(_slice_named(draft.subject("limits.gpus"), text, profile[0], whole))
            continue
        found |= dict.fromkeys(ids)
        if not ids:
            wrong = _unknown_name(draft.subject("limits.gpus"), text, "a card, by its id", book.accelerators)
            draft.findings.append(replace(wrong, action=_card_meant(text, book) or wrong.action))
    return tuple(found)


def _card_meant(text: str, book: FactBook) -> str:
    """What to write instead of a name that no card has: a card of a name like it; a size is no name."""
    import re  # imported here: only the unhappy path needs it

    size = re.fullmatch(r"(?i)(\d{1,4})\s*gi?b?", text.strip())
    if size:
        return f"name a card, such as rtx4090; --require min_memory_gb={size[1]} takes all with as much memory or more"
    from rackrate.facts.loose_names import suggest_cards

    close = suggest_cards(text, book.accelerators)
    return f"did you mean {' or '.join(close)}?" if close else ""


_MIG_PROFILE = re.compile(r"(?<![0-9a-z])\d+g\.\d+gb(?:\+[a-z.]+)?")


def _slice_named(subject: str, text: str, profile: str, cards: Sequence[str]) -> Finding:
    """The refusal of a slice of a card, where whole cards are asked for: what holds on one does not on the other."""
    others = f" (or {', '.join(cards[1:])})" if cards[1:] else ""
    return Finding(
        code=Code.BAD_VALUE,
        subject=subject,
        observed=text,
        expected=f"a whole card; {profile} is a slice of one",
        action=f"name the card, {cards[0]}{others}; `rackrate fit` with it tells which of its slices hold the work",
    )


def named_vendors(draft: Draft, book: FactBook) -> tuple[str, ...]:
    """The vendors allowed, as the facts spell them."""
    known = {card.vendor.casefold(): card.vendor for card in book.accelerators.values()}
    found = []
    for text in draft.texts("limits.vendors"):
        if text.casefold() in known:
            found.append(known[text.casefold()])
        else:
            subject = draft.subject("limits.vendors")
            draft.findings.append(_unknown_name(subject, text, "a vendor of cards", known.values()))
    return tuple(found)


def check_currency(draft: Draft, path: str, currency: str, book: FactBook) -> None:
    """Refuse a currency that has no exchange rate."""
    if not book.rates.knows(currency):
        known = sorted({book.rates.base, *book.rates.per_base})
        found = _unknown_name(draft.subject(path), currency, "a currency with an exchange rate", known)
        draft.findings.append(replace(found, action=f"use one of {', '.join(known)}"))


def _unknown_name(subject: str, text: str, expected: str, known: Iterable[str]) -> Finding:
    ids = list(known)
    close = nearest(text, ids)
    examples = ", ".join(ids[:6])
    action = f"did you mean {' or '.join(close)}?" if close else f"there are {len(ids)}, such as {examples}"
    return Finding(code=Code.UNKNOWN_NAME, subject=subject, observed=text, expected=expected, action=action)


def _plain(text: str) -> str:
    return text.casefold().replace("_", "-")


# ---------------------------------------------------------------- do they go together


_FEWEST_PLAIN_BITS = 16


def is_quantised(weights: WeightFormat) -> bool:
    """Whether the format keeps fewer than 16 bits of a weight."""
    return weights.bits_per_weight < _FEWEST_PLAIN_BITS


def _check_model(draft: Draft, task: Task, model: Model) -> None:
    """Memory follows from the numbers of a decoder or an encoder; other models wait for formulas of their own."""
    sized = None not in (model.hidden_size, model.layers, model.attention_heads, model.vocab_size)
    cached = model.generates_text and None not in (model.kv_heads, model.head_dim, model.layers_full)
    if not sized or not (task.trains or cached or model.only_encodes):
        draft.problem(
            "model",
            Code.NOT_YET,
            f"{model.id} ({model.modality}, attention {model.attention}) for {task}",
            "a text decoder or encoder whose architecture is known",
            "choose such a model; `rackrate gpu` compares cards for other work",
        )


def _check_engine(draft: Draft, task: Task, engine: Engine, book: FactBook) -> None:
    if task not in engine.tasks:
        able = [e.id for e in map(book.engine, book.engine_ids) if task in e.tasks]
        draft.problem(
            "engine",
            Code.CONFLICT,
            f"{engine.id} for {task}",
            f"an engine for {task}: {', '.join(able)}",
            f"choose one of them, or a task of {engine.id}: {', '.join(sorted(engine.tasks))}",
        )


def _check_vendors(draft: Draft, engine: Engine, vendors: tuple[str, ...]) -> None:
    if vendors and not set(vendors) & engine.vendors:
        draft.problem(
            "limits.vendors",
            Code.CONFLICT,
            f"{engine.id} on {', '.join(vendors)}",
            f"a vendor that {engine.id} runs on: {', '.join(sorted(engine.vendors))}",
            "change limits.vendors or the engine",
        )


def _check_format(draft: Draft, task: Task, weights: WeightFormat) -> None:
    wrong = {
        Task.QLORA: not is_quantised(weights),
        Task.LORA: is_quantised(weights),
        Task.FULL_FINETUNE: is_quantised(weights),
        Task.PRETRAIN: is_quantised(weights),
    }
    if wrong.get(task, False):
        bits = "fewer than 16 bits" if task is Task.QLORA else "16 or 32 bits"
        draft.problem(
            "quantization",
            Code.CONFLICT,
            f"{weights.id} ({weights.bits_per_weight:g} bits a weight) for {task}",
            f"a format of {bits}",
            "choose nf4-dq, or task lora" if task is Task.QLORA else "leave quantization out, or choose task qlora",
        )


def _refuse_pair(draft: Draft, engine: Engine, weights: WeightFormat, book: FactBook) -> None:
    able = [e.id for e in map(book.engine, book.engine_ids) if weights.id in e.weight_formats]
    draft.problem(
        "quantization" if "quantization" in draft else "engine",
        Code.CONFLICT,
        f"{engine.id} does not load {weights.id}",
        f"a format that {engine.id} loads: {', '.join(sorted(engine.weight_formats))}",
        f"choose one of them, or an engine for {weights.id}: {', '.join(able) or 'none is known'}",
    )


# ---------------------------------------------------------------- names that were not given


def _precision(draft: Draft, task: Task, model: Model, weights: WeightFormat | None) -> Precision:
    """Training in BF16; inference in the type of the weights, the checkpoint's, or BF16."""
    if task.trains:
        default, why = Precision.BF16, "wide_range"
    elif weights is not None and weights.id in {"bf16", "fp16", "fp32"}:
        default, why = Precision(weights.id), "same_as_format"
    elif model.native_dtype in _NATIVE_PRECISION:
        default, why = _NATIVE_PRECISION[model.native_dtype], f"native_dtype({model.native_dtype})"
    elif model.native_dtype:
        default, why = Precision.BF16, f"quantised_checkpoint({model.native_dtype})"
    else:
        default, why = Precision.BF16, "native_dtype_unknown"
    return Precision(draft.choose("precision", default.value, why))


def _format_wishes(task: Task, model: Model, precision: Precision) -> Sequence[tuple[str, str]]:
    """Formats to take when none was given, best first, each with its reason."""
    plain = (precision.value if precision is not Precision.FP8 else "bf16", "same_as_precision")
    if task is Task.QLORA:
        return (("nf4-dq", "qlora_format"), ("nf4", "qlora_format"))
    if task.trains:
        return (plain,)
    if precision is Precision.FP8:
        return (("fp8", "same_as_precision"), plain)
    native = model.native_dtype
    return ((_CONTAINED_FORMAT.get(native, native), f"native_format({native})"), plain)


def _default_format(
    draft: Draft, wishes: Sequence[tuple[str, str]], engine: Engine | None, book: FactBook
) -> WeightFormat:
    """The first wish that is a known format and that the engine, if one was given, loads; else the last wish."""
    known = [(format_id, why) for format_id, why in wishes if format_id in book.formats]
    loaded = [wish for wish in known if engine is None or wish[0] in engine.weight_formats]
    format_id, why = (loaded or known[-1:] or [wishes[-1]])[0]
    draft.assume("quantization", format_id, why)
    return book.formats[format_id]


def _default_engine(
    draft: Draft, task: Task, weights: WeightFormat, vendors: tuple[str, ...], book: FactBook
) -> Engine | None:
    """The most used engine that does the task, loads the format and runs on an allowed vendor's cards."""
    own = _OWN_ENGINES.get(weights.id.partition("-")[0], "")
    usual = [engine_id for engine_id in (own, *_USUAL_ENGINES[task]) if engine_id in book.engine_ids]
    for engine in map(book.engine, dict.fromkeys((*usual, *book.engine_ids))):
        if (
            task in engine.tasks
            and weights.id in engine.weight_formats
            and (not vendors or set(vendors) & engine.vendors)
        ):
            draft.assume("engine", engine.id, "format_engine" if engine.id == own else "usual_engine")
            return engine
    draft.problem(
        "quantization" if "quantization" in draft else "engine",
        Code.CONFLICT,
        f"{task} with {weights.id}" + (f" on {', '.join(vendors)}" if vendors else ""),
        "a format and a vendor that some engine supports for the task",
        "choose another quantization or vendor, or name the engine",
    )
    return None
