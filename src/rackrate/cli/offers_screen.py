"""The screen of ``offers``: a table of what is on offer, or a ladder of prices by group, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.offers_columns import COLUMN_KEYS, COLUMNS, ON_SCREEN, amount, card
from rackrate.cli.offers_left_out import left_out
from rackrate.cli.sections import warnings
from rackrate.units import format_bytes

if TYPE_CHECKING:
    from rackrate.app.wire.offers import (
        OfferDoc,
        OfferGroupDoc,
        OffersDocument,
        OffersPackDocument,
    )


_GROUPED = ("group_offers", "group_low", "group_median", "group_high")
_BAR_CELLS = 18


def table(document: OffersDocument, columns: Sequence[str] | None = None) -> Table:
    """The offers listed, a row each (for CSV and Markdown); of groups, what each is comes first."""
    keys = tuple(columns or COLUMN_KEYS)
    rows = [tuple(_cell(offer, key, document) for key in keys) for offer in document.offers]
    groups = (*(("group",) if document.group_by else ()), *(_GROUPED if document.group_by else ()))
    if document.group_by:
        rows = [(*_group_cells(group), *row) for group, row in zip(document.groups, rows, strict=True)]
    titles = (*groups, *keys)
    flush = {i for i, key in enumerate(titles) if key in _GROUPED or (key in COLUMNS and COLUMNS[key].right)}
    return Table(keys=titles, titles=titles, rows=tuple(rows), right=frozenset(flush))


def _cell(offer: OfferDoc, key: str, document: OffersDocument) -> str:
    return document.currency if key == "shown_currency" else COLUMNS[key].cell(offer)


def _group_cells(group: OfferGroupDoc) -> tuple[str, ...]:
    return (group.name, str(group.offers), group.low or "", group.median or "", group.high or "")


# ---------------------------------------------------------------- for people


def screen(document: OffersDocument, columns: Sequence[str] | None = None) -> Iterator[Part]:
    """What a person sees, top to bottom."""
    if document.offers:
        yield from _ladder(document) if document.group_by and columns is None else _listed(document, columns)
    else:
        yield _none(document)
        yield ""
    yield from left_out(document)
    yield from warnings(document.warnings)
    yield _footer(document)


def _none(document: OffersDocument) -> str:
    if not document.considered:
        return f"No offer: no price is known that was seen by {document.as_of}."
    return "No offer: every one was left out."


_FROM = "_from"
"""How the markets end in which a price is the lowest of several."""


def _listed(document: OffersDocument, columns: Sequence[str] | None) -> Iterator[Part]:
    keys = tuple(columns or ON_SCREEN)
    rows = tuple(tuple(_shown_cell(offer, key, document) for key in keys) for offer in document.offers)
    flush = frozenset(i for i, key in enumerate(keys) if COLUMNS[key].right)
    yield drawn(Table(keys=keys, titles=tuple(COLUMNS[key].title for key in keys), rows=rows, right=flush))
    yield _count(document)
    if "shown_per_gpu_hour" in keys:
        yield (
            f"{document.currency} an hour: /h of the offer, /GPU-h of one card (of a slice: of the whole card), "
            "/GB-h of a GB of its memory as sold; age in days, ? not known."
        )
    if any(len(offer.cards) > 1 for offer in document.offers):
        yield "+1 after a card: the source does not say which of two cards it is, and so on"
    if any(offer.market.endswith(_FROM) for offer in document.offers):
        yield "from price: the lowest of several, expect to pay more; a plan leaves it out unless its market is named"
    yield ""


def _shown_cell(offer: OfferDoc, key: str, document: OffersDocument) -> str:
    if key == "shown_currency":
        return document.currency
    column = COLUMNS[key]
    return (column.shown or column.cell)(offer)


def _ladder(document: OffersDocument) -> Iterator[Part]:
    """A row for each group: its cheapest offer, and a bar from the lowest to the highest price of a card."""
    highest = max((Decimal(g.high) for g in document.groups if g.high), default=Decimal(1))
    keys = ("group", "offers", "low", "at", "median", "high", "bar")
    rows = tuple(
        (
            words.word(words.MARKETS, group.name) if document.group_by == "market" else _short(group.name),
            str(group.offers),
            amount(group.low),
            card(first) if document.group_by == "provider" else first.provider,
            amount(group.median),
            amount(group.high),
            _bar(group, highest),
        )
        for group, first in zip(document.groups, document.offers, strict=True)
    )
    at = "for" if document.group_by == "provider" else "at"
    titles = (document.group_by or "", "offers", "from", at, "median", "to", f"{document.currency} per GPU-hour")
    yield drawn(Table(keys=keys, titles=titles, rows=rows, right=frozenset({1, 2, 4, 5}), whole=frozenset({6})))
    yield _count(document)
    yield ""


def _short(name: str) -> str:
    first, *others = name.split("|")
    return f"{first} +{len(others)}" if others else first


def _bar(group: OfferGroupDoc, highest: Decimal) -> str:
    """Blank up to the lowest price, light up to the highest, dark at the median."""
    if group.low is None or group.median is None or group.high is None:
        return ""
    low, median, high = (
        int(_BAR_CELLS * Decimal(each) / highest * Decimal("0.9999")) for each in (group.low, group.median, group.high)
    )
    return "".join("█" if i == median else "░" if low <= i <= high else "\xa0" for i in range(high + 1))


def _count(document: OffersDocument) -> str:
    if document.group_by:
        more = f", {document.more} more groups (--top N shows N)" if document.more else ""
        return f"{document.found} of {document.considered} offers, by {document.group_by}{more}."
    more = f", {document.more} more (--top N shows N)" if document.more else ""
    return f"{document.found} of {document.considered} offers{more}."


def _footer(document: OffersDocument) -> str:
    return (
        f"Prices as of {document.as_of}; {document.currency} at rates of {document.rates_on} "
        f"({document.rates_source}). Facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}."
    )


# ---------------------------------------------------------------- pack


def pack_table(document: OffersPackDocument) -> Table:
    """The file that was written, in a row."""
    keys = ("file", "size_bytes", "offers", "entries", "problems")
    row = (
        document.file,
        str(document.size_bytes),
        str(document.offers),
        str(document.entries),
        str(len(document.problems)),
    )
    return Table(keys=keys, titles=keys, rows=(row,), right=frozenset({1, 2, 3, 4}))


def pack_screen(document: OffersPackDocument) -> Iterator[Part]:
    """What was written, and what of the lists is not in it."""
    yield pairs(
        [
            ("File", f"{document.file}, {format_bytes(document.size_bytes)}"),
            ("Offers", f"{document.offers:,} in {document.entries:,} entries of offers that differ in price alone"),
            ("Use", f"rackrate plan ... --offers {document.file}; rackrate offers --offers {document.file}"),
        ]
    )
    yield ""
    if document.problems:
        yield "Not in it:"
        yield pairs(
            [(f"  {p.subject}", f"{p.observed}; expected {p.expected}") for p in document.problems], style=PLAIN
        )
        yield ""
    yield f"Facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}."
