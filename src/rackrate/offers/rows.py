"""Rows: what the columns of an offer table need of each offer, and a table of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date

import numpy as np

from rackrate.offers.arrays import Bools, Codes, Floats, Place, RulesOf, coded
from rackrate.offers.conflicts import DATE_IS_SURE, superseded
from rackrate.offers.meter import BillingClass, Namesakes, SoldTerm, meters_of
from rackrate.offers.offer import MachineShape, Offer
from rackrate.offers.table import OfferTable
from rackrate.values import Value


class OfferRow(Value, frozen=True):
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


def row_of(offer: Offer) -> OfferRow:
    """The row of an exact offer."""
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


def table_of_offers(offers: Iterable[Offer], rules_of: RulesOf | None = None, *, at: date | None = None) -> OfferTable:
    """A table of ``offers`` under the billing rules in force at ``at`` (none: every meter is unknown)."""
    kept = tuple(offers)
    return table_of([row_of(offer) for offer in kept], kept.__getitem__, rules_of, at=at)


def table_of(
    rows: Sequence[OfferRow],
    record: Callable[[int], Offer],
    rules_of: RulesOf | None = None,
    *,
    at: date | None = None,
) -> OfferTable:
    """A table of ``rows``, whose exact records ``record`` makes when asked."""
    shape_sets, shape_set = coded([row.shapes for row in rows])
    providers, provider = coded([row.provider for row in rows])
    products, product = coded([row.product for row in rows])
    places, place = coded([row.place for row in rows])
    markets, market = coded([row.market for row in rows])
    currencies, currency = coded([row.currency for row in rows])
    _, thing = coded([_thing(row, shapes) for row, shapes in zip(rows, shape_set.tolist(), strict=True)])
    _, series = coded(list(zip(thing.tolist(), provider.tolist(), strict=True)))
    dated, day = _bools([row.dated for row in rows]), _ints([row.day for row in rows])
    price_per_hour = _floats([row.price_per_term for row in rows]) / _floats([row.term_hours for row in rows])
    priced = np.isfinite(price_per_hour) & (price_per_hour > 0)
    billing_classes, billing = coded(_classes(rows, rules_of))
    return OfferTable(
        shape_sets=shape_sets,
        providers=providers,
        products=products,
        places=places,
        markets=markets,
        currencies=currencies,
        billing_classes=billing_classes,
        meters=meters_of(billing_classes, rules_of, at),
        shape_set=shape_set,
        provider=provider,
        product=product,
        place=place,
        market=market,
        currency=currency,
        billing=billing,
        gpus=_ints([row.gpus for row in rows]),
        share=_floats([row.share for row in rows]),
        price_per_hour=price_per_hour,
        priced=priced,
        interruptible=_bools([row.interruptible for row in rows]),
        commitment_unknown=_bools([row.commitment_unknown for row in rows]),
        price_is_from=_bools([row.price_is_from for row in rows]),
        excludes_host=_bools([row.excludes_host for row in rows]),
        observed_day=day,
        thing=thing,
        superseded=superseded(series, priced, dated, day, price_per_hour),
        record=record,
    )


def _thing(row: OfferRow, shape_set: int) -> tuple[Hashable, ...]:
    """What two rows must share to be prices of the same thing; unknown cards go by their label."""
    machine = shape_set if row.shapes else (row.label, row.gpus, row.share)
    return (row.product, machine, row.place[0], row.market, row.term_hours, row.prepaid)


def _classes(rows: Sequence[OfferRow], rules_of: RulesOf | None) -> list[BillingClass]:
    """The billing class of every row."""
    namesakes, classes = Namesakes(rules_of), []
    for row in rows:
        name = namesakes.of(row.provider, row.name)
        term = SoldTerm(row.term_unit, row.term_hours, row.prepaid, row.minimum_terms, row.validity_hours)
        classes.append(BillingClass(row.provider, name, row.interruptible, row.currency, row.includes_disk_gb, term))
    return classes


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _ints(values: Sequence[int]) -> Codes:
    return np.array(values, dtype=np.int32)


def _bools(values: Sequence[bool]) -> Bools:
    return np.array(values, dtype=np.bool_)
