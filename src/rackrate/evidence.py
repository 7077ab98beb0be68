"""How sure a number is and where it comes from.

``Range`` is the 10th, 50th and 90th percentile of our belief about a quantity.
Independent parts combine by the root of the summed squares of their half
widths, never by adding lows and highs. ``Unknown`` says why a number is
missing; it is never zero and never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import TypeVar

from rackrate.values import Value


class Kind(StrEnum):
    """How a fact came to be known, best first."""

    MEASURED = "measured"
    PUBLISHED = "published"
    DERIVED = "derived"
    ASSUMED = "assumed"


class Fact(Value, frozen=True, kw_only=True):
    """One number with its unit, condition and public source."""

    value: float
    unit: str
    kind: Kind
    source: str
    condition: str = ""
    seen_at: date | None = None
    note: str = ""


class Unknown(Value, frozen=True):
    """A number that is not known, with the reason; it propagates through every sum."""

    reason: str


class Range(Value, frozen=True):
    """Low, likely and high: the 10th, 50th and 90th percentile of our belief."""

    low: float
    likely: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"a range must be ordered: {self.low} <= {self.likely} <= {self.high}")

    @classmethod
    def exact(cls, value: float) -> Range:
        """A number without doubt."""
        return cls(value, value, value)

    @classmethod
    def around(cls, likely: float, *, below: float, above: float) -> Range:
        """A range given by the relative half widths under and over the likely value."""
        return cls(likely * (1 - below), likely, likely * (1 + above))

    def scaled(self, factor: float) -> Range:
        """The same belief in another unit (``factor`` > 0)."""
        return Range(self.low * factor, self.likely * factor, self.high * factor)

    def shifted(self, offset: float) -> Range:
        """The same belief moved by an exactly known amount."""
        return Range(self.low + offset, self.likely + offset, self.high + offset)

    def inverse(self, numerator: float = 1.0) -> Range:
        """``numerator`` / self, for positive ranges (a speed becomes a time)."""
        return Range(numerator / self.high, numerator / self.likely, numerator / self.low)


def add_independent(parts: Iterable[Range]) -> Range:
    """The sum of independent quantities.

    The likely values add; each half width is the root of the summed squares of
    the parts' half widths (exact for normal parts, close for others).
    """
    likely = below = above = 0.0
    for part in parts:
        likely += part.likely
        below += (part.likely - part.low) ** 2
        above += (part.high - part.likely) ** 2
    return Range(likely - math.sqrt(below), likely, likely + math.sqrt(above))


def multiply_independent(left: Range, right: Range) -> Range:
    """The product of two independent positive quantities (relative widths combine as roots of squares)."""
    likely = left.likely * right.likely
    if likely <= 0:
        return Range(0.0, 0.0, max(left.high * right.high, 0.0))
    below = math.hypot(1 - left.low / left.likely, 1 - right.low / right.likely)
    above = math.hypot(left.high / left.likely - 1, right.high / right.likely - 1)
    return Range(likely * max(0.0, 1 - below), likely, likely * (1 + above))


def envelope(ranges: Iterable[Range]) -> Range:
    """The range that covers all alternatives (a card of unknown variant): lowest low, mean likely, highest high."""
    found = list(ranges)
    if not found:
        raise ValueError("an envelope needs at least one range")
    likely = sum(r.likely for r in found) / len(found)
    return Range(min(r.low for r in found), likely, max(r.high for r in found))


T = TypeVar("T")


def known(value: T | Unknown) -> T:
    """The value, or a ValueError with the reason why it is unknown."""
    if isinstance(value, Unknown):
        raise ValueError(f"not known: {value.reason}")
    return value
