"""Listing: what is on offer, by the tests that a plan makes and a few of its own, sorted and in groups.

Every offer is counted once: it is listed, or left out under the first test
that it fails. ``alone`` of a test is how many would be listed without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.book import FactBook
from rackrate.offers.offer import Offer
from rackrate.offers.table import OfferTable
from rackrate.plan.answer import Change, Reason
from rackrate.plan.filters import (
    KEPT,
    REASONS,
    Failed,
    Test,
    Wanted,
    card_tests,
    code_of,
    flagged,
    seller_tests,
    unknown_card,
)
from rackrate.plan.limit_changes import change_of_limit
from rackrate.plan.selection import first_smallest
from rackrate.values import Value
from rackrate.workload.workload import Limits

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Rows = NDArray[np.intp]

_ROUNDING = 1e-12
"""Of a price per hour that is a quotient of floats: at the limit it is not above it."""


class Listing(Value, frozen=True, kw_only=True, eq=False):
    """What to list: limits, and what only a list is asked; prices in ``currency`` per hour.

    ``history`` keeps prices that a newer one replaced.
    """

    limits: Limits
    offers: OfferTable
    book: FactBook
    currency: str
    min_gpus: int | None = None
    max_price: float | None = None
    max_price_per_gpu: float | None = None
    currencies: tuple[str, ...] = ()
    seen_since: date | None = None
    history: bool = False

    @property
    def wanted(self) -> Wanted:
        """The part that a plan asks too."""
        return Wanted(limits=self.limits, offers=self.offers, book=self.book)


class LeftOut(Value, frozen=True, kw_only=True):
    """Offers left out by one test: how many, how many by this test ``alone``, and the cheapest of these, if any is."""

    reason: Reason
    count: int
    alone: int
    nearest: int | None
    change: Change | None


class Group(Value, frozen=True, kw_only=True):
    """Offers alike in what is grouped by: how many, and their prices per GPU-hour (NaN without a rate)."""

    count: int
    low: float
    median: float
    high: float


class Listed(Value, frozen=True, kw_only=True, eq=False):
    """Numbers of the offers listed, in order; with groups, the first of each, beside its ``groups``."""

    numbers: Rows
    found: int
    groups: tuple[Group, ...]
    left_out: tuple[LeftOut, ...]


class Columns:
    """Every offer's numbers, by its entry in the table; converted prices are NaN without a rate."""

    def __init__(self, listing: Listing) -> None:
        table, rates = listing.offers, listing.book.rates
        self.table = table
        self.entry = np.repeat(np.arange(len(table)), table.sizes)
        factors = [float(rates.factor(c, listing.currency)) if rates.knows(c) else np.nan for c in table.currencies]
        price = table.prices_of(np.arange(table.count))
        priced = np.where(np.isfinite(price) & (price > 0), price, np.nan)
        self.price = priced * np.array(factors, dtype=np.float64)[table.currency[self.entry]]
        self.cards = (table.gpus * table.share)[self.entry]
        self.per_gpu: Floats = self.price / self.cards
        self.memory = np.array([sold_gb(listing, one) for one in range(len(table.shape_sets))], dtype=np.float64)

    def of_entries(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """A column of the table, by offer."""
        found: NDArray[np.generic] = column[self.entry]
        return found

    @property
    def memory_gb(self) -> Floats:
        """GB as sold of one card; NaN where the cards that it can be differ."""
        found: Floats = self.memory[self.table.shape_set[self.entry]]
        return found

    @property
    def day(self) -> Codes:
        """The day on which a price was seen."""
        return self.table.days_of(np.arange(self.table.count))


def sold_gb(listing: Listing, shape_set: int) -> float:
    """GB as sold of one card of a shape set; NaN where the cards that it can be differ, or are not known."""
    cards = listing.book.accelerators
    sizes = {cards[shape.accelerator].memory_sold_gb for shape in listing.offers.shape_sets[shape_set]}
    return sizes.pop() if len(sizes) == 1 else np.nan


# ---------------------------------------------------------------- tests


def listed(listing: Listing, sort: Sequence[str], group_by: str | None = None) -> Listed:
    """What ``listing`` asks for, by the keys of ``sort`` (``-key``: from the largest), unknown last."""
    columns = Columns(listing)
    failed = _failed(listing, columns)
    kept = np.flatnonzero(failed.codes == KEPT)
    ordered = kept[_order(columns, kept, sort)]
    left_out = tuple(_left_out(listing, columns, failed))
    if group_by is None:
        return Listed(numbers=ordered, found=len(kept), groups=(), left_out=left_out)
    codes = _GROUPS[group_by](listing.offers)[columns.entry[ordered]]
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    groups = tuple(_group(columns.per_gpu[ordered[inverse.reshape(-1) == code]]) for code in order.tolist())
    return Listed(numbers=ordered[first[order]], found=len(kept), groups=groups, left_out=left_out)


def _group(prices: Floats) -> Group:
    known = prices[~np.isnan(prices)]
    if not len(known):
        return Group(count=len(prices), low=np.nan, median=np.nan, high=np.nan)
    return Group(count=len(prices), low=float(known.min()), median=float(np.median(known)), high=float(known.max()))


def _failed(listing: Listing, columns: Columns) -> Failed:
    """The first test failed by each offer: those of entries, then those of the prices in them."""
    by_entry = Failed.none(len(listing.offers))
    by_entry.put(_tests_of_entries(listing))
    failed = Failed(by_entry.codes[columns.entry], by_entry.counts[columns.entry])
    failed.put(_tests_of_offers(listing, columns))
    return failed


def _tests_of_entries(listing: Listing) -> Iterator[Test]:
    wanted, limits, table = listing.wanted, listing.limits, listing.offers
    if limits.gpus or limits.vendors or limits.require:
        yield unknown_card(wanted)
    yield from card_tests(wanted)
    yield from seller_tests(wanted)
    if listing.min_gpus is not None:
        yield Test(Reason.GPU_COUNT, table.gpus < listing.min_gpus)
    if not listing.history:
        yield flagged(wanted, Reason.SUPERSEDED, "superseded")
    yield flagged(wanted, Reason.PRICE_INVALID, "priced", fails=False)
    if listing.currencies:
        others = np.array([code not in listing.currencies for code in table.currencies], dtype=np.bool_)
        yield Test(Reason.CURRENCY, others, table.currency)


def _tests_of_offers(listing: Listing, columns: Columns) -> Iterator[Test]:
    """What differs within a lot; a price that cannot be converted is not known to be low enough."""
    if listing.seen_since is not None:
        yield Test(Reason.OLDER, columns.day < listing.seen_since.toordinal())
    limits = ((columns.price, listing.max_price), (columns.per_gpu, listing.max_price_per_gpu))
    above = [~(prices <= most * (1 + _ROUNDING)) for prices, most in limits if most is not None]
    if any(most is not None for _, most in limits):
        no_rate = np.isnan(columns.price) & (columns.table.priced[columns.entry])
        yield Test(Reason.NO_RATE, no_rate)
        for each in above:
            yield Test(Reason.PRICE_ABOVE, each & ~no_rate)


def _left_out(listing: Listing, columns: Columns, failed: Failed) -> Iterator[LeftOut]:
    counts = np.bincount(failed.codes, minlength=int(KEPT) + 1)
    for reason in sorted(REASONS, key=lambda reason: (-counts[code_of(reason)], code_of(reason))):
        code = code_of(reason)
        if not counts[code]:
            continue
        alone = np.flatnonzero((failed.codes == code) & (failed.counts == 1))
        nearest = None if reason is Reason.PRICE_INVALID else _cheapest(columns, alone)
        offer = None if nearest is None else listing.offers.offer(nearest)
        change = None if offer is None else _change(listing, reason, offer)
        yield LeftOut(reason=reason, count=int(counts[code]), alone=len(alone), nearest=nearest, change=change)


def _cheapest(columns: Columns, numbers: Rows) -> int | None:
    """The cheapest per GPU-hour, the first of equals; one without a known price where there is no other."""
    if not len(numbers):
        return None
    prices = np.nan_to_num(columns.per_gpu[numbers], nan=np.inf)
    return int(numbers[first_smallest(prices, np.zeros(len(numbers), dtype=np.int32), 1)[0]])


def _change(listing: Listing, reason: Reason, offer: Offer) -> Change | None:
    """The one limit to loosen so that ``offer`` is listed."""
    if reason is Reason.GPU_COUNT and listing.min_gpus is not None and offer.gpus < listing.min_gpus:
        return Change(knob="min_gpus", before=str(listing.min_gpus), after=str(offer.gpus))
    if reason is Reason.PRICE_ABOVE:
        return _price_change(listing, offer)
    table = {
        Reason.SUPERSEDED: Change(knob="history", before="false", after="true"),
        Reason.CURRENCY: Change(knob="priced_in", before=", ".join(listing.currencies), after=offer.price.currency),
        Reason.OLDER: Change(knob="seen_since", before=f"{listing.seen_since}", after=offer.observed_on.isoformat()),
    }
    return table[reason] if reason in table else change_of_limit(listing.wanted, reason, offer)


def _price_change(listing: Listing, offer: Offer) -> Change | None:
    if not listing.book.rates.knows(offer.price.currency):
        return None
    hourly = float(listing.book.rates.convert(offer.price_per_hour, listing.currency).amount)
    if listing.max_price is not None and hourly > listing.max_price * (1 + _ROUNDING):
        return Change(knob="max_price", before=f"{listing.max_price:g}", after=_rounded_up(hourly))
    each = hourly / (offer.gpus * offer.share)
    return Change(knob="max_price_per_gpu", before=f"{listing.max_price_per_gpu or 0:g}", after=_rounded_up(each))


def _rounded_up(price: float) -> str:
    """A price with four digits that is not below ``price``."""
    digits = 3 - math.floor(math.log10(price))
    return f"{math.ceil(price * 10**digits) / 10**digits:.10g}"


# ---------------------------------------------------------------- order and groups


def _order(columns: Columns, kept: Rows, sort: Sequence[str]) -> Rows:
    """Places of ``kept`` by the keys; what they leave open goes by the price per GPU-hour, then as in the table."""
    keys = [kept, _ascending(columns.per_gpu[kept])]
    for key in reversed(sort):
        values = _SORTS[key.removeprefix("-")](columns)[kept]
        keys.append(_ascending(-values if key.startswith("-") else values))
    return np.lexsort(keys)


def _ascending(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.inf, values)


def _place_in_order(words: Sequence[str], codes: Codes) -> Floats:
    """Numbers that sort as the words of a column do; NaN where there is no word."""
    order = {word: place for place, word in enumerate(sorted(set(words), key=lambda word: (word.casefold(), word)))}
    found: Floats = np.array([order[word] if word else np.nan for word in words], dtype=np.float64)[codes]
    return found


_SORTS: Mapping[str, Callable[[Columns], Floats]] = {
    "price": lambda c: c.price,
    "per_gpu": lambda c: c.per_gpu,
    "per_gb": lambda c: c.per_gpu / c.memory_gb,
    "gpus": lambda c: c.table.gpus[c.entry].astype(np.float64),
    "memory": lambda c: c.memory_gb,
    "seen": lambda c: c.day.astype(np.float64),
    "card": lambda c: _place_in_order(card_names(c.table), c.table.shape_set)[c.entry],
    "provider": lambda c: _place_in_order(c.table.providers, c.table.provider)[c.entry],
    "region": lambda c: _place_in_order([place[0] for place in c.table.places], c.table.place)[c.entry],
    "market": lambda c: _place_in_order(c.table.markets, c.table.market)[c.entry],
}


def card_names(table: OfferTable) -> list[str]:
    """The cards of each shape set, in one text."""
    return ["|".join(dict.fromkeys(shape.accelerator for shape in shapes)) for shapes in table.shape_sets]


def _by_card(table: OfferTable) -> Codes:
    names = card_names(table)
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    found: Codes = np.array([codes[name] for name in names], dtype=np.int32)[table.shape_set]
    return found


_GROUPS: Mapping[str, Callable[[OfferTable], Codes]] = {
    "card": _by_card,
    "provider": lambda table: table.provider,
    "market": lambda table: table.market,
    "region": lambda table: table.place,
}
