"""Offers by the column: very many at once, put into lots without a step of Python for each.

What a plan asks of an offer is a few codes. Offers that agree in all of them
and differ in price alone form a lot, one entry of the table, so filters and
bounds look at lots, of which there are far fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.arrays import Bools, Codes, Floats, Place, RulesOf, coded
from rackrate.offers.conflicts import superseded
from rackrate.offers.lots import Lots
from rackrate.offers.meter import BillingClass, Namesakes, SoldTerm, meters_of
from rackrate.offers.offer import MachineShape, Offer
from rackrate.offers.table import OfferTable
from rackrate.values import Value, replace

K = TypeVar("K")
Column = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.bool_]

_MOST_KEYS = 2**62


class Coded(NamedTuple, Generic[K]):
    """A column of names: a vocabulary, and a code per offer."""

    words: Sequence[K]
    codes: Codes


class Machine(Value, frozen=True):
    """What is rented; ``label`` tells machines of unknown cards apart."""

    label: str
    shapes: tuple[MachineShape, ...]
    gpus: int
    share: float


class Conditions(Value, frozen=True):
    """What is said about a price."""

    interruptible: bool = False
    commitment_unknown: bool = False
    price_is_from: bool = False
    excludes_host: bool = False
    includes_disk_gb: float = 0.0


class OfferColumns(Value, frozen=True, kw_only=True, eq=False):
    """What the table needs of every offer: the fields of ``OfferRow`` as columns.

    The words of ``product`` and ``name`` must differ; those of others may repeat.
    """

    provider: Coded[str]
    name: Coded[str]
    product: Coded[str]
    machine: Coded[Machine]
    place: Coded[Place]
    market: Coded[str]
    currency: Coded[str]
    term: Coded[SoldTerm]
    conditions: Coded[Conditions]
    price_per_term: Floats
    day: Codes
    dated: Bools


def table_of(
    columns: OfferColumns, record: Callable[[int], Offer], rules_of: RulesOf | None = None, *, at: date | None = None
) -> tuple[OfferTable, Codes]:
    """A table of lots, and by number of each offer its place in ``columns``.

    ``record`` makes the exact offer at a place in ``columns``. Prices that are
    one float count as one price: a price has at most 15 digits.
    """
    offers = _Offers(columns, rules_of)
    lot = offers.lot()
    order = np.lexsort((-columns.day, offers.price_per_hour, lot)).astype(np.int32)
    first = np.searchsorted(lot[order], np.arange(lot.max(initial=-1) + 2)).astype(np.int32)
    thing = offers.thing[order]
    lots = Lots(
        first=first,
        price_per_hour=offers.price_per_hour[order],
        thing=thing,
        by_thing=np.argsort(thing, kind="stable").astype(np.int32),
        observed_day=columns.day[order],
    )
    table = offers.table(order[first[:-1]], lots, lambda number: record(int(order[number])))
    return replace(table, meters=meters_of(table.billing_classes, rules_of, at)), order


class _Offers:
    """Codes and numbers of every offer, in the order of the columns."""

    def __init__(self, columns: OfferColumns, rules_of: RulesOf | None) -> None:
        self.columns = columns
        terms, machines, places = columns.term.words, columns.machine.words, columns.place.words
        self.provider = _recoded(columns.provider)
        self.place = _recoded(columns.place)
        self.market = _recoded(columns.market)
        self.currency = _recoded(columns.currency)
        self.shape_set = _recoded(Coded([machine.shapes for machine in machines], columns.machine.codes))
        self.region = _recoded(Coded([place[0] for place in places], columns.place.codes)).codes
        self.billing = _billing(columns, rules_of)
        self.price_per_hour = columns.price_per_term / _of_words(terms, lambda t: t.hours, columns.term.codes)
        self.priced = np.isfinite(self.price_per_hour) & (self.price_per_hour > 0)
        self.thing = self._thing()
        series = distinct(self.thing, self.provider.codes)
        self.superseded = superseded(series, self.priced, columns.dated, columns.day, self.price_per_hour)

    def _thing(self) -> Codes:
        """What offers must share to be prices of the same thing (as in ``rows``)."""
        columns = self.columns
        machines = [machine.shapes or (machine.label, machine.gpus, machine.share) for machine in columns.machine.words]
        terms = [(term.hours, term.prepaid) for term in columns.term.words]
        return distinct(
            columns.product.codes,
            _recoded(Coded(machines, columns.machine.codes)).codes,
            self.region,
            self.market.codes,
            _recoded(Coded(terms, columns.term.codes)).codes,
        )

    def lot(self) -> Codes:
        """What offers must share to differ in price alone, to a plan; shape sets come in order."""
        columns = self.columns
        machines = [(machine.shapes, machine.gpus, machine.share) for machine in columns.machine.words]
        return distinct(
            self.shape_set.codes,
            _recoded(Coded(machines, columns.machine.codes)).codes,
            self.provider.codes,
            self.place.codes,
            self.market.codes,
            _recoded(columns.conditions).codes,
            self.billing.codes,
            self.superseded,
            self.priced,
        )

    def table(self, entries: Codes, lots: Lots, record: Callable[[int], Offer]) -> OfferTable:
        """The table whose entries are at the places ``entries`` (its meters are still to come)."""
        machines, conditions = self.columns.machine, self.columns.conditions
        machine, condition = machines.codes[entries], conditions.codes[entries]
        return OfferTable(
            shape_sets=tuple(self.shape_set.words),
            providers=tuple(self.provider.words),
            products=self.columns.product.words,
            places=tuple(self.place.words),
            markets=tuple(self.market.words),
            currencies=tuple(self.currency.words),
            billing_classes=tuple(self.billing.words),
            meters=(),
            shape_set=self.shape_set.codes[entries],
            provider=self.provider.codes[entries],
            product=self.columns.product.codes[entries],
            place=self.place.codes[entries],
            market=self.market.codes[entries],
            currency=self.currency.codes[entries],
            billing=self.billing.codes[entries],
            gpus=_of_words(machines.words, lambda m: m.gpus, machine).astype(np.int32),
            share=_of_words(machines.words, lambda m: m.share, machine),
            price_per_hour=self.price_per_hour[entries],
            priced=self.priced[entries],
            interruptible=_of_words(conditions.words, lambda c: c.interruptible, condition) == 1,
            commitment_unknown=_of_words(conditions.words, lambda c: c.commitment_unknown, condition) == 1,
            price_is_from=_of_words(conditions.words, lambda c: c.price_is_from, condition) == 1,
            excludes_host=_of_words(conditions.words, lambda c: c.excludes_host, condition) == 1,
            observed_day=self.columns.day[entries],
            thing=self.thing[entries],
            superseded=self.superseded[entries],
            record=record,
            lots=lots,
        )


def _billing(columns: OfferColumns, rules_of: RulesOf | None) -> Coded[BillingClass]:
    """The billing class of every offer; names are looked at where the provider's rules differ by product."""
    namesakes = Namesakes(rules_of)
    by_name = [bool(namesakes.products(provider)) for provider in columns.provider.words]
    named = np.array(by_name, dtype=np.bool_)[columns.provider.codes]
    name = np.where(named, columns.name.codes + 1, 0)
    codes = distinct(columns.provider.codes, name, columns.conditions.codes, columns.currency.codes, columns.term.codes)
    example = np.zeros(codes.max(initial=-1) + 1, dtype=np.intp)
    example[codes[::-1]] = np.arange(len(codes))[::-1]
    return _recoded(Coded([_billing_class(columns, place, namesakes) for place in example.tolist()], codes))


