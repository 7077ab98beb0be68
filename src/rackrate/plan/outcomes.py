"""Outcomes: what the estimates say for every set of shapes that an offer can turn out to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.usage import Usage
from rackrate.evidence import Range
from rackrate.memory.estimate_types import Verdict
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, ShapeEstimate, likely_of
from rackrate.plan.pricing import finish_of_all
from rackrate.plan.shapes import Estimator
from rackrate.plan.timeline import usage_of
from rackrate.values import Value
from rackrate.workload.workload import Workload

Floats = NDArray[np.float64]
ShapeSets = tuple[tuple[MachineShape, ...], ...]


class Figures(NamedTuple):
    """The numbers of a shape set that offers are compared by.

    Wall hours to finish, slowness (see ``ranking.slowness``), whether any
    shape only fits tightly, and the likely timeline of each of ``machines``.
    """

    hours: Range
    slowness: float
    is_tight: bool
    usage: Usage
    machines: int


class Outcomes(Value, frozen=True, kw_only=True):
    """Estimates by index of shape set, and the failures of the others.

    A set of several shapes (an unclear card) works only if all of them do; its
    failure is that of the shape that misses by most.
    """

    estimator: Estimator
    shape_sets: ShapeSets
    estimates: dict[int, tuple[ShapeEstimate, ...]]
    failed: dict[int, NoEstimate]

    def find(self, wanted: Iterable[int]) -> None:
        """Estimate the ``wanted`` sets, unless that was done (in place)."""
        for index in wanted:
            if index not in self.estimates and index not in self.failed:
                found = self.estimator.outcomes(self.shape_sets[index])
                if isinstance(found, NoEstimate):
                    self.failed[index] = found
                else:
                    self.estimates[index] = found

    def figures(self, index: int) -> Figures:
        """The numbers of a set that has estimates, computed once."""
        held, shapes = self.estimator.figures, self.shape_sets[index]
        if shapes not in held:
            held[shapes] = _figures(self.estimator.question.workload, self.estimates[index])
        return held[shapes]

    def column(self, of: Callable[[Figures], float]) -> Floats:
        """A number of each set by its index; NaN where there is no estimate."""
        column = np.full(len(self.shape_sets), np.nan)
        for index in self.estimates:
            column[index] = of(self.figures(index))
        return column


def _figures(workload: Workload, estimates: tuple[ShapeEstimate, ...]) -> Figures:
    likely, hours = likely_of(estimates), finish_of_all(estimates)
    return Figures(
        hours=hours,
        slowness=1 / likely.tokens_per_s.likely if workload.is_service else hours.likely,
        is_tight=any(e.memory.verdict is not Verdict.FITS for e in estimates),
        usage=usage_of(workload, likely.work_hours.likely, likely.startup_hours.likely, likely.machines),
        machines=likely.machines,
    )


def estimate_sets(estimator: Estimator, shape_sets: ShapeSets, wanted: Iterable[int]) -> Outcomes:
    """Estimate every wanted set of ``shape_sets``."""
    outcomes = Outcomes(estimator=estimator, shape_sets=shape_sets, estimates={}, failed={})
    outcomes.find(wanted)
    return outcomes
