"""Frontier: the plans that no other beats in both cost and time, found without pricing them all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from rackrate.plan.answer import Plan
from rackrate.plan.columns import floor
from rackrate.plan.ranking import Tie
from rackrate.plan.search import Search
from rackrate.plan.selection import first_smallest

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Candidate = tuple[int, float, int]
"""Number of the slowness (0 is the soonest), lower bound of the cost, place among the rows of the search."""


def frontier(search: Search) -> list[Plan]:
    """Plans that fit, cheapest first, of which no other is both cheaper and sooner (exact).

    Only the cheapest of a slowness can be one, and only if it costs less than all that are sooner.
    """
    places, paces = _fitting(search)
    least, chosen = np.inf, []
    for _, same_pace in groupby(_candidates(search, places, paces), key=itemgetter(0)):
        best: tuple[float, Tie, int] | None = None
        for _, bound, place in same_pace:
            if bound >= least or (best is not None and bound > best[0]):
                break
            cost, tie = search.cost(place), search.tie(place)
            if cost < least and (best is None or (cost, tie) < best[:2]):
                best = (cost, tie, place)
        if best is not None:
            least = best[0]
            chosen.append(best[2])
    return [search.first_plan(place) for place in reversed(chosen)]


def _fitting(search: Search) -> tuple[Rows, Rows]:
    """Places of the entries that fit, and for each the number of its slowness."""
    sets = search.sets
    places = np.flatnonzero(~search.tight[sets])
    slowness = search.slowness.tolist()
    number = {slow: n for n, slow in enumerate(sorted({slow for slow in slowness if slow == slow}))}  # noqa: PLR0124
    of_set = np.array([number.get(slow, -1) for slow in slowness], dtype=np.intp)
    return places, of_set[sets[places]]


def _candidates(search: Search, places: Rows, paces: Rows) -> Iterator[Candidate]:
    """The entries that can be on the frontier, sooner ones first, those of one slowness by their bound."""
    low = floor(search.compute[places])
    near = np.flatnonzero(low <= _limits(search, places, paces, low)[paces])
    bounds = floor(search.compute[places[near]] + search.columns.others(search.rows[places[near]]))
    order = np.lexsort((bounds, paces[near]))
    yield from zip(paces[near][order].tolist(), bounds[order].tolist(), places[near][order].tolist(), strict=True)


def _limits(search: Search, places: Rows, paces: Rows, low: Floats) -> Floats:
    """By slowness, an exact cost that a plan which is no sooner has to stay under."""
    count = int(paces.max(initial=-1)) + 1
    limits = np.full(count, np.inf)
    least = np.inf
    for pace, at in enumerate(first_smallest(low, paces, count).tolist()):
        if at >= 0 and low[at] < least:
            least = min(least, search.cost(int(places[at])))
        limits[pace] = least
    return limits