def _billing_class(columns: OfferColumns, place: int, namesakes: Namesakes) -> BillingClass:
    provider, name, currency = (
        each.words[each.codes[place]] for each in (columns.provider, columns.name, columns.currency)
    )
    said, term = (
        columns.conditions.words[columns.conditions.codes[place]],
        columns.term.words[columns.term.codes[place]],
    )
    namesake = namesakes.of(provider, name)
    return BillingClass(provider, namesake, said.interruptible, currency, said.includes_disk_gb, term)


def distinct(*columns: Column) -> Codes:
    """One code for each combination of values that occurs, in the order of the combinations.

    Values are whole numbers from 0 up.
    """
    keys, most = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        values = int(column.max(initial=0)) + 1
        if most * values > _MOST_KEYS:
            keys = _dense(keys)
            most = int(keys.max(initial=0)) + 1
        keys = keys * values + column
        most *= values
    return _dense(keys).astype(np.int32)


def _dense(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _recoded(column: Coded[K]) -> Coded[K]:
    """The column with each word once, words that are not used left out."""
    used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.words)))
    words, codes = coded([column.words[code] for code in used.tolist()])
    new = np.zeros(len(column.words), dtype=np.int32)
    new[used] = codes
    return Coded(words, new[column.codes])


def _of_words(words: Sequence[K], number: Callable[[K], float], codes: Codes) -> Floats:
    """A number of each word, per offer."""
    return np.array([number(word) for word in words], dtype=np.float64)[codes]
