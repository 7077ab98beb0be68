"""Quantities as short texts with their unit, for reasons."""

from __future__ import annotations

from rackrate.units import format_bytes, format_hours


def quantity(value: float, unit: str) -> str:
    """``value`` in ``unit``: bytes and hours as people write them, other numbers with three digits."""
    if unit == "bytes":
        return format_bytes(value)
    if unit == "hours":
        return format_hours(value)
    return f"{value:.3g} {unit}".strip()
