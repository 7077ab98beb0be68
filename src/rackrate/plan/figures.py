"""Figures: the numbers of estimates that offers are compared by, kept from plan to plan of one workload."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.usage import Usage
from rackrate.evidence import Range
from rackrate.offers.meter import OtherClass
from rackrate.values import Value

Floats = NDArray[np.float64]


class Timeless(Value, frozen=True):
    """A timeline of each of ``machines`` without its running time, of which the billing months are left."""

    usage: Usage
    months: Decimal
    machines: int


class Figures(Value, frozen=True):
    """The numbers of a shape set that offers are compared by.

    Wall hours to finish, slowness (see ``ranking.slowness``), whether any
    shape only fits tightly, the likely seconds of each kind of start of a
    machine and of all starts together, and the rest of its timeline.
    """

    hours: Range
    slowness: float
    is_tight: bool
    start_s: tuple[float, ...]
    running_s: float
    timeless: Timeless


class OtherLines:
    """The lines beside compute of one table's ``classes``, by timeline without its time; filled in when needed.

    By class: the sum of all machines' lines at no running time, in the currency
    of the class, and what a second adds (NaN where it was not needed yet).
    """

    def __init__(self, classes: tuple[OtherClass, ...]) -> None:
        self.classes = classes
        self._lines: dict[Timeless, Floats] = {}

    def of(self, kinds: tuple[Timeless, ...]) -> list[Floats]:
        """For each kind, the fixed amounts and what a second adds, as two rows."""
        return [self._lines.setdefault(kind, np.full((2, len(self.classes)), np.nan)) for kind in kinds]
