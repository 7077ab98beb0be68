"""Trying: a change is named only after planning again with it has let the offer in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.book import with_model
from rackrate.money import Money
from rackrate.offers.offer import Offer
from rackrate.offers.rows import table_of_offers
from rackrate.offers.table import OfferTable
from rackrate.plan.answer import Change, NoEstimate
from rackrate.plan.possible import searched
from rackrate.plan.question import Question
from rackrate.plan.search import Search
from rackrate.plan.selection import first_smallest
from rackrate.plan.shapes import Estimator
from rackrate.values import Value, replace
from rackrate.workload.keys import shorthand_of
from rackrate.workload.parse import Parsed, parse

Rows = NDArray[np.intp]
Setting = tuple[str, object]
"""A key of the workload and its new value; None where the key is left out."""

TRIED_AT_MOST = 6
"""Changes that are tried for one failure; beyond, none is near."""
OFFERS_AT_MOST = 8
"""Offers that a change is tried on."""


class Proposal(Value, frozen=True, kw_only=True):
    """A change as it is told, and the settings that it is made by."""

    change: Change
    settings: tuple[Setting, ...]


class Found(NamedTuple):
    """An offer that a change lets in, and its likely cost then."""

    offer: Offer
    change: Change
    cost: Money


def changed(estimator: Estimator, proposal: Proposal) -> Estimator | None:
    """The estimator of the workload that is asked for with the change; None where it contradicts what else is said.

    Everything that follows from the changed setting is decided anew, as if the
    user had said so from the start.
    """
    return estimator.kept(proposal.settings, partial(_changed, estimator, dict(proposal.settings)))


def _changed(estimator: Estimator, settings: Mapping[str, object]) -> Estimator | None:
    question = estimator.question
    if question.request is None:
        return None
    replaced = {*settings, *map(shorthand_of, settings)}
    said = {path: value for path, value in question.request.values.items() if path not in replaced}
    said |= {path: value for path, value in settings.items() if value is not None}
    request = replace(question.request, values=said)
    parsed = parse(request, with_model(question.book, question.workload.model))
    if not isinstance(parsed, Parsed):
        return None
    work = parsed.workload
    asked = replace(question, workload=work, engine=question.book.engine(work.engine_id), request=request)
    return estimator.for_question(asked)


def asked_with(question: Question, estimator: Estimator) -> Question:
    """The question about the workload of ``estimator``."""
    other = estimator.question
    return replace(question, workload=other.workload, engine=other.engine, request=other.request)


def first_that_works(
    search: Search, proposals: Iterable[Proposal], offers: Sequence[Offer], tried: int = TRIED_AT_MOST
) -> Found | None:
    """The first of ``proposals`` after which one of ``offers`` is a plan, with the cheapest of these."""
    table: OfferTable | None = None
    for _, proposal in zip(range(tried), proposals, strict=False):
        estimator = changed(search.outcomes.estimator, proposal)
        if estimator is None:
            continue
        table = table or _table(search.question, offers)
        left = searched(replace(asked_with(search.question, estimator), offers=table), estimator)[0]
        if len(left.rows):
            place = min(range(len(left.rows)), key=lambda at: (left.cost(at), left.tie(at)))
            entry = int(left.rows[place])
            return Found(offers[entry], proposal.change, left.likely(entry, entry))
    return None


def _table(question: Question, offers: Sequence[Offer]) -> OfferTable:
    return table_of_offers(offers, question.book.rules_of, at=question.at)


def cheapest_offers(search: Search, rows: Rows) -> list[Offer]:
    """The cheapest by the hour of ``rows`` of each way of billing, a few of them, the cheapest first.

    What is cheapest by the hour may be sold by the year only: the others of its kind are tried too.
    """
    table = search.question.offers
    prices = search.columns.prices(rows)
    first = first_smallest(prices, table.billing[rows], len(table.billing_classes))
    places = first[first >= 0]
    order = places[np.lexsort((places, prices[places]))]
    return [table.first_offer(row) for row in rows[order[:OFFERS_AT_MOST]].tolist()]


Again = Callable[[NoEstimate], Proposal]


def until_it_holds(estimator: Estimator, failure: NoEstimate, propose: Again) -> Iterable[Proposal]:
    """Proposals from what is observed, until planning with one fails in no such way: a target also sizes the load."""
    for _ in range(TRIED_AT_MOST):
        proposal = propose(failure)
        yield proposal
        after = changed(estimator, proposal)
        outcome = after.outcome(failure.shape) if after else None
        if not isinstance(outcome, NoEstimate) or (outcome.reason, outcome.unit) != (failure.reason, failure.unit):
            return
        if outcome.observed == failure.observed:
            return
        failure = outcome
