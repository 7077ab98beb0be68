"""Compute: what the machine costs while it runs, while it is stopped, or by the term."""

from __future__ import annotations

from decimal import Decimal

from rackrate.cost.charge_types import Charges, line, part
from rackrate.cost.rates import SECONDS, describe, remark, unseen
from rackrate.cost.rounding import billed_seconds, ceil_to, whole_steps
from rackrate.cost.usage import Usage
from rackrate.facts.billing import BillingRules
from rackrate.money import Money
from rackrate.offers.meter import STOPPED, Meter, meter_of
from rackrate.offers.offer import Offer
from rackrate.problems import Finding

HOURS_PER_DAY = Decimal(24)


def compute(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    """Compute lines: whole terms for a prepaid offer, else metered time at the price per hour."""
    meter = meter_of(rules, offer.name, interruptible=offer.interruptible, at=None)
    if offer.term.prepaid:
        return _terms(meter, offer, usage)
    return _metered(meter, rules, offer, usage)


def _metered(meter: Meter, rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    seconds = billed_seconds(usage.run_seconds, meter)
    running = line("compute", seconds / SECONDS, "hour", offer.price_per_hour, _meter_text(meter))
    unknown = _meter_remark(offer) if not meter.is_known and seconds > usage.running_seconds else []
    stopped = _stopped(meter, rules, offer, usage) if usage.stopped_seconds else part(offer.price.currency)
    return part(
        offer.price.currency,
        running,
        *stopped.lines,
        unknown=(*unknown, *stopped.unknown),
        billed_seconds=seconds + stopped.billed_seconds,
    )


def _meter_text(meter: Meter) -> str:
    rules = [describe(rule) for rule in (meter.granularity_rule, meter.minimum_rule) if rule is not None]
    return "; ".join(rules) or "no rule seen: whole hours for each start"


def _meter_remark(offer: Offer) -> list[Finding]:
    seen = "the steps in which time is billed were not seen; whole hours for each start are assumed"
    return [remark(offer, "granularity_s", seen, "the bill can be lower, by less than an hour for each start")]


def _stopped(meter: Meter, rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    """Compute while the machine is stopped and kept."""
    currency = offer.price.currency
    rule = rules.find("stopped_bills_compute", *STOPPED)
    if rule is None:
        why = "whether a stopped machine is billed is not known"
        return part(currency, unknown=[unseen(offer, "stopped_bills_compute", why)])
    billed = meter.bills_stopped
    seconds = ceil_to(usage.stopped_seconds, meter.granularity_s)
    price = offer.price_per_hour if billed else Money(Decimal(0), currency)
    stopped = line("compute_stopped", seconds / SECONDS, "hour", price, describe(rule))
    return part(currency, stopped, billed_seconds=seconds if billed else Decimal(0))


def _terms(meter: Meter, offer: Offer, usage: Usage) -> Charges:
    count = terms(meter, offer, usage)
    bought = line("term", count, offer.term.unit, offer.price, _terms_text(meter, offer))
    return part(offer.price.currency, bought, billed_seconds=count * offer.term.hours * SECONDS)


def terms(meter: Meter, offer: Offer, usage: Usage) -> Decimal:
    """How many whole terms ``usage`` needs.

    A term of hours to months runs by the clock, stopped or not, from the first
    start to the last stop; a disk that is kept beyond needs no further term.
    Where stopping forfeits the rest, each start begins a new one. A credit pack
    is used up by running time only, but lapses: there is at least one for each
    life of a pack (careful where the rest carries over).
    """
    term_s = offer.term.hours * SECONDS
    wall_s = usage.running_seconds + usage.paused_seconds
    if offer.term.unit == "credit_pack":
        count = whole_steps(usage.running_seconds, term_s)
        if offer.validity_days is not None:
            count = max(count, whole_steps(wall_s, offer.validity_days * HOURS_PER_DAY * SECONDS))
    elif meter.lapses_on_stop:
        count = sum((whole_steps(seconds, term_s) for seconds in usage.run_seconds), Decimal(0))
    else:
        count = whole_steps(wall_s, term_s)
    return max(count, Decimal(offer.minimum_terms))


def _terms_text(meter: Meter, offer: Offer) -> str:
    least = f", at least {offer.minimum_terms}" if offer.minimum_terms > 1 else ""
    lapse = "; stopping forfeits the rest" if meter.lapses_on_stop else ""
    return f"whole terms of {offer.term.hours:f} h{least}{lapse} ({offer.source}, seen {offer.observed_on})"
