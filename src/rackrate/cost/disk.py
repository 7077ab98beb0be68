"""Disk: what is kept costs money in every state, often more while the machine is stopped."""

from __future__ import annotations

from decimal import Decimal

from rackrate.cost.charge_types import Charges, Line, line, part
from rackrate.cost.rates import BYTES_PER_GB, SECONDS, describe, rate_of, unseen
from rackrate.cost.usage import Usage
from rackrate.evidence import Unknown
from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.money import Money
from rackrate.offers.meter import STOPPED
from rackrate.offers.offer import Offer

ONE = Decimal(1)


def disk(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    """Disk lines: GB beyond what is free, for the time that the disk exists, not rounded.

    GB that the price of the machine includes are free while that price is
    paid: while it runs, or between the runs of a prepaid term. What is kept
    after the last run is billed whole, since the term may be over by then.
    """
    parts = [] if not usage.disk_bytes else [_running(rules, offer, usage)]
    if usage.disk_bytes and usage.stopped_seconds:
        parts.append(_stopped(rules, offer, usage))
    lines = [one for each in parts for one in each.lines]
    return part(offer.price.currency, *lines, unknown=[one for each in parts for one in each.unknown])


def _running(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    free_gb = max(_free_gb(rules), offer.includes_disk_gb)
    billed_gb = usage.disk_bytes / BYTES_PER_GB - free_gb
    if billed_gb <= 0:
        return part(offer.price.currency, _free("disk_running", offer, f"{free_gb:f} GB are included"))
    rule = rules.find("disk_price", "running")
    return _priced("disk_running", offer, rule, billed_gb * usage.running_seconds / SECONDS)


def _stopped(rules: BillingRules, offer: Offer, usage: Usage) -> Charges:
    gb_seconds, free_gb = _stopped_gb_seconds(rules, offer, usage)
    if not gb_seconds:
        return part(offer.price.currency, _free("disk_stopped", offer, f"{free_gb:f} GB are included"))
    kept = rules.find("stopped_bills_disk", *STOPPED)
    if kept is not None and kept.value == "false":
        return part(offer.price.currency, _free("disk_stopped", offer, describe(kept)))
    rule, multiplier = _stopped_price(rules)
    return _priced("disk_stopped", offer, rule, gb_seconds / SECONDS * multiplier)


def _stopped_gb_seconds(rules: BillingRules, offer: Offer, usage: Usage) -> tuple[Decimal, Decimal]:
    """GB x seconds beyond what is free while stopped, and the GB that are free between the runs."""
    always = _free_gb(rules)
    free_gb = max(always, offer.includes_disk_gb) if offer.term.prepaid else always
    disk_gb = usage.disk_bytes / BYTES_PER_GB
    paused = max(disk_gb - free_gb, Decimal(0)) * usage.paused_seconds
    return paused + max(disk_gb - always, Decimal(0)) * usage.kept_seconds, free_gb


def _stopped_price(rules: BillingRules) -> tuple[BillingRule | None, Decimal]:
    """The price while stopped: its own, else the price of any or the running state times a multiplier.

    Without a multiplier the running price says nothing about a stopped machine.
    """
    rule = rules.find("disk_price", *STOPPED)
    if rule is not None and rule.state != "any":
        return rule, ONE
    times = rules.find("stopped_disk_multiplier", *STOPPED)
    if times is None or times.number is None:
        return rule, ONE
    return rule or rules.find("disk_price", "running"), times.number


def _free_gb(rules: BillingRules) -> Decimal:
    rule = rules.find("free_disk_gb", "running")
    return Decimal(0) if rule is None or rule.number is None else rule.number


def _free(name: str, offer: Offer, why: str) -> Line:
    return line(name, Decimal(0), "GB-hour", Money(Decimal(0), offer.price.currency), why)


def _priced(name: str, offer: Offer, rule: BillingRule | None, gb_hours: Decimal) -> Charges:
    currency = offer.price.currency
    if rule is None:
        return part(currency, unknown=[unseen(offer, name, "no price of disk was seen")])
    rate = rate_of(rule, currency)
    if isinstance(rate, Unknown):
        return part(currency, unknown=[unseen(offer, name, rate.reason, rule)])
    unit = rate.unit if rate.unit.startswith("GB-") else f"GB-{rate.unit}"
    return part(currency, line(name, gb_hours / rate.hours, unit, rate.price, describe(rule)))
