"""Idle memory: what a plan pays for memory that the work leaves unused."""

from __future__ import annotations

from decimal import Decimal

from rackrate.money import Money
from rackrate.plan.answer import IdleMemory, ShapeEstimate
from rackrate.problems import Code, Finding, Severity
from rackrate.units import format_bytes

OVERSIZED_FRACTION = 0.5
"""A card is named over-sized when the likely peak leaves more than this share of it idle."""


def idle_memory(estimate: ShapeEstimate, cost: Money) -> IdleMemory:
    """Memory idle at the likely peak, and its part of ``cost`` by bytes.

    The money is ``cost`` x idle / usable: memory is what a larger card of the
    same generation is paid for. Cards that the layout leaves out are idle whole.
    """
    usable = estimate.memory.usable_bytes
    used = min(estimate.memory.peak.likely, usable) * min(1.0, estimate.layout.gpus / estimate.shape.gpus)
    fraction = max(0.0, 1 - used / usable)
    return IdleMemory(bytes=usable - used, fraction=fraction, cost=cost * Decimal(repr(round(fraction, 6))))


def oversized(idle: IdleMemory, accelerator: str) -> Finding | None:
    """A warning that names the idle memory and its price, when it is more than half the card."""
    if idle.fraction <= OVERSIZED_FRACTION:
        return None
    return Finding(
        code=Code.OVERSIZED,
        severity=Severity.INFO,
        subject=accelerator,
        observed=f"{format_bytes(idle.bytes)} a card idle ({idle.fraction:.0%}), {idle.cost} of the cost",
        expected=f"under {OVERSIZED_FRACTION:.0%} idle",
        action="use the room for a larger batch, context or concurrency, or take a smaller card",
    )
