"""Numbers for people: spans of hours, rates and money as short text."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from rackrate.units import format_hours

if TYPE_CHECKING:
    from rackrate.app.wire import CostDoc, RangeDoc


def money(amount: str) -> str:
    """A decimal string with two places, four under one unit."""
    value = Decimal(amount)
    return f"{value:,.2f}" if abs(value) >= 1 or not value else f"{value:,.4f}"


def cost_span(cost: CostDoc) -> str:
    """``12.40 USD (10.10 to 15.90)``."""
    return f"{money(cost.likely)} {cost.currency} ({money(cost.low)} to {money(cost.high)})"


def hours_span(span: RangeDoc) -> str:
    """``5.3 h (4.1 h to 7.0 h)``."""
    return f"{format_hours(span.likely)} ({format_hours(span.low)} to {format_hours(span.high)})"


def rate_span(span: RangeDoc) -> str:
    """``1,240 (980 to 1,560)``."""
    return f"{span.likely:,.0f} ({span.low:,.0f} to {span.high:,.0f})"


_SAME = 0.005


def per_cent_more(ratio: float) -> str:
    """A ratio to the best as words: ``12 % more``, ``the same``, ``5 % less``."""
    change = ratio - 1
    if abs(change) < _SAME:
        return "the same"
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'}".replace("%", " %")
