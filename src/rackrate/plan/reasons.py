"""Reasons: rejections in groups, each with its nearest miss and the smallest change that brings that one in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rackrate.offers.offer import Offer
from rackrate.plan.answer import Nearest, NoEstimate, Reason, Rejected
from rackrate.plan.budget import budget_for_plan, change_of_budget
from rackrate.plan.changes import later, proposals_for
from rackrate.plan.filters import REASONS, Excluded, code_of, distinct
from rackrate.plan.near_misses import Rows, nearest_but_for_filter
from rackrate.plan.numbers import quantity
from rackrate.plan.question import Question
from rackrate.plan.search import Search
from rackrate.plan.trying import Found, cheapest_offers, first_that_works

_BY_ESTIMATE = frozenset({Reason.NO_LAYOUT, Reason.MEMORY_UNKNOWN, Reason.SPEED_UNKNOWN})
_WITHOUT_NEAREST = frozenset({Reason.SUPERSEDED, Reason.PRICE_INVALID, Reason.CARD_UNKNOWN, Reason.NO_RATE})


def rejections(question: Question, excluded: Excluded, search: Search) -> Iterator[Rejected]:
    """One group for each reason that left anything out, largest first."""
    counts = counts_of(question, excluded, search)
    for reason in sorted(counts, key=lambda reason: (-counts[reason], REASONS.index(reason))):
        if reason in _WITHOUT_NEAREST:
            yield Rejected(reason=reason, count=counts[reason], nearest=None)
            continue
        rows = np.flatnonzero(excluded.codes == code_of(reason))
        alone = rows[excluded.alone[rows]]
        nearest = _nearest(question, reason, alone if len(alone) else rows, search)
        yield Rejected(reason=reason, count=counts[reason], nearest=nearest)


def counts_of(question: Question, excluded: Excluded, search: Search) -> dict[Reason, int]:
    """How many offers are left out for each reason that left any out.

    Of an entry that is partly within the budget, those that are not.
    """
    sizes = question.offers.sizes
    by_code = np.bincount(excluded.codes, weights=sizes, minlength=len(REASONS))[: len(REASONS)]
    counts = {reason: int(count) for reason, count in zip(REASONS, by_code.tolist(), strict=True)}
    counts[Reason.BUDGET] += int((sizes[search.rows] - search.inside).sum())
    return {reason: count for reason, count in counts.items() if count}


def _nearest(question: Question, reason: Reason, rows: Rows, search: Search) -> Nearest:
    """The nearest of ``rows``, which fail no other filter (or, where all do, all rows)."""
    if reason is Reason.BUDGET:
        return _nearest_by_cost(question, search)
    failed = {i: f for i in _sets(question, rows) if (f := search.outcomes.failed.get(i)) and f.reason is reason}
    if failed:
        return _nearest_failure(question, rows, failed, search)
    if reason is Reason.DEADLINE:
        return _nearest_by_time(question, rows, search)
    return nearest_but_for_filter(question, reason, rows, search)


def _sets(question: Question, rows: Rows) -> list[int]:
    return distinct(question.offers.shape_set[rows])


def _nearest_failure(question: Question, rows: Rows, failed: dict[int, NoEstimate], search: Search) -> Nearest:
    """The shape that misses by least: an offer of it that a change lets in, else the cheapest."""
    index = min(failed, key=lambda i: (failed[i].shortfall, i))
    failure = failed[index]
    offers = _offers(question, rows, index, search)
    if failure.reason in _BY_ESTIMATE:
        return Nearest(offer=offers[0], observed=failure.detail, limit="", change=None)
    observed, limit = quantity(failure.observed, failure.unit), quantity(failure.limit, failure.unit)
    found = first_that_works(search, proposals_for(search.outcomes.estimator, failure), offers)
    return _told(found, offers, observed, limit)


def _nearest_by_time(question: Question, rows: Rows, search: Search) -> Nearest:
    """The offer that finishes first of those that are late."""
    index = min(_sets(question, rows), key=lambda i: (search.outcomes.figures(i).hours.likely, i))
    offers = _offers(question, rows, index, search)
    deadline, needed = question.workload.limits.deadline_hours or 0.0, search.outcomes.figures(index).hours.likely
    found = first_that_works(search, [later(deadline, needed)], offers)
    return _told(found, offers, quantity(needed, "hours"), quantity(deadline, "hours"))


def _told(found: Found | None, offers: Sequence[Offer], observed: str, limit: str) -> Nearest:
    if found is None:
        return Nearest(offer=offers[0], observed=observed, limit=limit, change=None)
    return Nearest(offer=found.offer, observed=observed, limit=limit, change=found.change, cost=found.cost)


def _offers(question: Question, rows: Rows, index: int, search: Search) -> list[Offer]:
    """The cheapest offers of ``rows`` that are of one shape set."""
    return cheapest_offers(search, rows[question.offers.shape_set[rows] == index])


def _nearest_by_cost(question: Question, search: Search) -> Nearest:
    """The one that is over the budget by the smallest part of it."""
    entry, number = search.cheapest_over()
    cost = search.likely(entry, number)
    hours = search.outcomes.figures(int(question.offers.shape_set[entry])).hours.likely
    return Nearest(
        offer=question.offers.offer(number),
        observed=str(cost),
        limit=str(budget_for_plan(question, hours)),
        change=change_of_budget(question, cost, hours),
        cost=cost,
    )
