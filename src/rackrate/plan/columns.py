"""Columns: the likely cost of every offer in floats, before any is priced exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.bounds import SLACK, Timeline, compute_costs
from rackrate.cost.compute import bills_stopped
from rackrate.offers.meter import narrowed
from rackrate.plan.other_lines import other_lines
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.question import Question

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class CostColumns:
    """Likely costs of entries, in the display currency; infinite without an estimate or a rate.

    They differ from the exact ones by the rounding of floats alone, for which
    ``floor`` and ``ceiling`` make room.
    """

    def __init__(self, question: Question, outcomes: Outcomes) -> None:
        self._question = question
        self._outcomes = outcomes
        self._factor = _factors(question)

    def compute(self, rows: Rows) -> Floats:
        """The compute part at the first, cheapest offer of each entry; it is proportional to the price."""
        table = self._question.offers
        sets = table.shape_set[rows]
        per_hour_and_machine = compute_costs(table, rows, self._timeline(sets))
        scale = self._outcomes.column(lambda f: f.machines)[sets] * self._factor[table.currency[rows]]
        costs = per_hour_and_machine * scale
        return np.where(np.isnan(costs), np.inf, costs)

    def others(self, rows: Rows) -> Floats:
        """The other lines, of entries that have an estimate and a rate."""
        return other_lines(self._question, self._outcomes, rows) * self._factor[self._question.offers.currency[rows]]

    def _timeline(self, sets: NDArray[np.int32]) -> Timeline:
        """What the machines of each set do; starts and stops are the same for all sets of one workload."""
        question, outcomes = self._question, self._outcomes
        run_s = outcomes.column(lambda f: float(f.usage.run_seconds[0]))[sets]
        usage = next((outcomes.figures(index).usage for index in outcomes.estimates), None)
        starts, stopped_s = (1, 0.0) if usage is None else (len(usage.run_seconds), float(usage.stopped_seconds))
        return Timeline(run_s, starts, stopped_s, _stopped_is_billed(question, stopped_s))


def floor(costs: Floats) -> Floats:
    """What the exact costs are not below."""
    return costs * (1 - SLACK)


def ceiling(costs: Floats) -> Floats:
    """What the exact costs are not above."""
    return costs * (1 + SLACK)


def prices_shown(question: Question, rows: Rows) -> Floats:
    """Prices per hour of the first offers of ``rows`` in the display currency; infinite where there is none."""
    table = question.offers
    prices = np.where(table.priced[rows], table.price_per_hour[rows], np.inf) * _factors(question)[table.currency[rows]]
    return np.where(np.isnan(prices), np.inf, prices)


def _stopped_is_billed(question: Question, stopped_s: float) -> NDArray[np.bool_]:
    """By billing class, whether compute is billed while stopped (looked up if anything stops)."""
    rules_of, at, classes = question.book.rules_of, question.at, question.offers.billing_classes
    billed = [bills_stopped(narrowed(rules_of(c.provider), c.name, at)) for c in classes] if stopped_s else []
    return np.array(billed or [False] * len(classes), dtype=np.bool_)


def _factors(question: Question) -> Floats:
    """Units of the display currency per unit of each currency of the table; NaN without a rate."""
    rates = question.book.rates
    known = [
        float(rates.factor(c, question.currency)) if rates.knows(c) else np.nan for c in question.offers.currencies
    ]
    return np.array(known, dtype=np.float64)
