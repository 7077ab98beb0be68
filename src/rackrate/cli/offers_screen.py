"""The screen of ``offers``: a table of what is on offer, or a ladder of prices by group, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from rackrate.cli import words
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.numbers import small_money
from rackrate.cli.sections import warnings
from rackrate.units import format_bytes

if TYPE_CHECKING:
    from rackrate.app.wire.offers import (
        OfferDoc,
        OfferDropDoc,
        OfferGroupDoc,
        OfferLeftOutDoc,
        OffersDocument,
        OffersPackDocument,
    )
    from rackrate.app.wire.parts import ChangeDoc


class _Column(NamedTuple):
    """A column: its title on a screen, whether it is set flush right, its cell for machines and for people."""

    title: str
    right: bool
    cell: Callable[[OfferDoc], str]
    shown: Callable[[OfferDoc], str] | None = None


def _text(value: object) -> str:
    """A value for machines: nothing for what is not known, true and false in lower case."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _money(amount: str | None) -> str:
    return "?" if amount is None else small_money(amount)


def _age(offer: OfferDoc) -> str:
    return "?" if offer.price_age_days is None else f"{offer.price_age_days}"


def _card(offer: OfferDoc) -> str:
    if not offer.cards:
        return f"? {offer.card_label}"
    more = f" +{len(offer.cards) - 1}" if len(offer.cards) > 1 else ""
    part = f" {offer.share:.3g} of it" if offer.share < 1 else ""
    return f"{offer.cards[0]}{more}{part}"


def _span(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return "?"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size and not seconds % size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:g} s"


def _flags(offer: OfferDoc) -> str:
    """What else is to be known of an offer, in codes."""
    marks = (("interruptible", offer.interruptible), ("own", offer.price_own), ("superseded", offer.superseded))
    found = [name for name, holds in marks if holds]
    excluded = (f"without_{part}" for part in offer.excludes)
    return " ".join(dict.fromkeys((*found, *excluded, *(w.code for w in offer.warnings))))


_COLUMNS: Mapping[str, _Column] = {
    "accelerator": _Column("card", False, lambda o: o.accelerator, _card),
    "gpus": _Column("n", True, lambda o: str(o.gpus)),
    "share": _Column("share", True, lambda o: _text(o.share)),
    "memory_sold_gb": _Column("GB", True, lambda o: _text(o.memory_sold_gb)),
    "form_factor": _Column("form", False, lambda o: o.form_factor),
    "provider": _Column("provider", False, lambda o: o.provider),
    "region": _Column("region", False, lambda o: o.region),
    "country": _Column("in", False, lambda o: o.country),
    "market": _Column("market", False, lambda o: o.market, lambda o: words.word(words.MARKETS, o.market)),
    "price_per_hour": _Column("price/h", True, lambda o: o.price_per_hour, lambda o: small_money(o.price_per_hour)),
    "price_currency": _Column("in", False, lambda o: o.price_currency),
    "shown_per_hour": _Column("/h", True, lambda o: o.shown_per_hour or "", lambda o: _money(o.shown_per_hour)),
    "shown_per_gpu_hour": _Column(
        "/GPU-h", True, lambda o: o.shown_per_gpu_hour or "", lambda o: _money(o.shown_per_gpu_hour)
    ),
    "shown_per_gb_hour_as_sold": _Column(
        "/GB-h", True, lambda o: o.shown_per_gb_hour_as_sold or "", lambda o: _money(o.shown_per_gb_hour_as_sold)
    ),
    "shown_currency": _Column("", False, lambda _: ""),
    "term": _Column("term", False, lambda o: o.term, lambda o: o.term.replace("_", " ")),
    "term_hours": _Column("hours", True, lambda o: _text(o.term_hours)),
    "minimum_terms": _Column("least", True, lambda o: str(o.minimum_terms)),
    "billing_step_s": _Column("step", True, lambda o: _text(o.billing.step_s), lambda o: _span(o.billing.step_s)),
    "billing_minimum_s": _Column(
        "min.", True, lambda o: _text(o.billing.minimum_s), lambda o: _span(o.billing.minimum_s)
    ),
    "stop": _Column("when stopped", False, lambda o: o.billing.stop, lambda o: words.word(words.STOPS, o.billing.stop)),
    "stock": _Column("stock", False, lambda o: o.stock),
    "stock_signal": _Column(
        "stock seen by", False, lambda o: o.stock_signal, lambda o: o.stock_signal.replace("_", " ")
    ),
    "price_observed_at": _Column("seen", False, lambda o: o.price_observed_at),
    "price_age_days": _Column("age", True, lambda o: _text(o.price_age_days), _age),
    "offer": _Column("offer", False, lambda o: o.offer),
    "offer_id": _Column("offer id", False, lambda o: o.offer_id),
    "price_source": _Column("source", False, lambda o: o.price_source),
    "flags": _Column("remarks", False, _flags, lambda o: _flags(o).replace("_", " ")),
}
COLUMN_KEYS = tuple(_COLUMNS)
_ON_SCREEN = (
    *("accelerator", "gpus", "provider", "region", "market"),
    *("shown_per_hour", "shown_per_gpu_hour", "shown_per_gb_hour_as_sold", "price_age_days"),
)
_GROUPED = ("group_offers", "group_low", "group_median", "group_high")
_BAR_CELLS = 18
_LEFT_OUT_AT_MOST = 12


