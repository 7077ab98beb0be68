"""Estimates: memory and speed once per machine shape, in the best layout that works."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar, cast

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate import Demand, demand, fit_on
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, Reason, ShapeEstimate, over_starts
from rackrate.plan.figures import Figures, OtherLines
from rackrate.plan.machines import MACHINES_AT_MOST, UTILISATION_AT_MOST, machines_for, per_machine
from rackrate.plan.question import Question
from rackrate.plan.slices import as_rented
from rackrate.plan.timeline import starts_by_kind
from rackrate.speed.estimate import estimate as estimate_speed
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.speed.startup import startup_hours
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts
from rackrate.workload.workload import Limits, Workload

Outcome = ShapeEstimate | NoEstimate
T = TypeVar("T")
_VERDICT_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)


class Estimator:
    """Estimates of machine shapes for one question; what shapes share is computed once.

    ``startup`` is the time from power-on until work begins, in hours, at the
    first start of a machine, ``restart`` that at later ones.
    ``figures``, ``other_lines`` and ``kept`` hold what plans derive from the estimates.
    Another question with the same workload, engine, facts and day can be
    planned with the same estimator.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        parts = startup_hours(question.workload, question.engine)
        self.startup, self.restart = parts.total_hours, parts.restart_hours
        self.figures: dict[tuple[MachineShape, ...], Figures] = {}
        self.other_lines: OtherLines | None = None
        self._kept: dict[Hashable, object] = {}
        self._outcomes: dict[MachineShape, Outcome] = {}
        self._layouts: dict[int, tuple[Layout, ...]] = {}
        self._demands: dict[Layout, Demand | Unknown] = {}

    @property
    def all_startups(self) -> Range:
        """The start-ups of all starts of a machine."""
        return over_starts(self.startup, self.restart, sum(starts_by_kind(self.question.workload)))

    def serves(self, question: Question) -> bool:
        """Whether what is found out here holds for ``question``, whatever its offers, ranking and currency."""
        mine = self.question
        same_facts = mine.book is question.book and mine.engine == question.engine and mine.at == question.at
        return same_facts and mine.workload == question.workload and mine.request == question.request

    def for_question(self, question: Question) -> Estimator:
        """An estimator of another question; where that is the same work under other limits, with these estimates."""
        other = Estimator(question)
        alike = (other.startup, other.restart) == (self.startup, self.restart)  # a download's rate is that of a region
        if alike and self.question.engine == question.engine and _work(self.question) == _work(question):
            other.figures, other._outcomes = self.figures, self._outcomes
            other._layouts, other._demands = self._layouts, self._demands
        return other

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` makes, made once for ``key``."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast("T", self._kept[key])

    def outcomes(self, shapes: tuple[MachineShape, ...]) -> tuple[ShapeEstimate, ...] | NoEstimate:
        """The estimates of all ``shapes``, or the failure of the one that misses by most."""
        found = [self.outcome(shape) for shape in shapes]
        failures = [f for f in found if isinstance(f, NoEstimate)]
        if failures:
            return max(failures, key=lambda f: f.shortfall)
        return tuple(f for f in found if isinstance(f, ShapeEstimate))

    def outcome(self, shape: MachineShape) -> Outcome:
        """The best estimate for a shape, or the test that it failed with the number closest to passing."""
        if shape not in self._outcomes:
            self._outcomes[shape] = _best(self, shape, _outcome)
        return self._outcomes[shape]

    def alone(self, shape: MachineShape) -> Outcome:
        """The best estimate of one machine that gets the whole work, in time or not.

        Of layouts that fit alike, those that meet the targets of latency come first, then the fastest.
        """
        return _best(self, shape, _alone)

    def layouts(self, gpus: int) -> tuple[Layout, ...]:
        """The layouts over ``gpus`` cards of each machine."""
        if gpus not in self._layouts:
            workload = self.question.workload
            nodes = workload.parallel.nodes if workload.parallel is not None else 1
            self._layouts[gpus] = layouts(workload.model, workload, self.question.engine, gpus * nodes)
        return self._layouts[gpus]

    def memory(self, workload: Workload, card: Accelerator, layout: Layout) -> MemoryEstimate | Unknown:
        """Memory of ``workload`` (the question's, or one machine's part of it) on ``card``."""
        if workload is not self.question.workload:
            needed = demand(workload, layout, self.question.engine)
        else:
            if layout not in self._demands:
                self._demands[layout] = demand(workload, layout, self.question.engine)
            needed = self._demands[layout]
        return needed if isinstance(needed, Unknown) else fit_on(needed, card)


def _work(question: Question) -> Workload:
    """The workload without what no estimate depends on: of the limits, only the deadline decides on machines."""
    limits = Limits(deadline_hours=question.workload.limits.deadline_hours)
    return replace(question.workload, limits=limits, assumptions=(), display_currency="")


class _Trial(Value, frozen=True, kw_only=True):
    """One layout of one shape, put to the tests."""

    estimator: Estimator
    shape: MachineShape
    card: Accelerator
    layout: Layout

    @property
    def question(self) -> Question:
        """What is asked."""
        return self.estimator.question

    def failed(self, reason: Reason, observed: float, limit: float, unit: str, detail: str = "") -> NoEstimate:
        """The test that this trial did not pass."""
        return NoEstimate(
            shape=self.shape,
            reason=reason,
            observed=observed,
            limit=limit,
            unit=unit,
            detail=detail,
            layout=self.layout,
        )


def _best(estimator: Estimator, shape: MachineShape, judge: Callable[[_Trial], Outcome]) -> Outcome:
    card = as_rented(estimator.question.book.accelerators[shape.accelerator], shape)
    tried = [
        judge(_Trial(estimator=estimator, shape=shape, card=card, layout=layout))
        for layout in estimator.layouts(shape.gpus)
    ]
    done = [t for t in tried if isinstance(t, ShapeEstimate)]
    if done:
        return min(done, key=lambda found: _preference(estimator.question.workload, found))
    failed = [t for t in tried if isinstance(t, NoEstimate)]
    if failed:
        return min(failed, key=lambda t: t.shortfall)
    return NoEstimate(shape=shape, reason=Reason.NO_LAYOUT, observed=shape.gpus, limit=0, unit="gpus")


def _preference(workload: Workload, estimate: ShapeEstimate) -> tuple[int, int, int, float, str]:
    """Fits before tight, then fewer machines, then fewer missed latencies, then more tokens per second."""
    verdict = _VERDICT_ORDER.index(estimate.memory.verdict)
    late = len(missed_latencies(workload, estimate.speed))
    return (verdict, estimate.machines, late, -estimate.pace.likely, estimate.layout.label)


def _alone(trial: _Trial) -> Outcome:
    """The trial on one machine, whatever targets it misses."""
    one = _on_one(trial, trial.question.workload)
    return one if isinstance(one, NoEstimate) else _estimate(trial, *one, 1)


def _outcome(trial: _Trial) -> Outcome:
    """The trial on as few machines as carry the work; under a load, on more while latency is missed."""
    question = trial.question
    one = _on_one(trial, question.workload)
    if isinstance(one, NoEstimate):
        return one
    memory, speed = one
    fewest = machines_for(question.workload, speed, trial.estimator.all_startups)
    if fewest > MACHINES_AT_MOST:
        return _overload(trial, speed)
    if fewest == 1 and not _missed_latency(trial, speed):
        return _estimate(trial, memory, speed, 1)
    return _on_several(trial, fewest)


def _on_several(trial: _Trial, fewest: int) -> Outcome:
    serving = trial.question.workload.serving
    most = MACHINES_AT_MOST if serving is not None and serving.requests_per_s else fewest
    missed: NoEstimate | None = None
    for machines in range(fewest, most + 1):
        part = per_machine(trial.question.workload, machines)
        each = _on_one(trial, part)
        if isinstance(each, NoEstimate):
            return each
        missed = _overloaded(trial, part, each[1]) or _missed_latency(trial, each[1])
        if missed is None:
            return _estimate(trial, *each, machines)
    assert missed is not None
    return missed


def _on_one(trial: _Trial, workload: Workload) -> tuple[MemoryEstimate, SpeedEstimate] | NoEstimate:
    """Memory and speed of one machine that gets ``workload``, or the test that failed."""
    engine = trial.question.engine
    memory = trial.estimator.memory(workload, trial.card, trial.layout)
    if isinstance(memory, Unknown):
        return trial.failed(Reason.MEMORY_UNKNOWN, math.nan, 0, "", memory.reason)
    if memory.verdict is Verdict.DOES_NOT_FIT:
        return trial.failed(Reason.DOES_NOT_FIT, memory.peak.likely, memory.usable_bytes, "bytes")
    speed = estimate_speed(workload, trial.card, trial.layout, engine, memory)
    if isinstance(speed, Unknown):
        return trial.failed(Reason.SPEED_UNKNOWN, math.nan, 0, "", speed.reason)
    return memory, speed


def _estimate(trial: _Trial, memory: MemoryEstimate, speed: SpeedEstimate, machines: int) -> ShapeEstimate:
    use = trial.question.workload.use
    service = Range.exact(use.hours_per_day * use.horizon_days)
    return ShapeEstimate(
        shape=trial.shape,
        layout=trial.layout,
        memory=memory,
        speed=speed,
        work_hours=service if trial.question.workload.is_service else speed.work_hours or service,
        startup_hours=trial.estimator.startup,
        restart_hours=trial.estimator.restart,
        starts=sum(starts_by_kind(trial.question.workload)),
        machines=machines,
    )


def _missed_latency(trial: _Trial, speed: SpeedEstimate) -> NoEstimate | None:
    """The latency target that the likely value misses by most, if any."""
    missed = missed_latencies(trial.question.workload, speed)
    if not missed:
        return None
    worst = max(missed, key=lambda late: late.seen / late.limit)
    return trial.failed(Reason.LATENCY, worst.seen, worst.limit, worst.unit)


class Late(NamedTuple):
    """A latency target that the likely value misses."""

    seen: float
    limit: float
    unit: str


def missed_latencies(workload: Workload, speed: SpeedEstimate) -> list[Late]:
    """The latency targets of ``workload`` that the likely values miss."""
    serving, got = workload.serving, speed.serving
    if serving is None or got is None:
        return []
    tests = (
        (got.first_token_s.likely, serving.max_first_token_s, "s to first token"),
        (1 / got.per_user_tokens_per_s.likely, serving.max_s_per_output_token, "s per output token"),
    )
    return [Late(seen, limit, unit) for seen, limit, unit in tests if limit is not None and seen > limit]


def _overloaded(trial: _Trial, part: Workload, speed: SpeedEstimate) -> NoEstimate | None:
    """Whether one machine's part of the load is too much for it: with fewer requests in flight it can do less."""
    online = part.serving is not None and part.serving.online
    return _overload(trial, speed) if online and machines_for(part, speed, trial.estimator.all_startups) > 1 else None


def _overload(trial: _Trial, speed: SpeedEstimate) -> NoEstimate:
    """More machines than one plan rents would be needed for the load."""
    serving, got = trial.question.workload.serving, speed.serving
    assert serving is not None
    assert got is not None
    each = (got.capacity_requests_per_s or got.requests_per_s).likely
    most = each * MACHINES_AT_MOST * UTILISATION_AT_MOST
    return trial.failed(Reason.LOAD, most, serving.requests_per_s or 0.0, "requests/s")
