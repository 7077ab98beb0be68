"""What the values and units of billing rules say: currencies, periods, tiers.

Values stay the text of their source (``facts.billing``); prose says nothing here.
"""

from __future__ import annotations

import re
from decimal import Decimal

from rackrate.facts.cells import is_number

_CURRENCY = re.compile(r"\b([A-Z]{3})(?:/|$)")
_PERIOD = re.compile(r"/((?:GB-)?(?:month|day|hour|h))\b")


def currency_of(unit: str) -> str:
    """The currency that a unit such as ``USD/GB-month`` begins with, or nothing."""
    match = _CURRENCY.search(unit)
    return match[1] if match else ""


def period_of(unit: str) -> str:
    """What a price is for: ``GB-month``, ``hour`` ..., or nothing where the unit names no time."""
    match = _PERIOD.search(unit)
    return match[1] if match else ""


def tiers_in(value: str) -> list[tuple[Decimal, Decimal]] | None:
    """The tiers in a text such as ``10240:0.09|inf:0.05``: upper GB in a month, and price of a GB up to there.

    A bare number is one price for any amount; None where a part is no number.
    """
    tiers = []
    for tier in value.split("|"):
        upper, _, price = tier.rpartition(":")
        if not is_number(upper or "inf") or not is_number(price):
            return None
        tiers.append((Decimal(upper or "inf"), Decimal(price)))
    return tiers
