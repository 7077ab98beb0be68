"""The use case ``offers``: what is on offer, filtered, sorted and in groups, with what was left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

from rackrate.app.asking import NOTHING
from rackrate.app.context import Context, context
from rackrate.app.documents import finding_docs, header
from rackrate.app.limits import unknown_names
from rackrate.app.listing_keys import Question, read_question
from rackrate.app.offer_documents import group_doc, left_out_doc, offer_doc
from rackrate.app.wire.offers import OfferDoc, OfferDropDoc, OffersDocument
from rackrate.plan.listing import Listed, listed
from rackrate.problems import Refused

MOST = 1_000_000


def offers(
    asked: Mapping[str, object] = NOTHING, *, limit: int = 20, over: str | Path | None = None, at: date | None = None
) -> OffersDocument:
    """What is on offer.

    Args:
        asked: what to list, by key: those of a workload's limits (``{"gpus": ["a40"], "regions": ["eu"]}``), and
            ``min_gpus``, ``min_memory``, ``max_price``, ``max_price_per_gpu``, ``priced_in``, ``seen_since``,
            ``history``, ``currency``, ``sort``, ``group_by``.
        limit: how many are wanted.
        over: price lists instead of the bundled ones: a CSV file, a folder, or a file of columns.
        at: the day to answer for (today).

    Returns:
        The document that ``rackrate offers --json`` prints; no offer is an answer.

    Raises:
        Refused: the request cannot be understood; its findings say why.

    >>> from rackrate import api
    >>> found = api.offers({"gpus": ["a40"], "max_price": "1 USD"}, limit=3)
    >>> {offer.accelerator for offer in found.offers}
    {'a40'}
    """
    if over is None:
        return offers_over(context(at), asked, limit=limit)
    from rackrate.app.long_lists import context_over

    return offers_over(context_over(over, at), asked, limit=limit)


def offers_over(here: Context, asked: Mapping[str, object] = NOTHING, *, limit: int = 20) -> OffersDocument:
    """The same over the facts and offers of ``here``."""
    question = read_question(asked, limit, here)
    if unknown := unknown_names(question.listing.limits, here.catalog.table, here.book.provider_ids):
        raise Refused(unknown)
    found = listed(question.listing, question.sort, question.group_by)
    return _document(here, question, found, limit)


def _document(here: Context, question: Question, found: Listed, limit: int) -> OffersDocument:
    rates, currency = here.book.rates, question.listing.currency
    shown = [offer_doc(here.catalog.table.offer(n), here, currency) for n in found.numbers[:limit].tolist()]
    names = _names(shown, question.group_by)
    return OffersDocument(
        **header("offers", here),
        currency=currency,
        rates_on=rates.on.isoformat(),
        rates_source=rates.source,
        considered=here.catalog.table.count,
        found=found.found,
        more=max(0, len(found.numbers) - limit),
        sort=list(question.sort),
        group_by=question.group_by,
        offers=shown,
        groups=[group_doc(name, group) for name, group in zip(names, found.groups[:limit], strict=False)],
        left_out=[left_out_doc(one, here, currency) for one in found.left_out],
        drops=[] if found.found else _drops(here, question),
        warnings=finding_docs(here.findings),
    )


def _drops(here: Context, question: Question) -> list[OfferDropDoc]:
    from rackrate.plan.drops import drops  # an answer seldom is empty

    currency, offer = question.listing.currency, here.catalog.table.offer
    return [
        OfferDropDoc(
            knob=one.knob, asked=one.asked, found=one.found, nearest=offer_doc(offer(one.first), here, currency)
        )
        for one in drops(question.listing)
    ]


def _names(shown: Iterable[OfferDoc], group_by: str | None) -> list[str]:
    field = {"card": "accelerator"}.get(group_by or "", group_by or "accelerator")
    return [getattr(offer, field) or "unknown" for offer in shown]
