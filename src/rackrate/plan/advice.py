"""Advice: what tuning would change here, each setting tried by estimating the whole question again with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import StrEnum

from rackrate.evidence import Range
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.engine_speed import Host
from rackrate.memory.estimate_types import Verdict
from rackrate.money import Money
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import Change, ShapeEstimate
from rackrate.plan.filters import lacking_arithmetic, runs_on
from rackrate.plan.hourly import hourly
from rackrate.plan.scaling import OnCards, compared_rate
from rackrate.plan.shapes import Estimator
from rackrate.plan.trying import Proposal, Setting, changed
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.workload import Checkpointing, Serving, Task, Training

FASTER = 1.02
"""A setting that makes it no faster than this is told only if it saves memory or money."""

SAVES = 0.05
"""Of usable memory or of the cost, the least saving that is told."""

SLOWER_AT_MOST = 0.90
"""A setting that saves memory may cost up to a tenth of the speed."""

PER_TOKENS = 1e6
"""Results that the cost of work without an end is given for."""

_MICRO_BATCHES = (2, 4, 8, 16, 32)
_MORE_IN_FLIGHT = (2, 4, 8, 16)
_WEIGHTS = ("fp8", "awq-int4", "gptq-int4")
_ORDER = (Verdict.FITS, Verdict.TIGHT)


class Mechanism(StrEnum):
    """What is tuned."""

    MIXED_PRECISION = "mixed_precision"
    FLASH_ATTENTION = "flash_attention"
    PACKING = "packing"
    COMPILE = "compile"
    MICRO_BATCH = "micro_batch"
    LESS_CHECKPOINTING = "less_checkpointing"
    FUSED_LOSS = "fused_loss"
    OPTIMIZER_8BIT = "optimizer_8bit"
    FP8 = "fp8"
    WIDE_BASE = "wide_base"
    CARDS = "cards"
    QUANTISED_WEIGHTS = "quantised_weights"
    NARROW_CACHE = "narrow_cache"
    CAPTURED_GRAPHS = "captured_graphs"
    MORE_IN_FLIGHT = "more_in_flight"
    TOGETHER = "together"


CHANGES_RESULTS = frozenset(
    {Mechanism.FP8, Mechanism.QUANTISED_WEIGHTS, Mechanism.NARROW_CACHE, Mechanism.OPTIMIZER_8BIT, Mechanism.WIDE_BASE}
)
"""What may change what is computed, and wants a look at quality."""


class Advice(Value, frozen=True, kw_only=True):
    """One tuning and what it leads to on the same machine (``CARDS``: on another number of cards).

    ``speedup`` is over the question as asked. ``cost`` is of the whole job at the machine's
    cheapest price on demand, of a million tokens where the work has no end; ``before``
    that of the question as asked (None: nobody sells such a machine by the hour).
    """

    mechanism: Mechanism
    changes: tuple[Change, ...]
    settings: tuple[Setting, ...]
    found: ShapeEstimate
    speedup: float
    cost: Money | None = None
    before: Money | None = None

    @property
    def hours(self) -> Range | None:
        """Until the work is done, start-up left out, where it ends."""
        return self.found.speed.work_hours

    @property
    def changes_results(self) -> bool:
        """Whether quality wants a look."""
        return self.mechanism in CHANGES_RESULTS


def advice(estimator: Estimator, card: Accelerator, found: Sequence[OnCards], leading: OnCards) -> tuple[Advice, ...]:
    """What helps on the machine ``leading``, the fastest first, then what saves memory or money alone.

    Only what still fits as surely as now is told. The first line is all that
    help together and change no results, found greedily: each is kept where it
    still gains on top of those before it.
    """
    if not isinstance(leading.found, ShapeEstimate):
        return ()
    tried = _Tried(estimator, leading.shape, leading.found)
    single = [one for mechanism, choices in _choices(estimator, card) if (one := tried.best(mechanism, choices))]
    told = [one for one in single if tried.helps(one)]
    told += list(_other_counts(estimator, found, leading))
    told.sort(key=lambda one: (one.speedup < FASTER, -one.speedup, one.mechanism))
    joined = tried.together([one for one in told if not one.changes_results and one.settings])
    return (*joined, *told)


# ---------------------------------------------------------------- settings


Choices = tuple[tuple[Setting, ...], ...]
"""Settings of which the fastest that fits is taken, each with what must be set beside it."""


def _choices(estimator: Estimator, card: Accelerator) -> Iterator[tuple[Mechanism, Choices]]:
    work = estimator.question.workload
    if work.training is not None:
        yield from _of_training(estimator, card, work.training)
    elif work.serving is not None:
        yield from _of_serving(estimator, card, work.serving)


def _of_training(estimator: Estimator, card: Accelerator, run: Training) -> Iterator[tuple[Mechanism, Choices]]:
    question = estimator.question
    work, policy = question.workload, question.engine.training
    if work.precision is Precision.FP32:
        yield Mechanism.MIXED_PRECISION, ((("precision", "bf16"),),)
    if (run.attention or (policy.attention if policy else "")) == "eager":
        yield Mechanism.FLASH_ATTENTION, ((("training.attention", "flash"),),)
    if not run.packed:
        yield Mechanism.PACKING, ((("training.packed", True),),)
    if not run.compiled:
        yield Mechanism.COMPILE, ((("training.compiled", True),),)
    bigger = [run.micro_batch * times for times in _MICRO_BATCHES if run.global_batch % (run.micro_batch * times) == 0]
    yield Mechanism.MICRO_BATCH, tuple((("training.micro_batch", size),) for size in bigger)
    less = [kind.value for kind in (Checkpointing.NONE, Checkpointing.SELECTIVE) if kind.value != run.checkpointing]
    if run.checkpointing is not Checkpointing.NONE:
        yield Mechanism.LESS_CHECKPOINTING, tuple((("training.checkpointing", kind),) for kind in less)
    if (run.loss or (policy.loss if policy else "")) == "full":
        yield Mechanism.FUSED_LOSS, ((("training.loss", "fused"),),)
    if run.optimizer.startswith("adamw") and "8bit" not in run.optimizer and not work.task.trains_adapters:
        yield Mechanism.OPTIMIZER_8BIT, ((("training.optimizer", "adamw-8bit"),),)
    if work.precision is not Precision.FP8 and not work.task.trains_adapters and _computes_in_fp8(card):
        yield Mechanism.FP8, ((("precision", "fp8"), ("quantization", "bf16")),)
    if work.task is Task.QLORA:
        yield Mechanism.WIDE_BASE, ((("task", "lora"), ("quantization", None)),)


def _computes_in_fp8(card: Accelerator) -> bool:
    return isinstance(card.peak_flop_per_s(Precision.FP8), float)


def _of_serving(estimator: Estimator, card: Accelerator, asked: Serving) -> Iterator[tuple[Mechanism, Choices]]:
    question = estimator.question
    work, engine = question.workload, question.engine
    if work.weights.id in {"bf16", "fp16", "fp32"}:
        known = [
            form for form in _WEIGHTS if form in engine.weight_formats and (form != "fp8" or _computes_in_fp8(card))
        ]
        yield Mechanism.QUANTISED_WEIGHTS, tuple((("quantization", form), *_sixteen(form)) for form in known)
    if asked.cache_bits > 8:  # noqa: PLR2004 - bits of a byte
        yield Mechanism.NARROW_CACHE, ((("serving.cache_precision", "fp8"),),)
    if engine.speed.host is Host.EAGER:
        yield Mechanism.CAPTURED_GRAPHS, tuple((("engine", name),) for name in ("vllm", "sglang", "tensorrt-llm"))
    if not asked.online:
        more = [asked.concurrency * times for times in _MORE_IN_FLIGHT]
        yield Mechanism.MORE_IN_FLIGHT, tuple((("serving.concurrency", count),) for count in more)


def _sixteen(form: str) -> tuple[Setting, ...]:
    """FP8 computes in itself; what is unpacked goes by the checkpoint's own type."""
    return (("precision", None),) if form == "fp8" else ()


