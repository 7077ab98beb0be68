"""Phases: the peak is the maximum over phases of what is held in each, never the sum of everything."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackrate.evidence import Range
from rackrate.memory.estimate_types import Component, Phase, Verdict

SERVING = (Phase.PREFILL, Phase.DECODE)
TRAINING = (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.STEP, Phase.SAVE)
ALWAYS = (Phase.ALWAYS,)

_ALWAYS = Phase.ALWAYS  # a member of an enum is slow to look up in a loop

Peaks = tuple[tuple[Phase, Range], ...]
Moments = tuple[tuple[Phase, ...], float, float, float]
"""When a part is held, its likely size, and the squares of its half widths below and above."""


def held(parts: Sequence[Component], phase: Phase) -> Range:
    """What is held in ``phase``: independent parts, so half widths add as squares."""
    return _held([_moments(part) for part in parts], phase)


def by_phase(parts: Sequence[Component], phases: Sequence[Phase]) -> Peaks:
    """What is held in each of ``phases``."""
    sizes = [_moments(part) for part in parts]
    return tuple((phase, _held(sizes, phase)) for phase in phases)


def _moments(part: Component) -> Moments:
    size = part.bytes
    return part.phases, size.likely, (size.likely - size.low) ** 2, (size.high - size.likely) ** 2


def _held(sizes: Sequence[Moments], phase: Phase) -> Range:
    likely = below = above = 0.0
    for phases, middle, squared_below, squared_above in sizes:
        if phase in phases or _ALWAYS in phases:
            likely += middle
            below += squared_below
            above += squared_above
    return Range(likely - math.sqrt(below), likely, likely + math.sqrt(above))


def highest(peaks: Peaks) -> tuple[Phase, Range]:
    """The phase with the largest likely peak (the earliest of equals)."""
    return max(peaks, key=_likely)


def _likely(entry: tuple[Phase, Range]) -> float:
    return entry[1].likely


def part(name: str, size: float | Range, *phases: Phase, note: str = "") -> Component:
    """A component; a plain number is exact, no phase means always."""
    amount = size if isinstance(size, Range) else Range(size, size, size)
    return Component(name=name, phases=phases or ALWAYS, bytes=amount, note=note)


def verdict(peak: Range, usable: float) -> Verdict:
    """Fits when the high end is within what is usable, tight when only the likely value is."""
    if peak.high <= usable:
        return Verdict.FITS
    return Verdict.TIGHT if peak.likely <= usable else Verdict.DOES_NOT_FIT
