"""Outcomes: what the estimates say for every set of shapes that an offer can turn out to be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rackrate.evidence import Range
from rackrate.memory.estimate_types import Verdict
from rackrate.plan.answer import NoEstimate, ShapeEstimate, likely_of
from rackrate.plan.pricing import finish_of_all
from rackrate.plan.shapes import Estimator
from rackrate.values import Value

Floats = NDArray[np.float64]


class Outcomes(Value, frozen=True, kw_only=True):
    """Estimates by index of shape set, and the failures of the others.

    A set of several shapes (an unclear card) works only if all of them do; its
    failure is that of the shape that misses by most.
    """

    estimator: Estimator
    estimates: dict[int, tuple[ShapeEstimate, ...]]
    failed: dict[int, NoEstimate]

    def hours(self, index: int) -> Range:
        """Wall hours to finish; the ends are those of all shapes."""
        return finish_of_all(self.estimates[index])

    def tokens_per_s(self, index: int) -> float:
        """Likely tokens per second."""
        return likely_of(self.estimates[index]).tokens_per_s.likely

    def is_tight(self, index: int) -> bool:
        """Whether any of the shapes only fits tightly."""
        return any(e.memory.verdict is not Verdict.FITS for e in self.estimates[index])

    def finish_column(self, sets: int) -> Floats:
        """Likely wall hours by set index; infinite where there is no estimate."""
        column = np.full(sets, np.inf)
        for index in self.estimates:
            column[index] = self.hours(index).likely
        return column


def estimate_sets(estimator: Estimator, wanted: Iterable[int]) -> Outcomes:
    """Estimate every wanted set of the question's offers."""
    estimates: dict[int, tuple[ShapeEstimate, ...]] = {}
    failed: dict[int, NoEstimate] = {}
    for index in wanted:
        found = [estimator.outcome(shape) for shape in estimator.question.offers.shape_sets[index]]
        failures = [f for f in found if isinstance(f, NoEstimate)]
        if failures:
            failed[index] = max(failures, key=lambda f: f.shortfall)
        else:
            estimates[index] = tuple(f for f in found if isinstance(f, ShapeEstimate))
    return Outcomes(estimator=estimator, estimates=estimates, failed=failed)
