"""Rates: what a billing rule's value and unit say in money, and what to say when they do not."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from rackrate.evidence import Unknown
from rackrate.facts.billing import BillingRule
from rackrate.facts.billing_terms import currency_of, period_of, tiers_in
from rackrate.money import Money
from rackrate.offers.offer import Offer
from rackrate.problems import Code, Finding, Severity
from rackrate.units import GB, HOURS_PER_MONTH

SECONDS = Decimal(3600)
"""Seconds in an hour."""

MONTH_HOURS = Decimal(str(HOURS_PER_MONTH))
"""Hours in a price per month where the provider does not say: the mean calendar month, right over any year."""

BYTES_PER_GB = Decimal(GB)
"""A "GB" of disk or traffic. Some providers mean 2^30 bytes; 10^9 is the dearer reading, by 7 %."""

_PERIOD_HOURS = {"month": MONTH_HOURS, "day": Decimal(24), "hour": Decimal(1), "h": Decimal(1)}


def describe(rule: BillingRule) -> str:
    """The rule as a line of a bill cites it: key, value, unit, state, source, date."""
    value = " ".join(part for part in (rule.value, rule.unit) if part)
    return f"{rule.key} = {value} [{rule.state}] ({rule.source}, seen {rule.seen_at})"


def money_of(rule: BillingRule, currency: str) -> Money | Unknown:
    """The amount of money in ``rule``, if it is one in ``currency``; an amount of 0 needs no currency."""
    if rule.number is None:
        return Unknown(f"the price is not a number: {rule.value} {rule.unit}".rstrip())
    return _money(rule, rule.number, currency)


class Rate(NamedTuple):
    """A price for one ``unit`` such as ``GB-month``, whose period is ``hours`` long."""

    price: Money
    unit: str
    hours: Decimal


def rate_of(rule: BillingRule, currency: str) -> Rate | Unknown:
    """The price over time in ``rule``, if it is one in ``currency``; a price of 0 needs neither unit nor currency."""
    price = money_of(rule, currency)
    if isinstance(price, Unknown):
        return price
    period = period_of(rule.unit)
    if period:
        unit = "hour" if period == "h" else period
        return Rate(price, unit, _PERIOD_HOURS[period.removeprefix("GB-")])
    if price.amount:
        return Unknown(f"the price is not for a time: {rule.value} {rule.unit}")
    return Rate(price, "hour", Decimal(1))


def tiers_of(rule: BillingRule, currency: str) -> list[tuple[Decimal, Money]] | Unknown:
    """The tiers in a text such as ``10240:0.09|inf:0.05``: each tier's upper GB in a month and price.

    A bare number is one price for any amount.
    """
    found = tiers_in(rule.value)
    if found is None:
        return Unknown(f"the price is not a list of tiers: {rule.value}")
    tiers = []
    for limit, amount in found:
        money = _money(rule, amount, currency)
        if isinstance(money, Unknown):
            return money
        tiers.append((limit, money))
    return tiers


def _money(rule: BillingRule, amount: Decimal, currency: str) -> Money | Unknown:
    said = currency_of(rule.unit)
    if amount and not said:
        return Unknown(f"the price has no currency: {rule.value} {rule.unit}".rstrip())
    if amount and said != currency:
        return Unknown(f"the price is in {said}, the offer in {currency}: {rule.value} {rule.unit}")
    return Money(amount, currency)


def unseen(offer: Offer, what: str, why: str, rule: BillingRule | None = None) -> Finding:
    """A part of the bill that cannot be priced."""
    return Finding(
        code=Code.UNKNOWN_RULE,
        subject=f"{offer.provider}: {what}",
        severity=Severity.WARNING,
        observed=why,
        expected="a published price or rule",
        action="ask the provider; this part is not in the total",
        source="" if rule is None else rule.source,
    )


def remark(offer: Offer, what: str, why: str, action: str) -> Finding:
    """A rule that was assumed: the part is in the total, on the careful side."""
    return Finding(
        code=Code.UNKNOWN_RULE,
        subject=f"{offer.provider}: {what}",
        severity=Severity.INFO,
        observed=why,
        action=action,
    )
