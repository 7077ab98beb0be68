"""Numbers for people: spans of hours, rates and money as short text."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from rackrate.units import format_bytes, format_hours

if TYPE_CHECKING:
    from rackrate.app.wire.parts import RangeDoc
    from rackrate.app.wire.plan import CostDoc


_WHOLE_FROM = 10_000


def money(amount: str) -> str:
    """A decimal string with two places; none in the ten thousands, up to four under one unit."""
    value = Decimal(amount)
    if abs(value) >= _WHOLE_FROM:
        return f"{value:,.0f}"
    if abs(value) >= 1 or not value:
        return f"{value:,.2f}"
    whole, _, places = f"{value:.4f}".partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


def small_money(amount: str) -> str:
    """A decimal string with four places, for columns of prices of an hour or less."""
    return f"{Decimal(amount):,.4f}"


def cost_span(cost: CostDoc) -> str:
    """``12.40 USD (10.10 to 15.90)``."""
    return _span(f"{money(cost.likely)} {cost.currency}", money(cost.low), money(cost.high))


def bytes_span(span: RangeDoc) -> str:
    """``17.1 GiB (16.5 GiB to 17.9 GiB)``."""
    return _span(*map(format_bytes, (span.likely, span.low, span.high)))


def hours_span(span: RangeDoc) -> str:
    """``5.3 h (4.1 h to 7.0 h)``."""
    return _span(*map(format_hours, (span.likely, span.low, span.high)))


def seconds_span(span: RangeDoc) -> str:
    """``0.31 s (0.26 s to 0.4 s)``; milliseconds below a tenth of a second."""
    return _span(*map(seconds_of, (span.likely, span.low, span.high)))


def seconds_of(seconds: float) -> str:
    """``0.31 s``, ``31 ms`` below a tenth of a second, ``8,500 s`` whole where there are many."""
    if seconds >= _WHOLE_SECONDS_FROM:
        return f"{seconds:,.0f} s"
    return f"{seconds:,.3g} s" if seconds >= _MILLISECONDS_BELOW else f"{seconds * 1000:.3g} ms"


def image_speed(pace: RangeDoc | None, each: RangeDoc | None, steps: RangeDoc | None) -> str:
    """``0.14 (0.11 to 0.18) images/s; 7.1 s (5.5 s to 9.3 s) an image on one card, 4.2 it/s``."""
    if pace is None or each is None or steps is None:
        return "speed not known"
    rate = _span(f"{pace.likely:.3g}", f"{pace.low:.3g}", f"{pace.high:.3g}")
    return f"{rate} images/s; {seconds_span(each)} an image on one card, {steps.likely:.3g} it/s"


def hours(count: float) -> str:
    """Hours for a column: two places up to a hundred, then whole."""
    return f"{count:.2f}" if count < _LONG_RUN_HOURS else f"{count:,.0f}"


def rate_span(span: RangeDoc) -> str:
    """``1,240 (980 to 1,560)``."""
    return _span(f"{span.likely:,.0f}", f"{span.low:,.0f}", f"{span.high:,.0f}")


def _span(likely: str, low: str, high: str) -> str:
    """The likely value, and the range in which it lies if that says more."""
    return likely if low == high else f"{likely} ({low} to {high})"


_MILLISECONDS_BELOW = 0.1
_WHOLE_SECONDS_FROM = 1000
_WHOLE_COUNT_FROM = 100
_LEAST_SHOWN = 0.01
_TIMES_FROM = 10
_LONG_RUN_HOURS = 100


def amount(value: float) -> str:
    """``0.062``, ``14.1``, ``1,810``: three digits, whole from a hundred."""
    return f"{value:,.0f}" if value >= _WHOLE_COUNT_FROM else f"{value:.3g}"


def count_of(number: int, noun: str) -> str:
    """``1 day``, ``2 days``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def per_cent_more(ratio: float) -> str:
    """A ratio to the best as words: ``12 % more``, ``the same``, ``5 % less``, ``42 times as much``."""
    change = abs(ratio - 1)
    if not change:
        return "the same"
    if ratio >= _TIMES_FROM:
        return f"{ratio:,.0f} times as much"
    size = "under 1" if change < _LEAST_SHOWN else f"{change * 100:,.0f}"
    return f"{size} % {'more' if ratio > 1 else 'less'}"
