"""Columns of cost: what the compute part of the bills of a whole table comes to, at once.

In floats, to leave out what cannot win before anything is priced in Decimal.
Starts come in a few kinds here, as in the timelines of plans, so the rounding
of each is known and the amount is the exact one but for the rounding of floats.
How time becomes billed hours depends on the clock alone, of which there are
few, so it is worked out by clock and timeline, not by offer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rackrate.offers.arrays import Floats
from rackrate.offers.meter import Clock, SoldTerm
from rackrate.values import Value

SLACK = 1e-9
"""Relative room for the rounding of floats; the exact amount lies inside."""

_SAME = 1e-15
"""Quotients closer than this to a whole number are that number. A few roundings of floats stay below; a true
quotient of whole seconds by a step given in decimals comes this close only beyond 10^15 of its last digit."""


class Timelines(Value, frozen=True, eq=False):
    """What a machine does on the meter, in several cases.

    ``start_s`` has a row for each kind of start, with its seconds in each case
    (NaN: not known), and ``starts`` how many there are of each. ``stopped_s`` is
    the seconds stopped in all cases, of which ``kept_s`` come after the last run.
    """

    start_s: Floats
    starts: tuple[int, ...]
    stopped_s: float
    kept_s: float = 0.0

    def in_all(self, of_each: Floats) -> Floats:
        """The sum over all starts of what each comes to: by clock, kind of start and case, then by clock and case."""
        total: Floats = (of_each * np.array(self.starts, dtype=np.float64).reshape(-1, 1)).sum(axis=1)
        return total


def billed_hours(clocks: Sequence[Clock], times: Timelines) -> Floats:
    """Hours of the price per hour that ``compute.compute`` bills, a row for each clock and a column for each case."""
    hours = np.empty((len(clocks), times.start_s.shape[1]))
    metered = [row for row, clock in enumerate(clocks) if clock.term is None]
    prepaid = [row for row, clock in enumerate(clocks) if clock.term is not None]
    hours[metered] = _metered([clocks[row] for row in metered], times)
    hours[prepaid] = _whole_terms([(clock, clock.term) for clock in clocks if clock.term is not None], times)
    return hours


def _metered(clocks: Sequence[Clock], times: Timelines) -> Floats:
    """As ``rounding.billed_seconds``: starts x max(ceil(r / g) g, m), with granularity g and minimum m."""
    step, least = _rows(clock.granularity_s for clock in clocks), _rows(clock.minimum_s for clock in clocks)
    once = _rows(clock.minimum_once for clock in clocks) == 1
    steps, leasts = step[:, np.newaxis], least[:, np.newaxis]
    each = _whole(times.start_s / steps) * steps
    seconds = np.where(once, np.maximum(times.in_all(each), least), times.in_all(np.maximum(each, leasts)))
    if times.stopped_s:
        seconds += _whole(times.stopped_s / step) * step * _rows(clock.bills_stopped for clock in clocks)
    hours: Floats = seconds / 3600
    return hours


def _whole_terms(clocks: Sequence[tuple[Clock, SoldTerm]], times: Timelines) -> Floats:
    """Hours of whole terms; see ``compute.terms`` for what a term is used up by."""
    hours, least = _rows(term.hours for _, term in clocks), _rows(term.minimum_terms for _, term in clocks)
    life_s = _rows(term.validity_hours for _, term in clocks) * 3600
    is_pack = _rows(term.unit == "credit_pack" for _, term in clocks) == 1
    lapses = _rows(clock.lapses_on_stop for clock, _ in clocks) == 1
    running, term_s = times.in_all(times.start_s[np.newaxis]), hours * 3600
    wall = running + (times.stopped_s - times.kept_s)
    of_each = times.in_all(_whole(times.start_s / term_s[:, np.newaxis]))
    count = np.where(lapses, of_each, _whole(wall / term_s))
    count = np.where(is_pack, np.maximum(_whole(running / term_s), _whole(wall / life_s)), count)
    whole: Floats = np.maximum(count, least) * hours
    return whole


def _rows(numbers: Iterable[float]) -> Floats:
    """A number for each clock, to go with one for each case."""
    return np.array(list(numbers), dtype=np.float64).reshape(-1, 1)


def _whole(count: Floats) -> Floats:
    """``count`` rounded up, unless it is a whole number but for the rounding of floats."""
    nearest = np.rint(count)
    return np.where(np.abs(count - nearest) <= _SAME * count, nearest, np.ceil(count))
