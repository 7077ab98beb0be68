"""Columns: bounds of the likely cost and the slowness of every offer, before any is priced exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.bounds import compute_bounds
from rackrate.plan.answer import ShapeEstimate
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.pricing import bill
from rackrate.plan.question import Question
from rackrate.plan.timeline import usage_of
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value, replace
from rackrate.workload.workload import Workload

Floats = NDArray[np.float64]
_COMPUTE = frozenset({"compute", "term"})


class CostColumns(Value, frozen=True, kw_only=True):
    """Per offer: bounds of the likely cost in the display currency (infinite where nothing was estimated).

    ``low`` counts compute alone (no other line is negative); ``high`` adds the
    most that the provider's other lines come to for any of the shapes.
    """

    low: Floats
    high: Floats


def cost_columns(question: Question, outcomes: Outcomes, kept: NDArray[np.intp]) -> CostColumns:
    """Bounds for all offers; ``kept`` are the rows that are still in."""
    table = question.offers
    least, most = (_meter_columns(question, outcomes, pick) for pick in (min, max))
    factor = _factors(question)[table.currency]
    low, _ = _compute_bounds(question, least)
    _, high = _compute_bounds(question, most)
    extras = _extras_at_most(question, outcomes, kept)[table.provider]
    return CostColumns(
        low=_finite(low * least.machines[table.shape_set] * factor),
        high=_finite((high * most.machines[table.shape_set] + extras) * factor),
    )


class _Meter(Value, frozen=True, kw_only=True):
    """Likely hours on the meter and machines by shape set."""

    hours: Floats
    machines: Floats


def _meter_columns(question: Question, outcomes: Outcomes, pick: Callable[[Iterable[float]], float]) -> _Meter:
    sets = len(question.offers.shape_sets)
    hours, machines = np.full(sets, np.nan), np.ones(sets)
    for index, estimates in outcomes.estimates.items():
        hours[index] = pick(on_the_meter(question.workload, e) for e in estimates)
        machines[index] = pick(e.machines for e in estimates)
    return _Meter(hours=hours, machines=machines)


def on_the_meter(workload: Workload, estimate: ShapeEstimate) -> float:
    """Likely hours on the meter of one machine."""
    usage = usage_of(workload, estimate.work_hours.likely, estimate.startup_hours.likely, estimate.machines)
    return float(usage.running_seconds) / SECONDS_PER_HOUR


def _compute_bounds(question: Question, meter: _Meter) -> tuple[Floats, Floats]:
    """Bounds of the compute lines of one machine, in the currency of each offer."""
    shared = usage_of(question.workload, 0.0, 0.0, 1)
    return compute_bounds(
        question.offers,
        meter.hours[question.offers.shape_set],
        starts=len(shared.run_seconds),
        stopped_hours=float(shared.stopped_seconds) / SECONDS_PER_HOUR,
    )


def _extras_at_most(question: Question, outcomes: Outcomes, kept: NDArray[np.intp]) -> Floats:
    """By provider, the most that lines other than compute come to, in the provider's currency.

    They grow with time and machines only, so one bill at the longest time of
    any shape, for an offer that includes no disk, bounds them all.
    """
    table = question.offers
    extras = np.zeros(len(table.providers))
    longest = _longest(estimate for each in outcomes.estimates.values() for estimate in each)
    if longest is None:
        return extras
    first = np.full(len(table.providers), -1)
    first[table.provider[kept][::-1]] = kept[::-1]
    for code, row in enumerate(first.tolist()):
        if row < 0:
            continue
        offer = replace(table.record(row), includes_disk_gb=Decimal(0))
        charged = bill(question, offer, (longest[0], longest[1]), longest[2])
        extras[code] = sum(float(line.amount.amount) for line in charged.lines if line.name not in _COMPUTE)
    return extras


def _longest(estimates: Iterable[ShapeEstimate]) -> tuple[float, float, int] | None:
    """The longest work, the longest start-up and the most machines of any estimate."""
    found = list(estimates)
    if not found:
        return None
    work = max(e.work_hours.likely * e.machines for e in found)
    return work, max(e.startup_hours.likely for e in found), max(e.machines for e in found)


def _factors(question: Question) -> Floats:
    """Units of the display currency per unit of each currency of the table; NaN without a rate."""
    rates = question.book.rates
    known = [
        float(rates.factor(c, question.currency)) if rates.knows(c) else np.nan for c in question.offers.currencies
    ]
    return np.array(known, dtype=np.float64)


def _finite(column: Floats) -> Floats:
    return np.where(np.isnan(column), np.inf, column)


def slowness_column(question: Question, outcomes: Outcomes) -> Floats:
    """Per offer, hours to finish, or for a service the inverse of its throughput; infinite without an estimate."""
    table = question.offers
    if not question.workload.is_service:
        return outcomes.finish_column(len(table.shape_sets))[table.shape_set]
    column = np.full(len(table.shape_sets), np.inf)
    for index in outcomes.estimates:
        column[index] = 1 / outcomes.tokens_per_s(index)
    return column[table.shape_set]
