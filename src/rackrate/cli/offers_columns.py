"""The columns of ``offers``: of each its title, its cell for machines and its cell for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rackrate.cli import words
from rackrate.cli.numbers import small_money

if TYPE_CHECKING:
    from rackrate.app.wire.offers import OfferDoc


class Column(NamedTuple):
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


def amount(text: str | None) -> str:
    """An amount for people; ? where it is not known."""
    return "?" if text is None else small_money(text)


def _age(offer: OfferDoc) -> str:
    return "?" if offer.price_age_days is None else f"{offer.price_age_days}"


def card(offer: OfferDoc) -> str:
    """The card for people: the likeliest, how many others it can be, and what part of one is sold."""
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


COLUMNS: Mapping[str, Column] = {
    "accelerator": Column("card", False, lambda o: o.accelerator, card),
    "gpus": Column("n", True, lambda o: str(o.gpus)),
    "share": Column("share", True, lambda o: _text(o.share)),
    "memory_sold_gb": Column("GB", True, lambda o: _text(o.memory_sold_gb)),
    "form_factor": Column("form", False, lambda o: o.form_factor),
    "provider": Column("provider", False, lambda o: o.provider),
    "region": Column("region", False, lambda o: o.region),
    "country": Column("in", False, lambda o: o.country),
    "market": Column("market", False, lambda o: o.market, lambda o: words.word(words.MARKETS, o.market)),
    "price_per_hour": Column("price/h", True, lambda o: o.price_per_hour, lambda o: small_money(o.price_per_hour)),
    "price_currency": Column("in", False, lambda o: o.price_currency),
    "shown_per_hour": Column("/h", True, lambda o: o.shown_per_hour or "", lambda o: amount(o.shown_per_hour)),
    "shown_per_gpu_hour": Column(
        "/GPU-h", True, lambda o: o.shown_per_gpu_hour or "", lambda o: amount(o.shown_per_gpu_hour)
    ),
    "shown_per_gb_hour_as_sold": Column(
        "/GB-h", True, lambda o: o.shown_per_gb_hour_as_sold or "", lambda o: amount(o.shown_per_gb_hour_as_sold)
    ),
    "shown_currency": Column("", False, lambda _: ""),
    "term": Column("term", False, lambda o: o.term, lambda o: o.term.replace("_", " ")),
    "term_hours": Column("hours", True, lambda o: _text(o.term_hours)),
    "minimum_terms": Column("least", True, lambda o: str(o.minimum_terms)),
    "billing_step_s": Column("step", True, lambda o: _text(o.billing.step_s), lambda o: _span(o.billing.step_s)),
    "billing_minimum_s": Column(
        "min.", True, lambda o: _text(o.billing.minimum_s), lambda o: _span(o.billing.minimum_s)
    ),
    "stop": Column("when stopped", False, lambda o: o.billing.stop, lambda o: words.word(words.STOPS, o.billing.stop)),
    "stock": Column("stock", False, lambda o: o.stock),
    "stock_signal": Column(
        "stock seen by", False, lambda o: o.stock_signal, lambda o: o.stock_signal.replace("_", " ")
    ),
    "price_observed_at": Column("seen", False, lambda o: o.price_observed_at),
    "price_age_days": Column("age", True, lambda o: _text(o.price_age_days), _age),
    "offer": Column("offer", False, lambda o: o.offer),
    "offer_id": Column("offer id", False, lambda o: o.offer_id),
    "price_source": Column("source", False, lambda o: o.price_source),
    "flags": Column("remarks", False, _flags, lambda o: _flags(o).replace("_", " ")),
}
COLUMN_KEYS = tuple(COLUMNS)
ON_SCREEN = (
    *("accelerator", "gpus", "provider", "region", "market"),
    *("shown_per_hour", "shown_per_gpu_hour", "shown_per_gb_hour_as_sold", "price_age_days"),
)


def columns_of(text: str) -> tuple[str, ...]:
    """The columns that ``text`` names.

    Raises:
        Refused: one is not known.
    """
    asked = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    wrong = [name for name in asked if name not in COLUMNS]
    if asked and not wrong:
        return asked
    from rackrate.cli.refusals import printable
    from rackrate.problems import Code, Finding, Refused, nearest

    close = nearest(wrong[0], COLUMNS) if wrong else []
    raise Refused(
        [
            Finding(
                code=Code.UNKNOWN_NAME,
                subject="--columns",
                observed=printable(", ".join(wrong)),
                expected=f"some of {', '.join(COLUMNS)}",
                action=f"did you mean {' or '.join(close)}?" if close else "name columns with commas between them",
            )
        ]
    )
