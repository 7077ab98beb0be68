"""Estimates: memory and speed once per machine shape, in the best layout that works."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.memory.estimate_types import Verdict
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, Reason, ShapeEstimate
from rackrate.plan.question import MACHINES_AT_MOST, Question
from rackrate.plan.slices import slice_of
from rackrate.speed.estimate import estimate as estimate_speed
from rackrate.speed.estimate_types import ServingSpeed, SpeedEstimate
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts

Outcome = ShapeEstimate | NoEstimate
_VERDICT_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)


def estimate_shape(question: Question, shape: MachineShape, startup: Range) -> Outcome:
    """The best estimate for one shape, or the test that it failed with the number closest to passing.

    ``startup`` is the time from power-on until work begins, in hours.
    """
    card = slice_of(question.book.accelerators[shape.accelerator], shape.share)
    tried = [_with_layout(question, shape, card, layout, startup) for layout in _layouts(question, shape.gpus)]
    if not tried:
        return NoEstimate(shape=shape, reason=Reason.NO_LAYOUT, observed=shape.gpus, limit=0, unit="gpus")
    done = [t for t in tried if isinstance(t, ShapeEstimate)]
    if done:
        return min(done, key=_preference)
    return min((t for t in tried if isinstance(t, NoEstimate)), key=lambda t: t.shortfall)


def _layouts(question: Question, gpus: int) -> Iterable[Layout]:
    """Layouts over all cards; when the model cannot be divided that way, over the most cards that it can."""
    workload = question.workload
    for count in (n for n in range(gpus, 0, -1) if gpus % n == 0):
        found = layouts(workload.model, workload, question.engine, count)
        if found:
            return found
    return ()


def _preference(estimate: ShapeEstimate) -> tuple[int, float, float, str]:
    """Fits before tight, then fewer machines, then sooner (jobs) or more throughput (services)."""
    verdict = _VERDICT_ORDER.index(estimate.memory.verdict)
    return (verdict, estimate.machines, -estimate.tokens_per_s.likely, estimate.layout.label)


def _with_layout(question: Question, shape: MachineShape, card: Accelerator, layout: Layout, startup: Range) -> Outcome:
    workload, engine = question.workload, question.engine
    memory = estimate_memory(workload, card, layout, engine)
    if isinstance(memory, Unknown):
        return _unknown(shape, Reason.MEMORY_UNKNOWN, memory)
    if memory.verdict is Verdict.DOES_NOT_FIT:
        return NoEstimate(
            shape=shape,
            reason=Reason.DOES_NOT_FIT,
            observed=memory.peak.likely,
            limit=memory.usable_bytes,
            unit="bytes",
            memory=memory,
            layout=layout,
        )
    speed = estimate_speed(workload, card, layout, engine, memory)
    if isinstance(speed, Unknown):
        return _unknown(shape, Reason.SPEED_UNKNOWN, speed)
    if speed.serving is not None and (missed := _missed_latency(question, shape, layout, speed.serving)):
        return missed
    return _timed(
        question,
        ShapeEstimate(
            shape=shape,
            layout=layout,
            memory=memory,
            speed=speed,
            work_hours=Range.exact(0.0),
            startup_hours=startup,
        ),
    )


def _unknown(shape: MachineShape, reason: Reason, why: Unknown) -> NoEstimate:
    return NoEstimate(shape=shape, reason=reason, observed=math.nan, limit=0, unit="", detail=why.reason)


def _timed(question: Question, untimed: ShapeEstimate) -> Outcome:
    """The estimate with machines and hours, or why even the most machines are too few."""
    machines = _machines(question, untimed.speed, untimed.startup_hours)
    if machines > MACHINES_AT_MOST:
        return _too_slow(question, untimed)
    return replace(untimed, work_hours=_work_hours(question, untimed.speed, machines), machines=machines)


def _work_hours(question: Question, speed: SpeedEstimate, machines: int) -> Range:
    """Hours of work per machine: the whole job, or a service's hours of use over its horizon."""
    use = question.workload.use
    if question.workload.is_service or speed.work_hours is None:
        return Range.exact(use.hours_per_day * use.horizon_days)
    return speed.work_hours.scaled(1 / machines)


def _machines(question: Question, speed: SpeedEstimate, startup: Range) -> int:
    """The fewest machines that carry the offered load (service) or meet the deadline (offline inference).

    Independent replicas: throughput adds. Training stays on one machine.
    """
    serving, limits = question.workload.serving, question.workload.limits
    if serving is None or speed.serving is None:
        return 1
    if serving.online:
        return max(1, math.ceil((serving.requests_per_s or 0) / speed.serving.requests_per_s.likely - 1e-9))
    if limits.deadline_hours is None or speed.work_hours is None:
        return 1
    left = limits.deadline_hours - startup.high
    return max(1, math.ceil(speed.work_hours.high / left)) if left > 0 else 1


def _missed_latency(question: Question, shape: MachineShape, layout: Layout, speed: ServingSpeed) -> NoEstimate | None:
    """The latency target that the likely value misses by most, if any."""
    serving = question.workload.serving
    assert serving is not None
    tests = (
        (speed.first_token_s.likely, serving.max_first_token_s, "s to first token"),
        (1 / speed.per_user_tokens_per_s.likely, serving.max_s_per_output_token, "s per output token"),
    )
    missed = [(got / limit, got, limit, unit) for got, limit, unit in tests if limit is not None and got > limit]
    if not missed:
        return None
    _, got, limit, unit = max(missed)
    return NoEstimate(shape=shape, reason=Reason.LATENCY, observed=got, limit=limit, unit=unit, layout=layout)


def _too_slow(question: Question, estimate: ShapeEstimate) -> NoEstimate:
    """More machines than one plan rents would be needed for the load or the deadline."""
    work, serving, speed = question.workload, question.workload.serving, estimate.speed
    if serving is not None and serving.online and speed.serving is not None:
        reason, unit, limit = Reason.LOAD, "requests/s", serving.requests_per_s or 0.0
        observed = speed.serving.requests_per_s.likely * MACHINES_AT_MOST
    else:
        reason, unit, limit = Reason.DEADLINE, "hours", work.limits.deadline_hours or 0.0
        observed = speed.work_hours.likely / MACHINES_AT_MOST if speed.work_hours else math.nan
    return NoEstimate(
        shape=estimate.shape, reason=reason, observed=observed, limit=limit, unit=unit, layout=estimate.layout
    )
