"""The offer table: coded columns for filtering and bounding, records only for what survives.

A column holds one entry per offer, or in a very long list one per lot of
offers that are alike but for their price (see ``lots``); names are codes into a
vocabulary. A record (``Offer``, exact in Decimal) is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.arrays import Bools, Codes, Floats, Place, coded
from rackrate.offers.conflicts import disagreements
from rackrate.offers.meter import BillingClass, Clock, Meter, OtherClass, clock_of
from rackrate.offers.offer import MachineShape, Offer
from rackrate.offers.regions import matches_region
from rackrate.values import Value, replace

if TYPE_CHECKING:
    from rackrate.offers.lots import Lots

FLAGS = ("interruptible", "superseded", "priced", "excludes_host", "price_is_from", "commitment_unknown")
"""Columns of truths."""


class OfferTable(Value, frozen=True, kw_only=True, eq=False, dict=True):
    """Offers as columns.

    Vocabularies: ``shape_sets`` (the shapes that an ambiguous card can be; the
    empty set is an unknown card), ``providers``, ``products``, ``places``,
    ``markets``, ``currencies``, ``billing_classes`` with their ``meters``; the
    columns ``shape_set``, ``provider``, ... are codes into them.
    ``price_per_hour`` is of the whole offer in its own currency; ``priced``
    says that it is a positive number. ``observed_day`` is the proleptic ordinal
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
    billing_classes: tuple[BillingClass, ...]
    meters: tuple[Meter, ...]
    shape_set: Codes
    provider: Codes
    product: Codes
    place: Codes
    market: Codes
    currency: Codes
    billing: Codes
    gpus: Codes
    share: Floats
    price_per_hour: Floats
    priced: Bools
    interruptible: Bools
    commitment_unknown: Bools
    price_is_from: Bools
    excludes_host: Bools
    observed_day: Codes
    thing: Codes
    superseded: Bools
    record: Callable[[int], Offer]
    lots: Lots | None = None

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

    def days_of(self, numbers: NDArray[np.intp]) -> Codes:
        """The ordinal days on which offers were seen."""
        return (self.observed_day if self.lots is None else self.lots.observed_day)[numbers]

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

    @cached_property
    def flags(self) -> NDArray[np.uint8]:
        """The truths of ``FLAGS`` as the bits of one number, the first the lowest."""
        flags = np.zeros(len(self), dtype=np.uint8)
        for bit, name in enumerate(FLAGS):
            flags |= np.left_shift(getattr(self, name), bit, dtype=np.uint8, casting="unsafe")
        return flags

    @cached_property
    def clocks(self) -> tuple[tuple[Clock, ...], Codes]:
        """The clocks that there are, and a code into them by billing class."""
        return coded([clock_of(*each) for each in zip(self.billing_classes, self.meters, strict=True)])

    @cached_property
    def other_classes(self) -> tuple[tuple[OtherClass, ...], Codes]:
        """What decides about the lines beside compute, and a code into them by billing class."""
        return coded(
            [
                OtherClass(c.provider, c.name, c.currency, c.includes_disk_gb, c.term.prepaid)
                for c in self.billing_classes
            ]
        )

    @property
    def granularity_s(self) -> Floats:
        """The step in which time is billed, in seconds (see ``meter.Meter``)."""
        return np.array([float(meter.granularity_s) for meter in self.meters], dtype=np.float64)[self.billing]

    @property
    def minimum_s(self) -> Floats:
        """The least time that is billed, in seconds."""
        return np.array([float(meter.minimum_s) for meter in self.meters], dtype=np.float64)[self.billing]

    @property
    def minimum_once(self) -> Bools:
        """Whether that least holds once for all starts."""
        return np.array([meter.per_resource for meter in self.meters], dtype=np.bool_)[self.billing]

    @property
    def meter_known(self) -> Bools:
        """Whether the provider's step was seen."""
        return np.array([meter.is_known for meter in self.meters], dtype=np.bool_)[self.billing]

    @property
    def prepaid(self) -> Bools:
        """Whether whole terms are paid."""
        return np.array([each.term.prepaid for each in self.billing_classes], dtype=np.bool_)[self.billing]

    @property
    def term_unit(self) -> Codes:
        """A code for the unit of the term."""
        return coded([each.term.unit for each in self.billing_classes])[1][self.billing]

    def _marked(self, number: int) -> Offer:
        offer = self.record(number)
        entry = number if self.lots is None else self.lots.entry(number)
        return replace(offer, superseded=True) if self.superseded[entry] else offer

    def _same_thing(self, number: int) -> list[int]:
        if self.lots is not None:
            return self.lots.same_thing(number)
        found: list[int] = np.flatnonzero(self.thing == self.thing[number]).tolist()
        return found
