"""How a cell of a table reads: numbers, whole numbers and parts, in plain digits (days: ``units.parse_day``).

Python's own readers take more than a file should hold: ``float`` reads ``1_000``
and the digits of other scripts, ``str.isdigit`` says yes to ``²``, ``Fraction``
works out ``1e999999999``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_FRACTION = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a cell is a number; one that is none, or has no end, is left to its bounds."""
    return _NUMBER.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether a cell is a whole number from 0."""
    return _WHOLE.fullmatch(text) is not None


def fraction(text: str) -> Fraction:
    """A part of one such as ``1/7``.

    Raises:
        ValueError: it is no fraction above 0, up to 1.
    """
    from fractions import Fraction  # few questions are about slices

    match = _FRACTION.fullmatch(text)
    if match is None or not 0 < int(match[1]) <= int(match[2]):
        raise ValueError(text)
    return Fraction(int(match[1]), int(match[2]))
