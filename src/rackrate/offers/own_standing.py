"""Which own prices stand, and which bundled ones they replace (the rule is in ``own``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rackrate.offers.conflicts import disagreements
from rackrate.offers.offer import Offer
from rackrate.offers.own import NEGOTIATED, OwnLine
from rackrate.offers.table import OfferTable
from rackrate.values import replace


class Standing(NamedTuple):
    """What became of the own price in ``row``: rows that it replaces, and the row that replaces it (-1: none)."""

    line: OwnLine
    row: int
    replaces: tuple[int, ...]
    replaced_by: int


def settled(
    table: OfferTable, lines: Sequence[OwnLine], dated: Sequence[bool]
) -> tuple[OfferTable, tuple[Standing, ...]]:
    """``table``, whose last rows are ``lines``, with own prices in force.

    ``dated`` says for each row of the table whether its date is sure.
    """
    first = len(table) - len(lines)
    rows = _Rows(table, dated, {first + number: line for number, line in enumerate(lines)})
    standings = rows.standings()
    superseded = table.superseded.copy()
    for one in standings:
        superseded[one.row] = one.replaced_by >= 0
        superseded[list(one.replaces)] = True
    beaten = {one.row: one.replaces for one in standings if one.replaces}
    record = partial(_record, table.record, table, beaten)
    return replace(table, superseded=superseded, record=record), standings


class _Rows:
    """The rows of a table by position, the own ones with their lines."""

    def __init__(self, table: OfferTable, dated: Sequence[bool], own: Mapping[int, OwnLine]) -> None:
        self._table = table
        self._dated = dated
        self._own = own

    def standings(self) -> tuple[Standing, ...]:
        losers, live = self._beaten_by_own(), self._live()
        return tuple(self._standing(index, losers, live) for index in self._own)

    def _standing(self, index: int, losers: Mapping[int, int], live: Mapping[Hashable, Sequence[int]]) -> Standing:
        line = self._own[index]
        if index in losers:
            return Standing(line, index, (), losers[index])
        same = [other for other in live.get(self._product(index), ()) if self._is_same(index, other)]
        beaten = tuple(other for other in same if self._beats(index, other))
        newer = next((other for other in same if other not in beaten), -1)
        return Standing(line, index, beaten, -1 if beaten else newer)

    def _beats(self, own: int, other: int) -> bool:
        return self._is_negotiated(own) or not self._table.priced[other] or self._age(own) >= self._age(other)

    def _beaten_by_own(self) -> dict[int, int]:
        """Own rows that give way to another own row of the same thing, and to which.

        Negotiated, then newer, then of the earlier folder, then dearer, then later in the file.
        """
        best: dict[Hashable, int] = {}

        def rank(index: int) -> tuple[bool, tuple[bool, int], int, float, int]:
            layer, price = self._own[index].row.layer, float(self._table.price_per_hour[index])
            return (self._is_negotiated(index), self._age(index), -layer, price, index)

        keys = {i: (self._series(i), bool(self._table.interruptible[i])) for i in self._own}
        for index, key in keys.items():
            best[key] = max(best.get(key, index), index, key=rank)
        return {index: best[key] for index, key in keys.items() if best[key] != index}

    def _live(self) -> dict[Hashable, list[int]]:
        """The bundled rows in force of each price series, by product and seller; of products that own rows price."""
        products = {int(self._table.product[index]) for index in self._own}
        series: dict[Hashable, int] = {}
        for index, product in enumerate(self._table.product.tolist()):
            if product in products and index not in self._own:
                key = self._series(index)
                series[key] = max(series.get(key, index), index, key=self._rank)
        live: dict[Hashable, list[int]] = {}
        for index in series.values():
            live.setdefault(self._product(index), []).append(index)
        return live

    def _rank(self, index: int) -> tuple[bool, tuple[bool, int], float, int]:
        """As ``conflicts`` ranks the rows of a series."""
        return (bool(self._table.priced[index]), self._age(index), float(self._table.price_per_hour[index]), index)

    def _series(self, index: int) -> Hashable:
        return (int(self._table.thing[index]), int(self._table.provider[index]))

    def _product(self, index: int) -> Hashable:
        return (int(self._table.product[index]), int(self._table.provider[index]))

    def _age(self, index: int) -> tuple[bool, int]:
        """How new a price is: dates that are sure are newer than those that are an upper limit."""
        return (self._dated[index], int(self._table.observed_day[index]))

    def _is_negotiated(self, index: int) -> bool:
        return NEGOTIATED in self._own[index].row.cells["flags"].split("|")

    def _is_same(self, own: int, other: int) -> bool:
        """Whether an own row prices what a bundled row of the same product and seller does."""
        table = self._table
        columns = (table.gpus, table.share, table.term_unit, table.market, table.prepaid, table.interruptible)
        if any(column[own] != column[other] for column in columns):
            return False
        mine, its = (set(table.shape_sets[table.shape_set[i]]) for i in (own, other))
        here, there = (set(table.places[table.place[i]][0].split("|")) for i in (own, other))
        return bool(mine & its) and there <= here


def _record(
    make: Callable[[int], Offer], table: OfferTable, beaten: Mapping[int, tuple[int, ...]], index: int
) -> Offer:
    """The exact offer; an own one names the bundled prices that it replaces (within a series the table does)."""
    offer = make(index)
    others = [i for i in beaten.get(index, ()) if table.thing[i] != table.thing[index]]
    found = disagreements([offer, *(replace(make(i), superseded=True) for i in others)]) if others else ()
    return replace(offer, findings=(*offer.findings, *found)) if found else offer
