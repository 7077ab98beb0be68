"""Near misses: offers that one filter alone keeps out, tried as if it did not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.offer import Offer
from rackrate.plan.answer import Nearest, Reason, ShapeEstimate
from rackrate.plan.changes import proposal_for_filter
from rackrate.plan.columns import floor
from rackrate.plan.filters import Wanted, code_of
from rackrate.plan.limit_changes import unmet
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.pricing import finish_hours
from rackrate.plan.question import Question
from rackrate.plan.search import Search
from rackrate.plan.selection import first_smallest
from rackrate.plan.trying import asked_with, changed, first_that_works

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
_PRICE_IN_DOUBT = frozenset({Reason.PRICE_INCOMPLETE, Reason.PRICE_FROM, Reason.COMMITMENT_UNKNOWN})
TRIED_AT_MOST = 3
"""Shapes that are newly estimated in search of a near miss; beyond, it is not near."""


def nearest_but_for_filter(question: Question, reason: Reason, rows: Rows, search: Search) -> Nearest:
    """The cheapest offer by the hour that would be a plan but for this filter, with the limit to loosen.

    Where none of the first few would be one, the cheapest is named without a
    change; so is an offer that another filter keeps out as well.
    """
    best = _cheapest_but_for_filter(reason, rows, search)
    if best is None:
        cheapest = int(rows[np.argmin(search.columns.prices(rows))])
        return Nearest(offer=question.offers.first_offer(cheapest), observed="", limit="", change=None)
    offer = question.offers.first_offer(best)
    proposal = None if offer.superseded else proposal_for_filter(question, reason, offer)
    found = first_that_works(search, [proposal], [offer]) if proposal else None
    seen = _seen(question, reason, offer)
    if found is None:
        return Nearest(offer=offer, observed=seen, limit="", change=None)
    cost = None if reason in _PRICE_IN_DOUBT else found.cost
    return Nearest(offer=offer, observed=seen, limit="", change=found.change, cost=cost)


def _seen(question: Question, reason: Reason, offer: Offer) -> str:
    """What is known of what renting asks for, where that is the reason."""
    if reason not in {Reason.ACCESS, Reason.ACCESS_UNKNOWN}:
        return ""
    wanted = Wanted(limits=question.workload.limits, offers=question.offers, book=question.book)
    return unmet(wanted, offer)


def _cheapest_but_for_filter(reason: Reason, rows: Rows, search: Search) -> int | None:
    """The first of ``rows`` by price that does the work in time and within the budget."""
    trial = _without(reason, search)
    prices = trial.columns.prices(rows)
    best: tuple[float, int] | None = None
    for least, of_set in _sets_by_price(trial.question, rows, prices, trial.outcomes):
        if best is not None and best[0] < least:
            break
        found = _cheapest_within_budget(rows[of_set], prices[of_set], trial)
        best = min(filter(None, (best, found)), default=None)
    return None if best is None else best[1]


def _without(reason: Reason, search: Search) -> Search:
    """A search for what would be a plan: another precision is other work, with weights and speed of its own."""
    proposal = proposal_for_filter(search.question, reason, None)
    estimator = changed(search.outcomes.estimator, proposal) if proposal else None
    if estimator is None:
        return search
    asked = asked_with(search.question, estimator)
    nothing = np.full(len(asked.offers), code_of(reason), dtype=np.int8)
    return Search(asked, nothing, Outcomes(estimator, asked.offers.shape_sets))


def _sets_by_price(question: Question, rows: Rows, prices: Floats, outcomes: Outcomes) -> Iterator[tuple[float, Rows]]:
    """The shape sets that do the work in time, cheapest first: their lowest price, and where their rows are."""
    sets = question.offers.shape_set[rows]
    first = first_smallest(prices, sets, len(question.offers.shape_sets))
    with_price = [(float(prices[at]), int(at), index) for index, at in enumerate(first.tolist()) if at >= 0]
    tried = 0
    for price, _, index in sorted(with_price):
        if index not in outcomes.estimates and index not in outcomes.failed:
            if tried == TRIED_AT_MOST:
                continue
            tried += 1
        outcomes.find([index])
        estimates = outcomes.estimates.get(index)
        if estimates and price < np.inf and _in_time(question, estimates):
            yield price, np.flatnonzero(sets == index)


def _cheapest_within_budget(rows: Rows, prices: Floats, search: Search) -> tuple[float, int] | None:
    """Price and row of the cheapest by the hour of ``rows``, all of one set, that the budget covers."""
    question = search.question
    if question.workload.limits.budget is None:
        return min(zip(prices.tolist(), rows.tolist(), strict=True))
    covered = np.flatnonzero(floor(search.columns.compute(rows)) <= search.limits(question.offers.shape_set[rows]))
    for place in covered[np.lexsort((rows[covered], prices[covered]))].tolist():
        row = int(rows[place])
        if search.covers(row, question.offers.number(row)):
            return float(prices[place]), row
    return None


def _in_time(question: Question, estimates: tuple[ShapeEstimate, ...]) -> bool:
    deadline = question.workload.limits.deadline_hours
    if deadline is None or question.workload.is_service:
        return True
    return all(finish_hours(e).likely <= deadline for e in estimates)
