"""Columns of cost: what the compute part of the bills of a whole table comes to, at once.

In floats, to leave out what cannot win before anything is priced in Decimal.
Every start runs for the same time here, as in the timelines of plans, so the
rounding of each start is known and the amount is the exact one but for the
rounding of floats. How time becomes billed hours depends on the clock alone, of
which there are few, so it is worked out by clock and timeline, not by offer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rackrate.offers.meter import Clock, SoldTerm
from rackrate.offers.table import Floats
from rackrate.values import Value

SLACK = 1e-9
"""Relative room for the rounding of floats; the exact amount lies inside."""

_SAME = 1e-15
"""Quotients closer than this to a whole number are that number. A few roundings of floats stay below; a true
quotient of whole seconds by a step given in decimals comes this close only beyond 10^15 of its last digit."""


class Timelines(Value, frozen=True, eq=False):
    """What a machine does on the meter, in several cases.

    ``start_s`` is the seconds of every one of ``starts`` starts in each case
    (NaN: not known); ``stopped_s`` the seconds stopped in between in all of them.
    """

    start_s: Floats
    starts: int
    stopped_s: float


def billed_hours(clocks: Sequence[Clock], times: Timelines) -> Floats:
    """Hours of the price per hour that ``compute.compute`` bills, a row for each clock and a column for each case."""
    hours = np.empty((len(clocks), len(times.start_s)))
    for row, clock in enumerate(clocks):
        hours[row] = _metered(clock, times) if clock.term is None else _whole_terms(clock, clock.term, times)
    return hours


def _metered(clock: Clock, times: Timelines) -> Floats:
    """As ``rounding.billed_seconds``: starts x max(ceil(r / g) g, m), with granularity g and minimum m."""
    each = _whole(times.start_s / clock.granularity_s) * clock.granularity_s
    if clock.minimum_once:
        seconds = np.maximum(times.starts * each, clock.minimum_s)
    else:
        seconds = times.starts * np.maximum(each, clock.minimum_s)
    if times.stopped_s and clock.bills_stopped:
        seconds += float(_whole(np.array(times.stopped_s / clock.granularity_s))) * clock.granularity_s
    hours: Floats = seconds / 3600
    return hours


def _whole_terms(clock: Clock, term: SoldTerm, times: Timelines) -> Floats:
    """Hours of whole terms; see ``compute.terms`` for what a term is used up by."""
    running = times.start_s * times.starts
    wall, term_s = running + times.stopped_s, term.hours * 3600
    if term.unit == "credit_pack":
        count = np.maximum(_whole(running / term_s), _whole(wall / (term.validity_hours * 3600)))
    elif clock.lapses_on_stop:
        count = times.starts * _whole(times.start_s / term_s)
    else:
        count = _whole(wall / term_s)
    return np.maximum(count, term.minimum_terms) * term.hours


def _whole(count: Floats) -> Floats:
    """``count`` rounded up, unless it is a whole number but for the rounding of floats."""
    nearest = np.rint(count)
    return np.where(np.abs(count - nearest) <= _SAME * count, nearest, np.ceil(count))