def columns_of(text: str) -> tuple[str, ...]:
    """The columns that ``text`` names.

    Raises:
        Refused: one is not known.
    """
    asked = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    wrong = [name for name in asked if name not in _COLUMNS]
    if asked and not wrong:
        return asked
    from rackrate.cli.refusals import printable
    from rackrate.problems import Code, Finding, Refused, nearest

    close = nearest(wrong[0], _COLUMNS) if wrong else []
    raise Refused(
        [
            Finding(
                code=Code.UNKNOWN_NAME,
                subject="--columns",
                observed=printable(", ".join(wrong)),
                expected=f"some of {', '.join(_COLUMNS)}",
                action=f"did you mean {' or '.join(close)}?" if close else "name columns with commas between them",
            )
        ]
    )


def table(document: OffersDocument, columns: Sequence[str] | None = None) -> Table:
    """The offers listed, a row each (for CSV and Markdown); of groups, what each is comes first."""
    keys = tuple(columns or COLUMN_KEYS)
    rows = [tuple(_cell(offer, key, document) for key in keys) for offer in document.offers]
    groups = (*(("group",) if document.group_by else ()), *(_GROUPED if document.group_by else ()))
    if document.group_by:
        rows = [(*_group_cells(group), *row) for group, row in zip(document.groups, rows, strict=True)]
    titles = (*groups, *keys)
    flush = {i for i, key in enumerate(titles) if key in _GROUPED or (key in _COLUMNS and _COLUMNS[key].right)}
    return Table(keys=titles, titles=titles, rows=tuple(rows), right=frozenset(flush))


def _cell(offer: OfferDoc, key: str, document: OffersDocument) -> str:
    return document.currency if key == "shown_currency" else _COLUMNS[key].cell(offer)


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
    yield from _left_out(document)
    yield from warnings(document.warnings)
    yield _footer(document)


def _none(document: OffersDocument) -> str:
    if not document.considered:
        return f"No offer: no price is known that was seen by {document.as_of}."
    return "No offer: every one was left out."


def _listed(document: OffersDocument, columns: Sequence[str] | None) -> Iterator[Part]:
    keys = tuple(columns or _ON_SCREEN)
    rows = tuple(tuple(_shown_cell(offer, key, document) for key in keys) for offer in document.offers)
    flush = frozenset(i for i, key in enumerate(keys) if _COLUMNS[key].right)
    yield drawn(Table(keys=keys, titles=tuple(_COLUMNS[key].title for key in keys), rows=rows, right=flush))
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
    column = _COLUMNS[key]
    return (column.shown or column.cell)(offer)


