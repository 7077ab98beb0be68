"""Faults of engine files: keys, words that other files define, shares and sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from rackrate.evidence import Range
from rackrate.facts.cells import is_whole
from rackrate.facts.engine import Engine
from rackrate.facts.engine_file import engine
from rackrate.facts.scheduling import ONE_BATCH
from rackrate.facts.validate_rows import is_private
from rackrate.problems import Code, Finding
from rackrate.units import GIB, parse_day

TASKS = frozenset({"inference", "lora", "qlora", "full_finetune", "pretrain", "diffusion", "render"}) | frozenset(
    f"diffusion_{task}" for task in ("lora", "qlora", "full_finetune")
)
LAYOUTS = frozenset(
    {"tensor", "pipeline", "data", "zero", "layer_split", "context", "expert", "sequence", "interleaved"}
)
ZERO_STAGES = frozenset({1, 2, 3})
LOSSES = frozenset({"full", "chunked", "fused"})
ATTENTIONS = frozenset({"flash", "eager"})
OFFLOADS = frozenset({"activations", "optimizer", "parameters"})
SAVINGS = frozenset({"shards", "gathered", "on_card"})
DRAFT_STAGES = frozenset({"", "last", "split"})
SHARES_OF = frozenset({"total", "static", "free"})

_CACHE_BITS = (1.0, 16.0)
"""Of a value in a type of cache that is narrower than the plain ones."""
_HEAD = 128
"""Values of a usual head, which share scales in some types of cache."""
_SHARE = (0.01, 1.05)
"""Of a published peak, which boost clocks can pass."""
_COUNT = (1, 10**8)
BOUNDS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "speed": {
        "launch_s_per_layer": (0, 0.1),
        "decode_bandwidth": _SHARE,
        "cache_bandwidth": _SHARE,
        "prefill_flop": _SHARE,
        "train_flop": (0, 1.05),  # 0: it does not train
        "quantised_kernel": (0.01, 2),
        "spread": (0, 2),
        "train_spread": (0, 2),
        "stage_chunks": (1, 1000),
    },
    "serving": {
        "memory_share": (0.01, 1),
        "page_tokens": (1, 10**6),
        "default_sequences": (1, 10**6),
        "batched_tokens": _COUNT,
        "mla_cache_padding": (1, 10**5),
        "graph_bytes": (0, 100 * GIB),
        "non_torch_bytes": (0, 100 * GIB),
    },
    "scheduling": {
        "step_tokens": (0, 10**8),
        "large_step_tokens": (0, 10**8),
        "reserved_output": (0, 1),
        "kept_free": (0, 0.5),
    },
    "training": {
        "adapter_bytes": (1, 8),
        "reserved_over_allocated": (1, 10),
    },
}
_KEY = {"launch_s_per_layer": "launch_us_per_layer", "graph_bytes": "graph_gib", "non_torch_bytes": "non_torch_gib"}
_UNIT = {"launch_s_per_layer": " s", "graph_bytes": " bytes", "non_torch_bytes": " bytes"}


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
    for stage in sorted({*found.zero_stages, *found.zero_stages_in_pipelines} - ZERO_STAGES):
        yield _fault(Code.OUT_OF_BOUNDS, f"{name} zero_stages", str(stage), "1, 2 or 3")
    yield from _numbers(name, found)
    for key, value in _sources(found):
        if not value.strip() or is_private(value):
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
    if found.scheduling is not ONE_BATCH:
        yield "scheduling.source", found.scheduling.source


def _numbers(name: str, found: Engine) -> Iterator[Finding]:
    for section, bounds in BOUNDS.items():
        policy = getattr(found, section)
        for key, (low, high) in bounds.items() if policy else ():
            for value in _values(getattr(policy, key)):
                if not low <= value <= high:
                    expected = f"{low:g} to {high:g}{_UNIT.get(key, '')}"
                    yield _fault(Code.OUT_OF_BOUNDS, f"{name} {section}.{_KEY.get(key, key)}", f"{value:g}", expected)
    yield from _capability(name, found.min_compute_capability)
    yield from _policy_words(name, found)


def _values(value: float | Range | None) -> tuple[float, ...]:
    """The numbers in a value of a policy: one, three of a range, none where it is left out."""
    if isinstance(value, Range):
        return (value.low, value.likely, value.high)
    return () if value is None else (float(value),)


def _capability(name: str, found: tuple[int, int] | None) -> Iterator[Finding]:
    if found is not None and not (1 <= found[0] <= 99 and 0 <= found[1] <= 9):  # noqa: PLR2004 - major and minor
        expected = "a compute capability such as [8, 9]"
        yield _fault(Code.OUT_OF_BOUNDS, f"{name} min_compute_capability", f"{found[0]}.{found[1]}", expected)


def _policy_words(name: str, found: Engine) -> Iterator[Finding]:
    serving, training = found.serving, found.training
    words = [("serving.share_of", serving.share_of, SHARES_OF)] if serving else []
    words += [("serving.draft_stage", serving.draft_stage, DRAFT_STAGES)] if serving else []
    if training:
        words += [("training.loss", training.loss, LOSSES), ("training.attention", training.attention, ATTENTIONS)]
        words += [("training.other_losses", loss, LOSSES) for loss in training.other_losses]
        words += [("training.offloads", what, OFFLOADS) for what in training.offloads]
        words += [("training.savings", how, SAVINGS) for how in training.savings]
    for key, word, known in words:
        if word not in known:
            yield _fault(Code.UNKNOWN_NAME, f"{name} {key}", word, f"one of {', '.join(sorted(known))}")
    for kind in serving.cache_types if serving else ():
        if not _CACHE_BITS[0] <= kind.bits_at(_HEAD) < _CACHE_BITS[1] or kind.group < 0:
            yield _fault(Code.OUT_OF_BOUNDS, f"{name} serving.cache_types {kind.id}", f"{kind.bits:g}", "1 to 16 bits")
    if serving and serving.default_context != "model" and not is_whole(serving.default_context):
        expected = 'the word model, or tokens as text such as "4096"'
        yield _fault(Code.BAD_VALUE, f"{name} serving.default_context", serving.default_context, expected)
    if not found.id.strip() or set(found.id) & set('",\n'):
        yield _fault(Code.BAD_VALUE, f"{name} id", found.id, "a name without comma and quote")
    try:
        parse_day(found.seen_at)
    except ValueError:
        yield _fault(Code.BAD_VALUE, f"{name} seen_at", found.seen_at, "a date such as 2026-11-30")
