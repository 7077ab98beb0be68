"""Near misses: offers that one filter alone keeps out, tried as if it did not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.plan.answer import Nearest, Reason, ShapeEstimate
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.changes import change_for_filter
from rackrate.plan.outcomes import Outcomes, estimate_sets
from rackrate.plan.pricing import finish_hours, likely_cost
from rackrate.plan.question import Question

Rows = NDArray[np.intp]
_PRICE_IN_DOUBT = frozenset({Reason.PRICE_INCOMPLETE, Reason.PRICE_FROM, Reason.COMMITMENT_UNKNOWN})
TRIED_AT_MOST = 3
"""Shapes that are newly estimated in search of a near miss; beyond, it is not near."""


def nearest_but_for_filter(question: Question, reason: Reason, rows: Rows, outcomes: Outcomes) -> Nearest:
    """The cheapest offer by the hour that would be a plan but for this filter, with the limit to loosen.

    Where none of the first few would be one, the cheapest is named without a change.
    """
    ordered, most = by_price(question, rows), budget_for_plan(question)
    tried = 0
    for index in ordered:
        code = int(question.offers.shape_set[index])
        if code not in outcomes.estimates and code not in outcomes.failed:
            if tried == TRIED_AT_MOST:
                continue
            tried += 1
        estimates = _estimates(code, outcomes)
        if not estimates or not _in_time(question, estimates):
            continue
        offer = question.offers.offer(index)
        cost = likely_cost(question, offer, estimates)
        if most is not None and most < cost:
            continue
        change = change_for_filter(question, reason, offer)
        shown = None if reason in _PRICE_IN_DOUBT else cost
        return Nearest(offer=offer, observed="", limit="", change=change, cost=shown)
    return Nearest(offer=question.offers.offer(ordered[0]), observed="", limit="", change=None)


def _estimates(code: int, outcomes: Outcomes) -> tuple[ShapeEstimate, ...]:
    """Estimates of a shape set, empty where it fails a test; what is found out is kept."""
    if code not in outcomes.estimates and code not in outcomes.failed:
        found = estimate_sets(outcomes.estimator, [code])
        outcomes.estimates.update(found.estimates)
        outcomes.failed.update(found.failed)
    return outcomes.estimates.get(code, ())


def _in_time(question: Question, estimates: tuple[ShapeEstimate, ...]) -> bool:
    deadline = question.workload.limits.deadline_hours
    if deadline is None or question.workload.is_service:
        return True
    return all(finish_hours(e).likely <= deadline for e in estimates)


def by_price(question: Question, rows: Rows) -> list[int]:
    """Rows by price per hour of the whole offer in the display currency, those without a price last."""
    table, rates = question.offers, question.book.rates
    factor = np.array(
        [float(rates.factor(c, question.currency)) if rates.knows(c) else np.inf for c in table.currencies]
    )
    price = np.where(table.priced[rows], table.price_per_hour[rows], np.inf) * factor[table.currency[rows]]
    ordered: list[int] = rows[np.argsort(price, kind="stable")].tolist()
    return ordered
