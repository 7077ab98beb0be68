"""The JSON contract of a measured speed that was judged."""

from __future__ import annotations

from rackrate.app.wire.parts import Part, RangeDoc


class GapDoc(Part, frozen=True, kw_only=True):
    """One thing that may make the machine slow: the speed that it alone would leave, and how to find out.

    ``value`` is in the unit of what was measured. ``explains``: the share of the gap that it
    makes up (of its logarithm). ``tuned``: ``setting`` was chosen to come as near as it can.
    """

    cause: str
    setting: str
    what: str
    value: float
    explains: float
    tuned: bool
    test: str


class ReadingDoc(Part, frozen=True, kw_only=True):
    """Another meaning of the number under which it would be as expected."""

    meaning: str
    what: str
    expected: RangeDoc


class CorrectionDoc(Part, frozen=True, kw_only=True):
    """Times of one part of the work over those expected: as measured, and as taken for relatives of it."""

    part: str
    times: float
    elsewhere: float


class JudgedDoc(Part, frozen=True, kw_only=True):
    """A measured speed beside what is expected and what cannot be exceeded.

    ``value``, ``expected`` and ``ceiling`` are in ``unit``: a rate, or seconds where the speed
    was given as a time (the ceiling is then the least time). The shares are of
    speeds. ``standing``: ``normal`` (in the 80 % range), ``slow``, ``fast`` or
    ``impossible`` (above the ceiling; then nothing is corrected). ``gaps`` are
    the likely reasons of a slow one, likeliest first.
    """

    text: str
    counted: str
    unit: str
    accelerator: str
    gpus: int
    layout: str
    value: float
    expected: RangeDoc
    ceiling: float
    share_of_expected: float
    share_of_ceiling: float
    standing: str
    gaps: list[GapDoc]
    readings: list[ReadingDoc]
    corrections: list[CorrectionDoc]