# ---------------------------------------------------------------- trying


class _Tried:
    """Settings tried on one machine, beside the question as asked."""

    def __init__(self, estimator: Estimator, shape: MachineShape, now: ShapeEstimate) -> None:
        self._estimator, self._shape, self._now = estimator, shape, now
        self._per_hour = hourly(estimator.question, shape)
        self._loaded = is_loaded(estimator)

    def best(self, mechanism: Mechanism, choices: Choices) -> Advice | None:
        """The fastest of ``choices`` that fits; of equals the first."""
        made = [one for settings in choices if (one := self.with_settings(mechanism, settings))]
        return max(made, key=lambda one: one.speedup, default=None)

    def with_settings(self, mechanism: Mechanism, settings: tuple[Setting, ...]) -> Advice | None:
        """What these settings lead to; None where they contradict, do not fit or nothing is known."""
        change = Change(knob=settings[0][0], before="", after=str(settings[0][1]))
        other = changed(self._estimator, Proposal(change=change, settings=settings))
        if other is None:
            return None
        work, engine = other.question.workload, other.question.engine
        card = other.question.book.accelerators[self._shape.accelerator]
        if not runs_on(engine, card) or lacking_arithmetic(work, card) is not None:
            return None
        found = other.alone(self._shape)
        if not isinstance(found, ShapeEstimate) or not self._as_sure(found):
            return None
        return Advice(
            mechanism=mechanism,
            changes=tuple(_told(self._estimator, settings)),
            settings=settings,
            found=found,
            speedup=self._rate(found) / self._rate(self._now),
            cost=cost_of(found, self._per_hour),
            before=cost_of(self._now, self._per_hour),
        )

    def helps(self, one: Advice) -> bool:
        """Faster, or less memory without losing much speed."""
        if one.speedup >= FASTER:
            return True
        saved = self._now.memory.peak.likely - one.found.memory.peak.likely
        return saved >= SAVES * self._now.memory.usable_bytes and one.speedup >= SLOWER_AT_MOST

    def together(self, single: Sequence[Advice]) -> tuple[Advice, ...]:
        """All that still gain on top of each other; nothing where that is one alone."""
        kept: list[Advice] = []
        best: Advice | None = None
        for one in single:
            settings = tuple(setting for each in (*kept, one) for setting in each.settings)
            found = self.with_settings(Mechanism.TOGETHER, settings)
            if found is not None and found.speedup >= (best.speedup if best else 1.0) * FASTER:
                kept, best = [*kept, one], found
        return (best,) if best is not None and len(kept) > 1 else ()

    def _as_sure(self, found: ShapeEstimate) -> bool:
        return _ORDER.index(found.memory.verdict) <= _ORDER.index(self._now.memory.verdict)

    def _rate(self, found: ShapeEstimate) -> float:
        return compared_rate(found, loaded=self._loaded)


