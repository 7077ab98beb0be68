"""Rules and usage made by hand."""

from datetime import date
from decimal import Decimal

from rackrate.cost.charges import charges
from rackrate.cost.usage import Usage
from rackrate.facts.billing import BillingRule, BillingRules

AT = date(2026, 11, 30)
HOUR = Decimal(3600)
DAY = 24 * HOUR
GB = Decimal(10**9)


def rule(key, value, state="any", unit="", since=None):
    return BillingRule(
        provider="acme",
        key=key,
        value=value,
        unit=unit,
        state=state,
        effective_from=since,
        seen_at=AT,
        source="acme docs",
        confidence="high",
    )


def rules(*held):
    return BillingRules(provider="acme", rules=held)


def usage(*run_seconds, **rest):
    return Usage(
        run_seconds=tuple(Decimal(s) for s in run_seconds), **{key: Decimal(value) for key, value in rest.items()}
    )


def bill(held, offer, used, at=AT):
    return charges(held, offer, used, at)


def amounts(charged):
    return {line.name: line.amount.amount for line in charged.lines}


def unknown(charged):
    return {finding.subject.partition(": ")[2] for finding in charged.unknown}
