"""Spread: how far a speed may be off, and never above the physical ceiling."""

from __future__ import annotations

from rackrate.evidence import Range, multiply_independent
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.speed.replica import Replica

UNMEASURED_WIDER = 1.5
"""Ranges are this much wider where the engine's efficiencies were not measured: other makers' cards, emulated types."""


def spread_of(engine: Engine, accelerator: Accelerator, one: Replica) -> float:
    """The factor less one by which a speed of ``engine`` may be off either way on ``accelerator``."""
    measured = accelerator.vendor == "NVIDIA" and not one.rates.emulated
    return engine.speed.spread * (1.0 if measured else UNMEASURED_WIDER)


def within(likely: float, spread: float, ceiling: float) -> Range:
    """A speed whose errors are factors: a factor of 1 + spread either way, cut off at the physical ceiling."""
    likely = min(likely, ceiling)
    return Range(likely / (1 + spread), likely, min(likely * (1 + spread), ceiling))


def wider(time: Range, spread: float) -> Range:
    """A time range that also carries the engine's spread, as independent of its own."""
    return multiply_independent(time, Range(1 / (1 + spread), 1.0, 1 + spread))
