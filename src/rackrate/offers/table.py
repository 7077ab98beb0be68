"""The offer table: coded columns for filtering and bounding, records only for what survives.

A column holds one entry per offer, or in a very long list one per lot of
offers that are alike but for their price (see ``Lots``); names are codes into a
vocabulary. A record (``Offer``, exact in Decimal) is made when it is asked for.
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
    includes_disk_gb: float = 0.0


class BillingClass(NamedTuple):
    """What decides how an offer is billed, beside its price and term; an empty ``name`` stands for any."""

    provider: str
    name: str
    interruptible: bool
    currency: str
    includes_disk_gb: float
    prepaid: bool


class Lots(Value, frozen=True, kw_only=True, eq=False):
    """The offers behind a table's entries, where an entry stands for several that differ in nothing a plan asks.

    They can differ in price, product, name and date. Offers are numbered by
    entry, then from the cheapest up, of one price the newest first; ``first``
    has the number of each entry's first offer and, last, how many there are.
    ``by_thing`` has the numbers of the offers in order of ``thing``.
    """

    first: Codes
    price_per_hour: Floats
    thing: Codes
    by_thing: Codes

    def entry(self, number: int) -> int:
        """The entry that the offer ``number`` belongs to."""
        return int(np.searchsorted(self.first, number, side="right")) - 1

    def up_to(self, entries: NDArray[np.intp], price: Floats) -> NDArray[np.intp]:
        """How many offers of each of ``entries`` have at most that ``price`` per hour (a bisection of all at once)."""
        low, high = self.first[entries].astype(np.intp), self.first[entries + 1].astype(np.intp)
        while (searching := low < high).any():
            middle = (low + high) // 2
            within = searching & (self.price_per_hour[np.minimum(middle, len(self.price_per_hour) - 1)] <= price)
            low, high = np.where(within, middle + 1, low), np.where(searching & ~within, middle, high)
        return low - self.first[entries]

    def same_thing(self, number: int) -> list[int]:
        """The numbers of all observations of the thing that ``number`` is one of."""
        code = self.thing[number]
        ends = [np.searchsorted(self.thing, code, side, sorter=self.by_thing) for side in ("left", "right")]
        found: list[int] = self.by_thing[ends[0] : ends[1]].tolist()
        return sorted(found)


class OfferTable(Value, frozen=True, kw_only=True, eq=False):
    """Offers as columns.

    Vocabularies: ``shape_sets`` (the shapes that an ambiguous card can be; the
    empty set is an unknown card), ``providers``, ``products``, ``places``,
    ``markets``, ``currencies``, ``term_units``, ``billing_classes`` with their
    ``meters``; the columns ``shape_set``, ``provider``, ... are codes into them.
    ``price_per_hour`` is of the whole offer in its own currency; ``priced``
    says that it is a positive number. ``term_hours`` is what one price buys,
    ``minimum_terms`` the least number sold, ``validity_hours`` the life of a
    credit pack (infinite for others). ``observed_day`` is the proleptic ordinal
    of the date. ``thing`` numbers the things sold; observations of one thing by
    one seller form a price series, of which one is not ``superseded``.

    ``record`` makes the exact offer of a number. Offers are numbered as the
    entries are, unless these are ``lots``; of a lot, price, product, day and
    thing are those of its first offer.
    """

    shape_sets: tuple[tuple[MachineShape, ...], ...]
    providers: tuple[str, ...]
    products: Sequence[str]
    places: tuple[Place, ...]
    markets: tuple[str, ...]
    currencies: tuple[str, ...]
    term_units: tuple[str, ...]
    billing_classes: tuple[BillingClass, ...]
    meters: tuple[Meter, ...]
    shape_set: Codes
    provider: Codes
    product: Codes
    place: Codes
    market: Codes
    currency: Codes
    term_unit: Codes
    billing: Codes
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
    observed_day: Codes
    thing: Codes
    superseded: Bools
    record: Callable[[int], Offer]
    lots: Lots | None = None

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
        billing_classes, billing = _coded(_classes(rows, rules_of))
        return cls(
            shape_sets=shape_sets,
            providers=providers,
            products=products,
            places=places,
            markets=markets,
            currencies=currencies,
            term_units=term_units,
            billing_classes=billing_classes,
            meters=meters_of(billing_classes, rules_of, at),
            shape_set=shape_set,
            provider=provider,
            product=product,
            place=place,
            market=market,
            currency=currency,
            term_unit=term_unit,
            billing=billing,
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
            observed_day=day,
            thing=thing,
            superseded=superseded(series, priced, dated, day, price_per_hour),
            record=record,
        )

    def __len__(self) -> int:
        return len(self.shape_set)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many offers each entry stands for."""
        return np.ones(len(self), dtype=np.intp) if self.lots is None else np.diff(self.lots.first).astype(np.intp)

    @property
    def count(self) -> int:
        """How many offers there are."""
        return len(self) if self.lots is None else int(self.lots.first[-1])

    def number(self, index: int) -> int:
        """The number of the first, cheapest offer of the entry ``index``."""
        return index if self.lots is None else int(self.lots.first[index])

    def numbers(self, entries: NDArray[np.intp]) -> NDArray[np.intp]:
        """The number of the first offer of each of ``entries``."""
        return entries if self.lots is None else self.lots.first[entries].astype(np.intp)

    def first_offer(self, index: int) -> Offer:
        """The exact record of the first offer of an entry (see ``offer``)."""
        return self.offer(self.number(index))

    def prices_of(self, numbers: NDArray[np.intp]) -> Floats:
        """The prices per hour of offers."""
        return (self.price_per_hour if self.lots is None else self.lots.price_per_hour)[numbers]

    def up_to(self, entries: NDArray[np.intp], price: Floats) -> NDArray[np.intp]:
        """How many offers of each of ``entries``, which come from the cheapest up, have at most that price per hour."""
        if self.lots is not None:
            return self.lots.up_to(entries, price)
        return (self.price_per_hour[entries] <= price).astype(np.intp)

    def offer(self, number: int) -> Offer:
        """The exact record of an offer, with what other observations of the same thing say."""
        offer, same = self._marked(number), self._same_thing(number)
        if len(same) == 1:
            return offer
        found = disagreements([offer if i == number else self._marked(i) for i in same])
        return replace(offer, findings=(*offer.findings, *found)) if found else offer

    def records(self, entries: Bools | None = None) -> tuple[Offer, ...]:
        """The exact records of the first offer of each of ``entries`` (all if None; for short lists)."""
        chosen = range(len(self)) if entries is None else np.flatnonzero(entries).tolist()
        return tuple(self.offer(self.number(i)) for i in chosen)

    def surely(self, accelerator: str) -> Bools:
        """Which rows are whole or sliced cards of ``accelerator`` and cannot be anything else."""
        is_it = [{shape.accelerator for shape in shapes} == {accelerator} for shapes in self.shape_sets]
        return np.array(is_it, dtype=np.bool_)[self.shape_set]

    def in_regions(self, queries: Iterable[str]) -> Bools:
        """Which rows lie in any of the regions asked for (see ``regions.matches_region``)."""
        return self.places_in(queries)[self.place]

    def places_in(self, queries: Iterable[str]) -> Bools:
        """Which ``places`` lie in any of the regions asked for."""
        wanted = tuple(queries)
        inside = [any(matches_region(query, *place) for query in wanted) for place in self.places]
        return np.array(inside, dtype=np.bool_)

    @property
    def region_known(self) -> Bools:
        """Which rows say where they are."""
        return np.array([bool(region) for region, _, _ in self.places], dtype=np.bool_)[self.place]

    @property
    def granularity_s(self) -> Floats:
        """The step in which time is billed, in seconds (see ``meter.Meter``)."""
        return _floats([float(meter.granularity_s) for meter in self.meters])[self.billing]

    @property
    def minimum_s(self) -> Floats:
        """The least time that is billed, in seconds."""
        return _floats([float(meter.minimum_s) for meter in self.meters])[self.billing]

    @property
    def minimum_once(self) -> Bools:
        """Whether that least holds once for all starts."""
        return _bools([meter.per_resource for meter in self.meters])[self.billing]

    @property
    def lapses_on_stop(self) -> Bools:
        """Whether stopping forfeits the rest of a term."""
        return _bools([meter.lapses_on_stop for meter in self.meters])[self.billing]

    @property
    def meter_known(self) -> Bools:
        """Whether the provider's step was seen."""
        return _bools([meter.is_known for meter in self.meters])[self.billing]

    def _marked(self, number: int) -> Offer:
        offer = self.record(number)
        entry = number if self.lots is None else self.lots.entry(number)
        return replace(offer, superseded=True) if self.superseded[entry] else offer

    def _same_thing(self, number: int) -> list[int]:
        if self.lots is not None:
            return self.lots.same_thing(number)
        found: list[int] = np.flatnonzero(self.thing == self.thing[number]).tolist()
        return found


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
        includes_disk_gb=float(offer.includes_disk_gb),
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


