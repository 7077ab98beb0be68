"""Offers made by hand."""

from datetime import date
from decimal import Decimal

from rackrate.money import Money
from rackrate.offers.offer import Offer, Term

HOUR = Term(unit="hour", hours=Decimal(1), prepaid=False)


def offer(price="2", currency="USD", **changes):
    fields = {
        "id": "acme/a100",
        "provider": "acme",
        "name": "a100",
        "card_label": "A100",
        "cards": ("a100-sxm4-80",),
        "gpus": 1,
        "share": 1.0,
        "form_factor": "SXM4",
        "region": "us-1",
        "market": "on_demand",
        "price": Money(Decimal(price), currency),
        "term": HOUR,
        "observed_on": date(2026, 11, 1),
        "observed_how": "page_read",
        "source": "a price page",
    }
    return Offer(**fields | changes)


def prepaid(unit, hours):
    return Term(unit=unit, hours=Decimal(hours), prepaid=True)
