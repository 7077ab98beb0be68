"""A workload on a card, and the search for the first or largest value of a setting that fits."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload

ROUND_TOKENS = 64
"""Token counts above a thousand are searched in steps of this many."""

ROUND_PIXELS = 64
"""Sides of images are searched in steps of this many pixels."""


class Case(Value, frozen=True, kw_only=True):
    """A workload on a card in a layout."""

    workload: Workload
    accelerator: Accelerator
    layout: Layout
    engine: Engine

    def estimate(self) -> MemoryEstimate | None:
        """The estimate, or None where it is not known."""
        found = estimate(self.workload, self.accelerator, self.layout, self.engine)
        return None if isinstance(found, Unknown) else found


class Change(Value, frozen=True, kw_only=True):
    """One setting changed: the workload key, its value before and after, and the peak and verdict that follow.

    ``case`` is what it leads to: the changed workload in its layout.
    """

    knob: str
    before: str
    after: str
    peak: Range
    verdict: Verdict
    case: Case


def _first(knob: str, before: str, options: list[tuple[str, Case]], wanted: Verdict) -> Change | None:
    """The first of ``options`` that reaches the verdict."""
    for after, case in options:
        found = case.estimate()
        if found is not None and _reaches(found.verdict, wanted):
            return Change(knob=knob, before=before, after=after, peak=found.peak, verdict=found.verdict, case=case)
    return None


def _largest(knob: str, now: int, changed: Callable[[int], Case], wanted: Verdict) -> Change | None:
    """The largest value below ``now`` that reaches the verdict (need never falls as the value grows)."""
    step = ROUND_PIXELS if knob in {"images.width", "images.height"} else 1
    step = ROUND_TOKENS if now > 1000 and knob.endswith("_tokens") else step  # noqa: PLR2004
    low, high = 0, -(-now // step)
    best: MemoryEstimate | None = None
    while high - low > 1:
        middle = (low + high) // 2
        found = changed(middle * step).estimate()
        if found is not None and _reaches(found.verdict, wanted):
            low, best = middle, found
        else:
            high = middle
    if best is None:
        return None
    after = low * step
    return Change(
        knob=knob, before=str(now), after=str(after), peak=best.peak, verdict=best.verdict, case=changed(after)
    )


def _reaches(verdict: Verdict, wanted: Verdict) -> bool:
    return verdict is Verdict.FITS or verdict is wanted
