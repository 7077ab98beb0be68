"""Outcomes: what the estimates say for every set of shapes that an offer can turn out to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.traffic import months
from rackrate.memory.estimate_types import Verdict
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, ShapeEstimate, likely_of
from rackrate.plan.figures import Figures, Timeless
from rackrate.plan.pricing import finish_of_all, likely_case
from rackrate.plan.shapes import Estimator
from rackrate.plan.timeline import starts_by_kind
from rackrate.values import Value, replace
from rackrate.workload.workload import Workload

Floats = NDArray[np.float64]
ShapeSets = tuple[tuple[MachineShape, ...], ...]


class Columns(Value, frozen=True, eq=False):
    """Figures by index of shape set; NaN where there is no estimate. ``kind`` is a code into ``kinds``.

    ``start_s`` has a row for each kind of start. How many ``starts`` there are
    of each is the same for all shapes, as are the seconds stopped.
    """

    hours: Floats
    slowness: Floats
    tight: NDArray[np.bool_]
    start_s: Floats
    running_s: Floats
    machines: Floats
    starts: tuple[int, ...]
    kind: NDArray[np.intp]
    kinds: tuple[Timeless, ...]


class Outcomes:
    """Estimates by index of shape set, and the failures of the others.

    A set of several shapes (an unclear card) works only if all of them do; its
    failure is that of the shape that misses by most.
    """

    def __init__(self, estimator: Estimator, shape_sets: ShapeSets) -> None:
        self.estimates: dict[int, tuple[ShapeEstimate, ...]] = {}
        self.failed: dict[int, NoEstimate] = {}
        self._estimator = estimator
        self._shape_sets = shape_sets
        self._columns: Columns | None = None

    @property
    def estimator(self) -> Estimator:
        """What the estimates are made by."""
        return self._estimator

    def find(self, wanted: Iterable[int]) -> None:
        """Estimate the ``wanted`` sets, unless that was done."""
        for index in wanted:
            if index in self.estimates or index in self.failed:
                continue
            found = self._estimator.outcomes(self._shape_sets[index])
            if isinstance(found, NoEstimate):
                self.failed[index] = found
            else:
                self.estimates[index] = found
                self._columns = None

    def figures(self, index: int) -> Figures:
        """The numbers of a set that has estimates, computed once."""
        held, shapes = self._estimator.figures, self._shape_sets[index]
        if shapes not in held:
            held[shapes] = _figures(self._estimator.question.workload, self.estimates[index])
        return held[shapes]

    @property
    def columns(self) -> Columns:
        """The numbers of all sets."""
        if self._columns is None:
            sets = np.array(list(self.estimates), dtype=np.intp)
            each = [self.figures(index) for index in self.estimates]
            starts = starts_by_kind(self._estimator.question.workload)
            codes: dict[Timeless, int] = {}
            kind = np.zeros(len(self._shape_sets), dtype=np.intp)
            kind[sets] = [codes.setdefault(one.timeless, len(codes)) for one in each]
            self._columns = Columns(
                hours=self._column(sets, [one.hours.likely for one in each]),
                slowness=self._column(sets, [one.slowness for one in each]),
                tight=self._column(sets, [one.is_tight for one in each]) == 1,
                start_s=np.stack([self._column(sets, [one.start_s[k] for one in each]) for k in range(len(starts))]),
                running_s=self._column(sets, [one.running_s for one in each]),
                machines=self._column(sets, [one.timeless.machines for one in each]),
                starts=starts,
                kind=kind,
                kinds=tuple(codes),
            )
        return self._columns

    def _column(self, sets: NDArray[np.intp], values: Sequence[float]) -> Floats:
        column = np.full(len(self._shape_sets), np.nan)
        column[sets] = values
        return column


def _figures(workload: Workload, estimates: tuple[ShapeEstimate, ...]) -> Figures:
    hours, case = finish_of_all(estimates), likely_case(workload, estimates)
    usage = case.usage
    ends = accumulate(starts_by_kind(workload))
    return Figures(
        hours=hours,
        slowness=1 / likely_of(estimates).pace.likely if workload.is_service else hours.likely,
        is_tight=any(e.memory.verdict is not Verdict.FITS for e in estimates),
        start_s=tuple(float(usage.run_seconds[end - 1]) for end in ends),
        running_s=float(usage.running_seconds),
        timeless=Timeless(replace(usage, run_seconds=usage.run_seconds[:0]), months(usage), case.machines),
    )


def estimate_sets(estimator: Estimator, shape_sets: ShapeSets, wanted: Iterable[int]) -> Outcomes:
    """Estimate every wanted set of ``shape_sets``."""
    outcomes = Outcomes(estimator, shape_sets)
    outcomes.find(wanted)
    return outcomes
