"""Rounding: from seconds on the meter to billed seconds."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from rackrate.offers.meter import Meter


def ceil_to(amount: Decimal, step: Decimal) -> Decimal:
    """``amount`` rounded up to a multiple of ``step`` (both in the same unit, ``step`` > 0)."""
    return whole_steps(amount, step) * step


def whole_steps(amount: Decimal, step: Decimal) -> Decimal:
    """How many steps of ``step`` cover ``amount``."""
    count, rest = divmod(amount, step)
    return count + 1 if rest > 0 else count


def billed_seconds(run_seconds: Iterable[Decimal], meter: Meter) -> Decimal:
    """Seconds that are billed for one entry of ``run_seconds`` per start.

    Each start is rounded up to the granularity g and is at least the minimum m:
    sum of max(ceil(r / g) g, m). A minimum per resource holds once for all
    starts: max(sum of ceil(r / g) g, m). Source of the two scopes: AWS bills
    at least 60 s at each start (EC2 User Guide, "Stop and start"); Scaleway
    billed at least 60 min per resource until 2025-10 (scaleway/docs-content FAQ).
    """
    steps = [ceil_to(seconds, meter.granularity_s) for seconds in run_seconds]
    if meter.per_resource:
        return max(sum(steps, Decimal(0)), meter.minimum_s) if steps else Decimal(0)
    return sum((max(seconds, meter.minimum_s) for seconds in steps), Decimal(0))
