"""Statistics of errors: medians, percentiles and shares, None where there is nothing to count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def percentile(values: Iterable[float], share: float) -> float | None:
    """The value below which ``share`` of ``values`` lie, by linear interpolation between ranks."""
    ranked = sorted(values)
    if not ranked:
        return None
    place = share * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (place - below)


def mean(values: Sequence[float]) -> float | None:
    """The mean."""
    return sum(values) / len(values) if values else None


def share(values: Sequence[bool]) -> float | None:
    """The share of true values."""
    return sum(values) / len(values) if values else None


def rounded(value: float | None) -> float | None:
    """Four digits after the point: errors are read as per cent with two."""
    return None if value is None else round(value, 4)