def _ladder(document: OffersDocument) -> Iterator[Part]:
    """A row for each group: its cheapest offer, and a bar from the lowest to the highest price of a card."""
    highest = max((Decimal(g.high) for g in document.groups if g.high), default=Decimal(1))
    keys = ("group", "offers", "low", "at", "median", "high", "bar")
    rows = tuple(
        (
            words.word(words.MARKETS, group.name) if document.group_by == "market" else _short(group.name),
            str(group.offers),
            _money(group.low),
            _card(first) if document.group_by == "provider" else first.provider,
            _money(group.median),
            _money(group.high),
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


def _left_out(document: OffersDocument) -> Iterator[Part]:
    """What each test left out; with nothing listed, what to drop comes first."""
    groups = document.left_out
    if not groups:
        return
    if not document.offers:
        yield from _what_to_drop(document)
    yield "Left out:"
    rows = [(f"  {group.count:>4}", _said(group, document.currency)) for group in groups[:_LEFT_OUT_AT_MOST]]
    yield pairs(rows, style=PLAIN)
    yield ""


def _what_to_drop(document: OffersDocument) -> Iterator[Part]:
    """The filters of which one is to be dropped, and what then comes in."""
    if not document.drops:
        yield "Without any one filter there would still be none: drop two."
    rows = [(f"Drop {_asked(one)}", _comes_in(one, document.currency)) for one in document.drops]
    if rows:
        yield pairs(rows)
    yield ""


def _asked(one: OfferDropDoc) -> str:
    """A filter as it was typed."""
    asked = _words_of(one.asked)
    return _dropped(asked) if one.knob == "limits.require" else f"{flag_of(one.knob)} {_quoted(asked)}"


def _comes_in(one: OfferDropDoc, currency: str) -> str:
    return f"{one.found} come in, cheapest: {_cheap(one.nearest, currency)}"


def _cheap(offer: OfferDoc, currency: str) -> str:
    price = f", {small_money(offer.shown_per_gpu_hour)} {currency} per GPU-hour" if offer.shown_per_gpu_hour else ""
    return f"{offer.gpus} x {_card(offer)}, {offer.provider}{price}"


_FROM = "_from"
"""How the markets end in which a price is the lowest of several."""

_NOT_SAID = frozenset({"any", "none"})
"""What a limit is changed to by leaving it out."""

_MEMORY = "min_memory_gb="
"""How the property begins that --min-memory asks for."""

FLAGS = {
    "limits.gpus": "--gpu",
    "limits.vendors": "--vendor",
    "limits.require": "--require",
    "limits.gpu_counts": "--gpus",
    "limits.max_gpus": "--max-gpus",
    "limits.providers": "--provider",
    "limits.exclude_providers": "--exclude-provider",
    "limits.regions": "--region",
    "limits.markets": "--market",
    "limits.access": "--need",
    "currencies": "--priced-in",
}


def flag_of(knob: str) -> str:
    """The flag that a change is made with."""
    return FLAGS.get(knob, f"--{knob.replace('_', '-')}")


def _said(group: OfferLeftOutDoc, currency: str) -> str:
    text = words.word(words.REASONS, group.reason)
    near = group.nearest
    if near is None or group.change is None:
        return text
    return f"{text}; {group.alone} by this alone, cheapest: {_cheap(near, currency)}; in {_typed(group.change)}"


def _typed(change: ChangeDoc) -> str:
    """The change as the command line takes it."""
    if change.knob == "history":
        return "with --history"
    before, after = _words_of(change.before), _words_of(change.after)
    if change.knob == "limits.require":
        return f"without {_dropped([text for text in before if text not in after])}"
    flag = flag_of(change.knob)
    if change.after in _NOT_SAID:
        return f"without {flag} {_quoted(before)}"
    return f"with {flag} {_quoted(after)} instead of {_quoted(before)}"


def _dropped(requirements: Sequence[str]) -> str:
    """The flags that ask for these properties."""
    return " and ".join(
        f"--min-memory {text.removeprefix(_MEMORY)}" if text.startswith(_MEMORY) else f"--require {text}"
        for text in requirements
    )


def _words_of(text: str) -> list[str]:
    return text.split(", ")


def _quoted(texts: Sequence[str]) -> str:
    """A list as one word of a shell."""
    joined = ",".join(texts)
    return joined if all(c.isalnum() or c in "-_.,:/=" for c in joined) else f"'{joined}'"


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
