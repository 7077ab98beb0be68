"""The offer table: coded columns for filtering and bounding, records only for what survives.

A column holds one entry per offer; names are codes into a vocabulary. A record
(``Offer``, exact in Decimal) is made when it is asked for, so the table also
serves lists of millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.billing import BillingRules
from rackrate.offers.conflicts import DATE_IS_SURE, disagreements, superseded
from rackrate.offers.meter import Meter, is_qualified, meter_of
from rackrate.offers.offer import MachineShape, Offer
from rackrate.offers.regions import matches_region
from rackrate.values import Value, replace

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Place = tuple[str, str, tuple[str, ...]]
"""A region as sold, its country (ISO 3166 alpha-2, empty when unknown) and its groups of countries."""

RulesOf = Callable[[str], BillingRules]
K = TypeVar("K", bound=Hashable)


class OfferRow(NamedTuple):
    """What the columns need of one offer; ``label`` tells machines of unknown cards apart."""

    provider: str
    name: str
    product: str
    label: str
    shapes: tuple[MachineShape, ...]
    gpus: int
    share: float
    place: Place
    market: str
    currency: str
    price_per_term: float
    term_unit: str
    term_hours: float
    prepaid: bool
    minimum_terms: int
    validity_hours: float
    interruptible: bool
    commitment_unknown: bool
    price_is_from: bool
    excludes_host: bool
    day: int
    dated: bool


class OfferTable(Value, frozen=True, kw_only=True, eq=False):
    """Offers as columns.

    Vocabularies: ``shape_sets`` (the shapes that an ambiguous card can be; the
    empty set is an unknown card), ``providers``, ``products``, ``places``,
    ``markets``, ``currencies``, ``term_units``; the columns ``shape_set``,
    ``provider``, ... are codes into them. ``price_per_hour`` is of the whole
    offer in its own currency; ``priced`` says that it is a positive number.
    ``term_hours`` is what one price buys, ``minimum_terms`` the least number
    sold, ``validity_hours`` the life of a credit pack (infinite for others).
    ``granularity_s``, ``minimum_s``, ``minimum_once``, ``lapses_on_stop`` and
    ``meter_known`` are the provider's meter (see ``meter.Meter``).
    ``observed_day`` is the proleptic ordinal of the date. ``thing`` numbers the
    things sold; observations of one thing by one seller form a price series,
    of which one is not ``superseded``.
    """

    shape_sets: tuple[tuple[MachineShape, ...], ...]
    providers: tuple[str, ...]
    products: tuple[str, ...]
    places: tuple[Place, ...]
    markets: tuple[str, ...]
    currencies: tuple[str, ...]
    term_units: tuple[str, ...]
    shape_set: Codes
    provider: Codes
    product: Codes
    place: Codes
    market: Codes
    currency: Codes
    term_unit: Codes
    gpus: Codes
    share: Floats
    price_per_hour: Floats
    priced: Bools
    term_hours: Floats
    minimum_terms: Floats
    validity_hours: Floats
    prepaid: Bools
    interruptible: Bools
    commitment_unknown: Bools
    price_is_from: Bools
    excludes_host: Bools
    granularity_s: Floats
    minimum_s: Floats
    minimum_once: Bools
    lapses_on_stop: Bools
    meter_known: Bools
    observed_day: Codes
    thing: Codes
    superseded: Bools
    record: Callable[[int], Offer]

    @classmethod
    def from_offers(
        cls, offers: Iterable[Offer], rules_of: RulesOf | None = None, *, at: date | None = None
    ) -> OfferTable:
        """A table of ``offers`` under the billing rules in force at ``at`` (none: every meter is unknown)."""
        kept = tuple(offers)
        return cls.from_rows([_row(offer) for offer in kept], kept.__getitem__, rules_of, at=at)

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[OfferRow],
        record: Callable[[int], Offer],
        rules_of: RulesOf | None = None,
        *,
        at: date | None = None,
    ) -> OfferTable:
        """A table of ``rows``, whose exact records ``record`` makes when asked."""
        shape_sets, shape_set = _coded([row.shapes for row in rows])
        providers, provider = _coded([row.provider for row in rows])
        products, product = _coded([row.product for row in rows])
        places, place = _coded([row.place for row in rows])
        markets, market = _coded([row.market for row in rows])
        currencies, currency = _coded([row.currency for row in rows])
        term_units, term_unit = _coded([row.term_unit for row in rows])
        _, thing = _coded([_thing(row, shapes) for row, shapes in zip(rows, shape_set.tolist(), strict=True)])
        _, series = _coded(list(zip(thing.tolist(), provider.tolist(), strict=True)))
        dated, day = _bools([row.dated for row in rows]), _ints([row.day for row in rows])
        term_hours = _floats([row.term_hours for row in rows])
        price_per_hour = _floats([row.price_per_term for row in rows]) / term_hours
        priced = np.isfinite(price_per_hour) & (price_per_hour > 0)
        meters = _meters(rows, rules_of, at)
        return cls(
            shape_sets=shape_sets,
            providers=providers,
            products=products,
            places=places,
            markets=markets,
            currencies=currencies,
            term_units=term_units,
            shape_set=shape_set,
            provider=provider,
            product=product,
            place=place,
            market=market,
            currency=currency,
            term_unit=term_unit,
            gpus=_ints([row.gpus for row in rows]),
            share=_floats([row.share for row in rows]),
            price_per_hour=price_per_hour,
            priced=priced,
            term_hours=term_hours,
            minimum_terms=_floats([row.minimum_terms for row in rows]),
            validity_hours=_floats([row.validity_hours for row in rows]),
            prepaid=_bools([row.prepaid for row in rows]),
            interruptible=_bools([row.interruptible for row in rows]),
            commitment_unknown=_bools([row.commitment_unknown for row in rows]),
            price_is_from=_bools([row.price_is_from for row in rows]),
            excludes_host=_bools([row.excludes_host for row in rows]),
            granularity_s=_floats([float(meter.granularity_s) for meter in meters]),
            minimum_s=_floats([float(meter.minimum_s) for meter in meters]),
            minimum_once=_bools([meter.per_resource for meter in meters]),
            lapses_on_stop=_bools([meter.lapses_on_stop for meter in meters]),
            meter_known=_bools([meter.is_known for meter in meters]),
            observed_day=day,
            thing=thing,
            superseded=superseded(series, priced, dated, day, price_per_hour),
            record=record,
        )

    def __len__(self) -> int:
        return len(self.shape_set)

    def offer(self, index: int) -> Offer:
        """The exact record of row ``index``, with what other observations of the same thing say."""
        offer = self._marked(index)
        same = np.flatnonzero(self.thing == self.thing[index])
        if len(same) == 1:
            return offer
        found = disagreements([offer if i == index else self._marked(i) for i in same.tolist()])
        return replace(offer, findings=(*offer.findings, *found)) if found else offer

    def records(self, rows: Bools | None = None) -> tuple[Offer, ...]:
        """The exact records of ``rows`` (all of them if None; for short lists)."""
        chosen = range(len(self)) if rows is None else np.flatnonzero(rows).tolist()
        return tuple(self.offer(i) for i in chosen)

    def surely(self, accelerator: str) -> Bools:
        """Which rows are whole or sliced cards of ``accelerator`` and cannot be anything else."""
        is_it = [{shape.accelerator for shape in shapes} == {accelerator} for shapes in self.shape_sets]
        return np.array(is_it, dtype=np.bool_)[self.shape_set]

    def in_regions(self, queries: Iterable[str]) -> Bools:
        """Which rows lie in any of the regions asked for (see ``regions.matches_region``)."""
        wanted = tuple(queries)
        inside = [any(matches_region(query, *place) for query in wanted) for place in self.places]
        return np.array(inside, dtype=np.bool_)[self.place]

    @property
    def region_known(self) -> Bools:
        """Which rows say where they are."""
        return np.array([bool(region) for region, _, _ in self.places], dtype=np.bool_)[self.place]

    def _marked(self, index: int) -> Offer:
        offer = self.record(index)
        return replace(offer, superseded=True) if self.superseded[index] else offer


def _row(offer: Offer) -> OfferRow:
    return OfferRow(
        provider=offer.provider,
        name=offer.name,
        product=offer.product or f"{offer.provider}/{offer.name}",
        label=offer.card_label,
        shapes=offer.shapes,
        gpus=offer.gpus,
        share=offer.share,
        place=(offer.region, offer.country, offer.region_groups),
        market=offer.market,
        currency=offer.price.currency,
        price_per_term=float(offer.price.amount),
        term_unit=offer.term.unit,
        term_hours=float(offer.term.hours),
        prepaid=offer.term.prepaid,
        minimum_terms=offer.minimum_terms,
        validity_hours=offer.validity_days * 24.0 if offer.validity_days else float("inf"),
        interruptible=offer.interruptible,
        commitment_unknown=offer.commitment_unknown,
        price_is_from=offer.price_is_from,
        excludes_host="host" in offer.excludes,
        day=offer.observed_on.toordinal(),
        dated=offer.observed_how in DATE_IS_SURE,
    )


def _thing(row: OfferRow, shape_set: int) -> tuple[Hashable, ...]:
    """What two rows must share to be prices of the same thing; unknown cards go by their label."""
    machine = shape_set if row.shapes else (row.label, row.gpus, row.share)
    return (row.product, machine, row.place[0], row.market, row.term_hours, row.prepaid)


def _coded(values: Sequence[K]) -> tuple[tuple[K, ...], Codes]:
    """A vocabulary in order of first use, and a code per value."""
    codes: dict[K, int] = {}
    column = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int32)
    return tuple(codes), column


def _meters(rows: Sequence[OfferRow], rules_of: RulesOf | None, at: date | None) -> list[Meter]:
    """The meter of every row; looked up once per provider, or per name where rules differ by product."""
    meters: dict[tuple[str, str, bool], Meter] = {}
    rules: dict[str, tuple[BillingRules, bool]] = {}
    found = []
    for row in rows:
        if row.provider not in rules:
            those = rules_of(row.provider) if rules_of else BillingRules(provider=row.provider, rules=())
            rules[row.provider] = (those, is_qualified(those))
        held, by_name = rules[row.provider]
        key = (row.provider, row.name if by_name else "", row.interruptible)
        if key not in meters:
            meters[key] = meter_of(held, row.name, interruptible=row.interruptible, at=at)
        found.append(meters[key])
    return found


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: Sequence[int]) -> Codes:
    return np.array(values, dtype=np.int32)


def _bools(values: Sequence[bool]) -> Bools:
    return np.array(values, dtype=np.bool_)
