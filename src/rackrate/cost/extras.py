"""The rest of a bill: the address, one-time fees, and what the price is known to leave out."""

from __future__ import annotations

from decimal import Decimal

from rackrate.cost.charge_types import Charges, line, part
from rackrate.cost.rates import SECONDS, describe, money_of, rate_of, remark, unseen
from rackrate.cost.usage import Usage
from rackrate.evidence import Unknown
from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.offers.meter import STOPPED
from rackrate.offers.offer import Offer
from rackrate.problems import Finding

ADDRESS_LOST = "released"
"""The value of ``ip_price`` where stopping gives the address back: nothing to bill."""


def address(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    """The line ``ip``: one public address for as long as the machine exists.

    A provider without a rule is taken to include it, unless the offer excludes it.
    """
    spans = [(rules.find("ip_price", "running"), usage.running_seconds)]
    if usage.stopped_seconds:
        spans.append((rules.find("ip_price", *STOPPED), usage.stopped_seconds))
    lines, unknown = [], []
    for rule, seconds in spans:
        if rule is None or rule.value == ADDRESS_LOST:
            continue
        rate = rate_of(rule, offer.price.currency)
        if isinstance(rate, Unknown):
            unknown.append(unseen(offer, "ip", rate.reason, rule))
        else:
            lines.append(line("ip", seconds / SECONDS / rate.hours, rate.unit, rate.price, describe(rule)))
    if "ip" in offer.excludes and not lines and not unknown:
        unknown.append(unseen(offer, "ip", "the offer excludes the address; no price was seen"))
    return part(offer.price.currency, *lines, unknown=unknown)


def one_time(rules: BillingRules, offer: Offer) -> Charges:
    """The line ``one_time``: fees that are due once per rental."""
    currency = offer.price.currency
    rule = rules.find("one_time_fee", "start")
    if rule is None:
        return part(currency)
    fee = money_of(rule, currency)
    if isinstance(fee, Unknown):
        return part(currency, unknown=[unseen(offer, "one_time", fee.reason, rule)])
    return part(currency, line("one_time", Decimal(1), "rental", fee, describe(rule)))


def omissions(rules: BillingRules, offer: Offer) -> Charges:
    """What is known to be missing from the lines, or assumed in them."""
    tax = rules.find("tax_included")
    found: list[Finding | None] = [
        _left_out(offer, "host", "the price is of the GPU; vCPUs and memory of the host are billed on top"),
        _tax(offer, tax),
        _commitment(offer),
        _resold(rules, offer),
        _lowest(offer),
    ]
    return part(offer.price.currency, unknown=[finding for finding in found if finding is not None])


def _left_out(offer: Offer, what: str, why: str) -> Finding | None:
    return unseen(offer, what, why) if what in offer.excludes else None


def _tax(offer: Offer, rule: BillingRule | None) -> Finding | None:
    if "tax" in offer.excludes or (rule is not None and rule.value == "false"):
        return unseen(offer, "tax", "prices are without tax", rule)
    return None


def _commitment(offer: Offer) -> Finding | None:
    why = "the price needs a commitment of unknown length; the bill can be many times the total"
    return unseen(offer, "commitment", why) if offer.commitment_unknown else None


def _resold(rules: BillingRules, offer: Offer) -> Finding | None:
    if not rules.rules or rules.provider == offer.provider:
        return None
    return remark(
        offer, "resold", f"billed as {rules.provider} does: the reseller's rules are not known", "ask the reseller"
    )


def _lowest(offer: Offer) -> Finding | None:
    why = "the price is the lowest of several"
    return remark(offer, "price_is_from", why, "the bill can be higher") if offer.price_is_from else None
