"""Traffic: data into and out of the machine, in tiers and with a free part each month."""

from __future__ import annotations

from decimal import Decimal

from rackrate.cost.charge_types import Charges, Line, line, part
from rackrate.cost.rates import BYTES_PER_GB, MONTH_HOURS, SECONDS, describe, tiers_of, unseen
from rackrate.cost.rounding import whole_steps
from rackrate.cost.usage import Usage
from rackrate.evidence import Unknown
from rackrate.facts.billing import BillingRules
from rackrate.money import Money
from rackrate.offers.offer import Offer

Tiers = list[tuple[Decimal, Money]]


def traffic(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    """Lines for data in and data out; nothing for a direction that is not used."""
    inward = (
        _flow("data_in", "ingress_price", rules, offer, usage) if usage.data_in_bytes else part(offer.price.currency)
    )
    outward = (
        _flow("data_out", "egress_price_tiers", rules, offer, usage)
        if usage.data_out_bytes
        else part(offer.price.currency)
    )
    lines = (*inward.lines, *outward.lines)
    return part(offer.price.currency, *lines, unknown=(*inward.unknown, *outward.unknown))


def _flow(name: str, key: str, rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    currency = offer.price.currency
    rule = rules.find(key, "running")
    if rule is None:
        return part(currency, unknown=[unseen(offer, name, "no price of traffic was seen")])
    tiers = tiers_of(rule, currency)
    if isinstance(tiers, Unknown):
        return part(currency, unknown=[unseen(offer, name, tiers.reason, rule)])
    size = usage.data_in_bytes if name == "data_in" else usage.data_out_bytes
    free = _free_gb(rules) if name == "data_out" else Decimal(0)
    return part(currency, *tiered(name, size / BYTES_PER_GB, months(usage), _with_free(tiers, free), describe(rule)))


def months(usage: Usage) -> Decimal:
    """Billing months that ``usage`` touches at least: its span in mean months, rounded up."""
    span_h = (usage.running_seconds + usage.stopped_seconds) / SECONDS
    return max(whole_steps(span_h, MONTH_HOURS), Decimal(1))


def tiered(name: str, gb: Decimal, count: Decimal, tiers: Tiers, rule: str) -> list[Line]:
    """A line for each tier that ``gb`` reach, spread evenly over ``count`` months.

    In each month the GB up to the first limit cost the first price, those up
    to the second limit the second, and so on.
    """
    lines, lower = [], Decimal(0)
    for upper, price in tiers:
        inside = min(gb, upper * count) - min(gb, lower * count)
        if inside > 0:
            lines.append(line(name, inside, "GB", price, rule))
        lower = upper
    return lines


def _with_free(tiers: Tiers, free_gb: Decimal) -> Tiers:
    """The tiers with the first ``free_gb`` of each month free; the limits of the others stay."""
    currency = tiers[0][1].currency
    paid = [(upper, price) for upper, price in tiers if upper > free_gb]
    return [(free_gb, Money(Decimal(0), currency)), *paid] if free_gb else tiers


def _free_gb(rules: BillingRules) -> Decimal:
    rule = rules.find("egress_free_gb", "running")
    return Decimal(0) if rule is None or rule.number is None else rule.number
