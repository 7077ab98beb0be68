"""Reasons: rejections in groups, each with its nearest miss and the smallest change that brings that one in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.offer import Offer
from rackrate.plan.answer import Change, Nearest, NoEstimate, Reason, Rejected
from rackrate.plan.budget import budget_for_plan, change_of_budget
from rackrate.plan.changes import change_for_failure, change_for_filter
from rackrate.plan.filters import REASONS, code_of, distinct
from rackrate.plan.numbers import quantity
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.question import Question
from rackrate.plan.search import Search

_BY_ESTIMATE = frozenset({Reason.NO_LAYOUT, Reason.MEMORY_UNKNOWN, Reason.SPEED_UNKNOWN})
_WITHOUT_NEAREST = frozenset({Reason.SUPERSEDED, Reason.PRICE_INVALID, Reason.CARD_UNKNOWN, Reason.NO_RATE})


def rejections(question: Question, codes: NDArray[np.int16], outcomes: Outcomes, search: Search) -> Iterator[Rejected]:
    """One group for each reason that left anything out, largest first."""
    counts = {reason: int(np.count_nonzero(codes == code_of(reason))) for reason in REASONS}
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], REASONS.index(item[0]))):
        if count:
            rows = np.flatnonzero(codes == code_of(reason))
            yield Rejected(reason=reason, count=count, nearest=_nearest(question, reason, rows, outcomes, search))


def _nearest(
    question: Question, reason: Reason, rows: NDArray[np.intp], outcomes: Outcomes, search: Search
) -> Nearest | None:
    if reason in _WITHOUT_NEAREST:
        return None
    if reason is Reason.BUDGET:
        return _nearest_by_cost(question, rows, search)
    failed = {i: f for i in _sets(question, rows) if (f := outcomes.failed.get(i)) and f.reason is reason}
    if failed:
        return _nearest_failure(question, rows, failed)
    if reason is Reason.DEADLINE:
        return _nearest_by_time(question, rows, outcomes)
    works = np.zeros(len(question.offers.shape_sets), dtype=np.bool_)
    works[list(outcomes.estimates)] = True
    working = rows[works[question.offers.shape_set[rows]]]
    offer = question.offers.offer(_cheapest(question, working if len(working) else rows))
    return _miss(offer, "", "", change_for_filter(question, reason, offer))


def _sets(question: Question, rows: NDArray[np.intp]) -> list[int]:
    return distinct(question.offers.shape_set[rows])


def _nearest_failure(question: Question, rows: NDArray[np.intp], failed: dict[int, NoEstimate]) -> Nearest:
    """The shape that misses by least, at its cheapest offer."""
    index = min(failed, key=lambda i: (failed[i].shortfall, i))
    failure = failed[index]
    offer = question.offers.offer(_cheapest(question, rows[question.offers.shape_set[rows] == index]))
    if failure.reason in _BY_ESTIMATE:
        return _miss(offer, failure.detail, "", None)
    observed, limit = quantity(failure.observed, failure.unit), quantity(failure.limit, failure.unit)
    return _miss(offer, observed, limit, change_for_failure(question, failure))


def _nearest_by_time(question: Question, rows: NDArray[np.intp], outcomes: Outcomes) -> Nearest:
    """The offer that finishes first of those that are late."""
    index = min(_sets(question, rows), key=lambda i: (outcomes.hours(i).likely, i))
    offer = question.offers.offer(_cheapest(question, rows[question.offers.shape_set[rows] == index]))
    deadline = question.workload.limits.deadline_hours or 0.0
    needed = quantity(outcomes.hours(index).likely, "hours")
    limit = quantity(deadline, "hours")
    return _miss(offer, needed, limit, Change(knob="limits.deadline", before=limit, after=needed))


def _nearest_by_cost(question: Question, rows: NDArray[np.intp], search: Search) -> Nearest:
    """The cheapest of those over the budget, by exact cost of the cheapest bounds."""
    order = sorted(rows.tolist(), key=lambda i: (search.bounds.low[i], i))
    index = min(order[:5], key=lambda i: (search.likely(i).amount, i))
    cost = search.likely(index)
    return _miss(
        question.offers.offer(index), str(cost), str(budget_for_plan(question)), change_of_budget(question, cost)
    )


def _cheapest(question: Question, rows: NDArray[np.intp]) -> int:
    """The row with the lowest price per hour of the whole offer, in the display currency."""
    table, rates = question.offers, question.book.rates
    factor = np.array(
        [float(rates.factor(c, question.currency)) if rates.knows(c) else np.inf for c in table.currencies]
    )
    price = np.where(table.priced[rows], table.price_per_hour[rows], np.inf) * factor[table.currency[rows]]
    return int(rows[int(np.argmin(price))])


def _miss(offer: Offer, observed: str, limit: str, change: Change | None) -> Nearest:
    return Nearest(offer=offer, cards=offer.cards, observed=observed, limit=limit, change=change)