def is_loaded(estimator: Estimator) -> bool:
    """Whether the load of a service is given, so that its capacity is what grows."""
    serving = estimator.question.workload.serving
    return serving is not None and serving.requests_per_s is not None


def _told(estimator: Estimator, settings: tuple[Setting, ...]) -> Iterator[Change]:
    """The settings that are others than now."""
    for path, value in settings:
        now = _now_of(estimator, path)
        if value is not None and now != _word(value):
            yield Change(knob=path, before=now, after=_word(value))


def _now_of(estimator: Estimator, path: str) -> str:
    """The value of a key as it is now, in words of the key."""
    work = estimator.question.workload
    section, _, name = path.rpartition(".")
    owner: object = getattr(work, section) if section else work
    if path == "quantization":
        return work.weights.id
    if path == "engine":
        return work.engine_id
    if path == "serving.cache_precision":
        return f"{work.serving.cache_bits:g} bits" if work.serving else ""
    if path in {"training.attention", "training.loss"} and not getattr(owner, name):
        policy = estimator.question.engine.training
        return getattr(policy, name) if policy is not None else ""
    return _word(getattr(owner, name))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------- cards and money


def _other_counts(estimator: Estimator, found: Sequence[OnCards], leading: OnCards) -> Iterator[Advice]:
    """The number of cards whose results are cheapest, where that is another and saves enough; faster for less too."""
    question, loaded = estimator.question, is_loaded(estimator)
    now = leading.found
    assert isinstance(now, ShapeEstimate)
    before = cost_of(now, hourly(question, leading.shape))
    priced = [(each, cost_of(each.found, hourly(question, each.shape))) for each in _able(found)]
    known = [(each, cost) for each, cost in priced if cost is not None]
    if before is None or not known:
        return
    each, cost = min(known, key=lambda pair: (pair[1].amount, pair[0].shape.gpus))
    other = each.found
    assert isinstance(other, ShapeEstimate)
    if each.shape == leading.shape or cost.amount > before.amount * Decimal(1 - SAVES):
        return
    count = Change(knob="limits.gpu_counts", before=str(leading.shape.gpus), after=str(each.shape.gpus))
    yield Advice(
        mechanism=Mechanism.CARDS,
        changes=(count,),
        settings=(),
        found=other,
        speedup=compared_rate(other, loaded=loaded) / compared_rate(now, loaded=loaded),
        cost=cost,
        before=before,
    )


def _able(found: Sequence[OnCards]) -> Iterator[OnCards]:
    return (each for each in found if isinstance(each.found, ShapeEstimate) and not each.missed)


def cost_of(found: object, per_hour: Money | None) -> Money | None:
    """The cost of the whole job, or of a million results where it has no end: price per hour x hours.

    Of a machine that is busy all the time (all machines of a network); start-up comes on top.
    """
    if per_hour is None or not isinstance(found, ShapeEstimate):
        return None
    hours = found.speed.work_hours
    likely = PER_TOKENS / (found.pace.likely * SECONDS_PER_HOUR) if hours is None else hours.likely
    return per_hour * Decimal(repr(likely * found.layout.nodes))
