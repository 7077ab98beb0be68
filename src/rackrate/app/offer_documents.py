"""Offers to wire documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from rackrate.app.context import Context
from rackrate.app.documents import finding_docs, plain
from rackrate.app.wire.offers import AccessDoc, BillingDoc, OfferDoc, OfferGroupDoc, OfferLeftOutDoc
from rackrate.app.wire.parts import ChangeDoc
from rackrate.facts.access import AccessFact
from rackrate.money import Money
from rackrate.offers.conflicts import NOT_AFTER
from rackrate.offers.meter import STOPPED, meter_of, narrowed
from rackrate.offers.offer import Offer
from rackrate.plan.listing import Group, LeftOut
from rackrate.units import SECONDS_PER_HOUR

_PLACES = 6


def offer_doc(offer: Offer, here: Context, currency: str) -> OfferDoc:
    """One offer, its prices also in ``currency``."""
    known = here.book.access_of(offer.provider)
    sizes = {here.book.accelerators[card].memory_sold_gb for card in offer.cards}
    sold_gb = sizes.pop() if len(sizes) == 1 else None
    whole, each, per_gb = _shown(offer, here, currency, sold_gb)
    return OfferDoc(
        accelerator="|".join(offer.cards),
        product=" or ".join(here.book.accelerators[card].product for card in offer.cards),
        cards=list(offer.cards),
        card_label=offer.card_label,
        gpus=offer.gpus,
        share=offer.share,
        memory_sold_gb=sold_gb,
        form_factor=offer.form_factor,
        provider=offer.provider,
        offer=offer.name,
        offer_id=offer.id,
        region=offer.region,
        country=offer.country,
        market=offer.market,
        price_per_hour=plain(offer.price_per_hour.rounded(_PLACES).amount),
        price_currency=offer.price.currency,
        shown_per_hour=whole,
        shown_per_gpu_hour=each,
        shown_per_gb_hour_as_sold=per_gb,
        term=offer.term.unit,
        term_hours=float(offer.term.hours),
        prepaid=offer.term.prepaid,
        minimum_terms=offer.minimum_terms,
        billing=_billing(offer, here),
        interruptible=offer.interruptible,
        stock="unknown",
        stock_signal=next((fact.value for fact in known if fact.key == "stock_signal"), "unknown"),
        price_observed_at=offer.observed_on.isoformat(),
        price_observed_how=offer.observed_how,
        price_age_days=None if offer.observed_how == NOT_AFTER else (here.at - offer.observed_on).days,
        price_source=offer.source,
        price_own=offer.own,
        superseded=offer.superseded,
        vcpus=offer.vcpus,
        host_memory_bytes=offer.host_memory_bytes,
        excludes=list(offer.excludes),
        access=list(_access(known)),
        warnings=finding_docs(offer.findings),
    )


def _shown(
    offer: Offer, here: Context, currency: str, sold_gb: float | None
) -> tuple[str | None, str | None, str | None]:
    """Prices per hour in ``currency``: of the offer, of a whole card, of a GB as sold; None where not known."""
    if not here.book.rates.knows(offer.price.currency):
        return None, None, None
    whole = here.book.rates.convert(offer.price_per_hour, currency).amount
    each = whole / (offer.gpus * _exact(offer.share))
    per_gb = each / _exact(sold_gb) if sold_gb else None
    return _amount(whole), _amount(each), None if per_gb is None else _amount(per_gb)


def _exact(number: float) -> Decimal:
    return Decimal(repr(number))


def _amount(amount: Decimal) -> str:
    return plain(Money(amount, "").rounded(_PLACES).amount)


def _billing(offer: Offer, here: Context) -> BillingDoc:
    """The step, the least and what stopping does; for whole terms the term is both step and least."""
    rules = here.book.rules_of(offer.provider)
    meter = meter_of(rules, offer.name, interruptible=offer.interruptible, at=here.at)
    if offer.term.prepaid:
        term_s = float(offer.term.hours) * SECONDS_PER_HOUR
        stop = "loses_term" if meter.lapses_on_stop else "term_is_paid"
        return BillingDoc(step_s=term_s, minimum_s=term_s * offer.minimum_terms, stop=stop)
    rule = narrowed(rules, offer.name, here.at).find("stopped_bills_compute", *STOPPED)
    said = {"true": "goes_on", "false": "ends_billing"}.get(rule.value, "unknown") if rule is not None else "unknown"
    return BillingDoc(
        step_s=float(meter.granularity_s) if meter.is_known else None,
        minimum_s=float(meter.minimum_s) if meter.minimum_rule is not None else None,
        stop=said,
    )


def _access(known: tuple[AccessFact, ...]) -> Iterator[AccessDoc]:
    for fact in known:
        yield AccessDoc(
            key=fact.key,
            value=fact.value,
            unit=fact.unit,
            condition=fact.condition,
            seen_at=fact.seen_at.isoformat(),
            source=fact.source,
        )


def group_doc(name: str, group: Group) -> OfferGroupDoc:
    """A group of offers."""
    low, median, high = (
        None if math.isnan(price) else f"{price:.{_PLACES}f}" for price in (group.low, group.median, group.high)
    )
    return OfferGroupDoc(name=name, offers=group.count, low=low, median=median, high=high)


def left_out_doc(one: LeftOut, here: Context, currency: str) -> OfferLeftOutDoc:
    """Offers that a test left out."""
    near = None if one.nearest is None else offer_doc(here.catalog.table.offer(one.nearest), here, currency)
    change = None
    if one.change is not None:
        change = ChangeDoc(knob=one.change.knob, before=one.change.before, after=one.change.after)
    return OfferLeftOutDoc(reason=str(one.reason), count=one.count, alone=one.alone, nearest=near, change=change)
