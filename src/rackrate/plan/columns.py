"""Columns: the likely cost of every offer in floats, before any is priced exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.bounds import SLACK, Timelines, billed_hours
from rackrate.plan.other_lines import other_lines
from rackrate.plan.outcomes import Columns, Outcomes
from rackrate.plan.question import Question

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class CostColumns:
    """Likely costs of entries, in the display currency; infinite without an estimate or a rate.

    They differ from the exact ones by the rounding of floats alone, for which
    ``floor`` makes room.
    """

    def __init__(self, question: Question, outcomes: Outcomes) -> None:
        self._question = question
        self._outcomes = outcomes
        self._factor = _factors(question)
        self._per_price = _NOTHING
        self._known: Columns | None = None

    def prices(self, rows: Rows) -> Floats:
        """Prices per hour of the first offers of ``rows``; infinite where there is none."""
        table = self._question.offers
        prices = np.where(table.priced[rows], table.price_per_hour[rows], np.inf) * self._factor[table.currency[rows]]
        return np.where(np.isnan(prices), np.inf, prices)

    def compute(self, rows: Rows) -> Floats:
        """The compute part at the first, cheapest offer of each entry; it is proportional to the price."""
        table = self._question.offers
        _, clock_of_class = table.clocks
        per_price = self._hours_of_clocks()
        cells = clock_of_class[table.billing[rows]] * np.intp(per_price.shape[1]) + table.shape_set[rows]
        costs: Floats = table.price_per_hour[rows] * per_price.ravel()[cells]
        return costs

    def others(self, rows: Rows) -> Floats:
        """The other lines, of entries that have an estimate and a rate."""
        return other_lines(self._question, self._outcomes, rows) * self._factor[self._question.offers.currency[rows]]

    def _hours_of_clocks(self) -> Floats:
        """Compute cost of all machines per unit of the price per hour, by clock and shape set."""
        columns = self._outcomes.columns
        if self._known is not columns:
            clocks, _ = self._question.offers.clocks
            kept = columns.kinds[0].usage if columns.kinds else None
            stopped_s, kept_s = (float(kept.stopped_seconds), float(kept.kept_seconds)) if kept else (0.0, 0.0)
            hours = billed_hours(clocks, Timelines(columns.start_s, columns.starts, stopped_s, kept_s))
            codes = {currency: code for code, currency in enumerate(self._question.offers.currencies)}
            factor = self._factor[[codes[clock.currency] for clock in clocks]]
            scaled = hours * columns.machines * factor[:, np.newaxis]
            self._per_price, self._known = np.where(np.isnan(scaled), np.inf, scaled), columns
        return self._per_price


_NOTHING = np.zeros((0, 0))


def floor(costs: Floats) -> Floats:
    """What the exact costs are not below."""
    return costs * (1 - SLACK)


def _factors(question: Question) -> Floats:
    """Units of the display currency per unit of each currency of the table; NaN without a rate."""
    rates = question.book.rates
    known = [
        float(rates.factor(c, question.currency)) if rates.knows(c) else np.nan for c in question.offers.currencies
    ]
    return np.array(known, dtype=np.float64)