def _classes(rows: Sequence[OfferRow], rules_of: RulesOf | None) -> list[BillingClass]:
    """The billing class of every row; its name counts only where the provider's rules differ by product."""
    by_name: dict[str, bool] = {}
    classes = []
    for row in rows:
        provider = row.provider
        if provider not in by_name:
            by_name[provider] = rules_of is not None and is_qualified(rules_of(provider))
        name = row.name if by_name[provider] else ""
        classes.append(BillingClass(provider, name, row.interruptible, row.currency, row.includes_disk_gb, row.prepaid))
    return classes


def meters_of(classes: Sequence[BillingClass], rules_of: RulesOf | None, at: date | None) -> tuple[Meter, ...]:
    """The meter of each class under the rules in force at ``at``."""
    made: dict[tuple[str, str, bool], Meter] = {}
    for one in classes:
        key = (one.provider, one.name, one.interruptible)
        if key not in made:
            rules = rules_of(one.provider) if rules_of else BillingRules(provider=one.provider, rules=())
            made[key] = meter_of(rules, one.name, interruptible=one.interruptible, at=at)
    return tuple(made[one.provider, one.name, one.interruptible] for one in classes)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: Sequence[int]) -> Codes:
    return np.array(values, dtype=np.int32)


def _bools(values: Sequence[bool]) -> Bools:
    return np.array(values, dtype=np.bool_)
