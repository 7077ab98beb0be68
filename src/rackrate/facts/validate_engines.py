"""Faults of engine files: keys, words that other files define, shares and sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackrate.facts.engine import Engine
from rackrate.facts.engine_file import engine
from rackrate.problems import Code, Finding

TASKS = frozenset({"inference", "lora", "qlora", "full_finetune", "pretrain", "diffusion", "render"})
LAYOUTS = frozenset({"tensor", "pipeline", "data", "zero", "layer_split"})
LOSSES = frozenset({"full", "chunked", "fused"})
ATTENTIONS = frozenset({"flash", "eager"})
SHARES_OF = frozenset({"total", "static", "free"})


def engine_faults(
    name: str, document: Mapping[str, object], *, formats: Collection[str], vendors: Collection[str]
) -> Iterator[Finding]:
    """The faults of the engine file ``name``; ``formats`` and ``vendors`` are what the other files know."""
    try:
        found = engine(document, name)
    except ValueError as problem:
        yield Finding(code=Code.BAD_VALUE, subject=name, observed=str(problem), action="mend the key that is named")
        return
    for key, words, known in (
        ("tasks", found.tasks, TASKS),
        ("parallel", found.parallel, LAYOUTS),
        ("weight_formats", found.weight_formats, formats),
        ("vendors", found.vendors, {*vendors, "Apple"}),
    ):
        for word in sorted(words - set(known)):
            yield _fault(Code.UNKNOWN_NAME, f"{name} {key}", word, f"one of {', '.join(sorted(known))}")
    yield from _numbers(name, found)
    for key, value in _sources(found):
        if not value.strip() or "shared/" in value:
            yield _fault(Code.NO_SOURCE, f"{name} {key}", value, "a public source, or the word assumed")


def _fault(code: Code, subject: str, observed: str, expected: str) -> Finding:
    return Finding(code=code, subject=subject, observed=observed, expected=expected, action="mend the value")


def _sources(found: Engine) -> Iterator[tuple[str, str]]:
    yield "source", found.source
    yield "speed.source", found.speed.source
    if found.serving:
        yield "serving.source", found.serving.source
    if found.training:
        yield "training.source", found.training.source


def _numbers(name: str, found: Engine) -> Iterator[Finding]:
    speed, serving, training = found.speed, found.serving, found.training
    for key in ("decode_bandwidth", "cache_bandwidth", "prefill_flop", "train_flop", "quantised_kernel"):
        value = float(getattr(speed, key))
        if not 0 <= value <= 1.05:  # noqa: PLR2004 - a share of a published peak, which boost clocks can pass
            yield _fault(Code.OUT_OF_BOUNDS, f"{name} speed.{key}", f"{value:g}", "0 to 1.05")
    if serving and serving.memory_share is not None and not 0 < serving.memory_share <= 1:
        yield _fault(
            Code.OUT_OF_BOUNDS, f"{name} serving.memory_share", f"{serving.memory_share:g}", "above 0, up to 1"
        )
    words = [("serving.share_of", serving.share_of, SHARES_OF)] if serving else []
    if training:
        words += [("training.loss", training.loss, LOSSES), ("training.attention", training.attention, ATTENTIONS)]
    for key, word, known in words:
        if word not in known:
            yield _fault(Code.UNKNOWN_NAME, f"{name} {key}", word, f"one of {', '.join(sorted(known))}")
