"""Base units and their spelling for people.

Inside rackrate every quantity is in a base unit named in the identifier:
``bytes``, ``bytes_per_s``, ``flop_per_s``, ``seconds``, ``hours`` (money is per
hour everywhere in the trade), ``tokens_per_s``, ``watts``. Multiples exist only
here, where text is parsed and printed. ``GB`` is 10^9 and ``GiB`` is 2^30; the
"GB" on a card's box ("GB as sold") is neither and is kept as a label only.
"""

from __future__ import annotations

import re
from datetime import date

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
TERA = 10**12
SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0
_HOURS_UNTIL_DAYS = 72
DAYS_PER_MONTH = 365.25 / 12
HOURS_PER_MONTH = HOURS_PER_DAY * DAYS_PER_MONTH  # 730.5, the mean calendar month

_BYTES = {"b": 1, "kb": KB, "mb": MB, "gb": GB, "tb": TB, "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB}
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_HOURS = {"s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0, "month": HOURS_PER_MONTH}
_NUMBER = re.compile(r"^\s*([0-9][0-9_,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*([a-z]*)\s*$", re.IGNORECASE)


def _split(text: str) -> tuple[float, str]:
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(f"not a number with a unit: {text!r}")
    return float(match[1].replace(",", "").replace("_", "")), match[2].lower()


def _scaled(text: str, scale: dict[str, float] | dict[str, int], default: str) -> float:
    value, unit = _split(text)
    unit = unit or default
    if unit not in scale and unit.rstrip("s") in scale:
        unit = unit.rstrip("s")
    if unit not in scale:
        raise ValueError(f"unknown unit {unit!r}; use one of {', '.join(k for k in scale if k)}")
    return value * scale[unit]


def parse_bytes(text: str) -> float:
    """Bytes in a text such as ``"200 GB"`` or ``"48 GiB"``; a bare number is bytes.

    Raises:
        ValueError: the text is not a number with a known unit.
    """
    return _scaled(text, _BYTES, "b")


def parse_day(text: str) -> date:
    """The day in a text such as ``"2026-11-30"``, the one spelling in which days sort as texts do.

    ISO 8601 knows others (``20261130``, ``2026-W49-1``), which sort elsewhere.

    Raises:
        ValueError: the text is no day in that form.
    """
    found = date.fromisoformat(text)
    if found.isoformat() != text:
        raise ValueError(f"not in the form of {found}: {text!r}")
    return found


def parse_count(text: str) -> float:
    """A count in a text such as ``"30M"``, ``"1.5B"`` or ``"3e7"``.

    Raises:
        ValueError: the text is not a number with a known multiplier.
    """
    return _scaled(text, _COUNTS, "")


def parse_hours(text: str) -> float:
    """Hours in a text such as ``"36 h"``, ``"2 days"`` or ``"90 min"``; a bare number is hours.

    Raises:
        ValueError: the text is not a number with a known unit of time.
    """
    words = {"hour": "h", "hr": "h", "day": "d", "week": "w", "minute": "min", "mins": "min", "second": "s", "sec": "s"}
    value, unit = _split(text)
    unit = words.get(unit, words.get(unit.rstrip("s"), unit))
    return _scaled(f"{value!r} {unit}", _HOURS, "h")


def format_bytes(count: float, *, digits: int = 1) -> str:
    """A byte count in binary units, e.g. ``"12.6 GiB"``; negative counts keep their sign."""
    size = abs(count)
    for factor, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= factor * 0.9995:
            return f"{count / factor:,.{digits}f} {name}"
    return f"{count:,.0f} B"


def format_count(count: float) -> str:
    """A count with a short multiplier, e.g. ``"13.0B"``, ``"30M"``, ``"512"``."""
    for factor, name in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if abs(count) >= factor * 0.9995:
            return f"{count / factor:.3g}{name}"
    return f"{count:.3g}"


def format_hours(hours: float) -> str:
    """A span of time in the unit a person would use, e.g. ``"42 min"``, ``"5.3 h"``, ``"3.1 days"``."""
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    if hours < 1:
        return f"{hours * 60:.0f} min"
    if hours < _HOURS_UNTIL_DAYS:
        return f"{hours:.1f} h"
    return f"{hours / 24:,.1f} days"
