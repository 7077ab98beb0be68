"""Reasons: rejections in groups, each with its nearest miss and the smallest change that brings that one in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rackrate.offers.offer import Offer
from rackrate.plan.answer import Change, Nearest, NoEstimate, Reason, Rejected
from rackrate.plan.budget import budget_for_plan, change_of_budget
from rackrate.plan.changes import change_for_failure
from rackrate.plan.filters import REASONS, Excluded, code_of, distinct
from rackrate.plan.near_misses import Rows, nearest_but_for_filter
from rackrate.plan.numbers import quantity
from rackrate.plan.question import Question
from rackrate.plan.search import Search

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
    """The shape that misses by least, at its cheapest offer."""
    index = min(failed, key=lambda i: (failed[i].shortfall, i))
    failure = failed[index]
    offer = _cheapest(question, rows, index, search)
    if failure.reason in _BY_ESTIMATE:
        return Nearest(offer=offer, observed=failure.detail, limit="", change=None)
    observed, limit = quantity(failure.observed, failure.unit), quantity(failure.limit, failure.unit)
    known = search.outcomes.estimator.changes
    if failure.shape not in known:
        known[failure.shape] = change_for_failure(question, failure)
    return Nearest(offer=offer, observed=observed, limit=limit, change=known[failure.shape])


def _nearest_by_time(question: Question, rows: Rows, search: Search) -> Nearest:
    """The offer that finishes first of those that are late."""
    index = min(_sets(question, rows), key=lambda i: (search.outcomes.figures(i).hours.likely, i))
    offer = _cheapest(question, rows, index, search)
    deadline = question.workload.limits.deadline_hours or 0.0
    needed = quantity(search.outcomes.figures(index).hours.likely, "hours")
    limit = quantity(deadline, "hours")
    change = Change(knob="limits.deadline", before=limit, after=needed)
    return Nearest(offer=offer, observed=needed, limit=limit, change=change)


def _cheapest(question: Question, rows: Rows, index: int, search: Search) -> Offer:
    """The cheapest by the hour of ``rows`` that are of one shape set."""
    of_set = rows[question.offers.shape_set[rows] == index]
    return question.offers.first_offer(int(of_set[np.argmin(search.columns.prices(of_set))]))


def _nearest_by_cost(question: Question, search: Search) -> Nearest:
    """The cheapest of those over the budget."""
    entry, number = search.cheapest_over()
    cost = search.likely(entry, number)
    return Nearest(
        offer=question.offers.offer(number),
        observed=str(cost),
        limit=str(budget_for_plan(question)),
        change=change_of_budget(question, cost),
        cost=cost,
    )
