"""Rendering: published scores of cards, compared within one benchmark, version and backend, never across them."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.evidence import Unknown
from rackrate.facts.render import RenderScore
from rackrate.values import Value


class Compared(Value, frozen=True, kw_only=True):
    """How many times as fast a card renders as another in one test, and both scores."""

    times: float
    mine: RenderScore
    other: RenderScore


def scores_of(card: str, scores: Iterable[RenderScore]) -> tuple[RenderScore, ...]:
    """The scores of a card: of the best proven test first (the median of most runs)."""
    return tuple(sorted((s for s in scores if s.accelerator == card), key=lambda s: -(s.results or 0)))


def compared(card: str, other: str, scores: Iterable[RenderScore]) -> tuple[Compared, ...] | Unknown:
    """How two cards compare in each test that both did, or that there is no data.

    Rendering is not computed from FLOPs: ray tracing units, caches and the
    renderer's own kernels decide.
    """
    known = tuple(scores)
    found = tuple(
        Compared(times=_times(mine, theirs), mine=mine, other=theirs)
        for mine in scores_of(card, known)
        for theirs in scores_of(other, known)
        if mine.test == theirs.test and mine.source == theirs.source
    )
    return found or Unknown(f"no data: no rendering benchmark that both {card} and {other} did")


def _times(mine: RenderScore, theirs: RenderScore) -> float:
    return mine.value / theirs.value if mine.higher_is_better else theirs.value / mine.value
