"""Columns of cost: what the compute part of the bills of a whole table comes to, at once.

In floats, to leave out what cannot win before anything is priced in Decimal.
Every start runs for the same time here, as in the timelines of plans, so the
rounding of each start is known and the amount is the exact one but for the
rounding of floats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.table import Bools, Floats, OfferTable

Rows = NDArray[np.intp]

SLACK = 1e-9
"""Relative room for the rounding of floats; the exact amount lies inside."""

_SAME = 1e-15
"""Quotients closer than this to a whole number are that number. A few roundings of floats stay below; a true
quotient of whole seconds by a step given in decimals comes this close only beyond 10^15 of its last digit."""


class Timeline(NamedTuple):
    """What one machine of each row does on the meter.

    ``run_s`` is the seconds of every one of ``starts`` starts (NaN where the
    work has no estimate); ``stopped_s`` the seconds stopped in between.
    ``stopped_is_billed`` says by billing class whether compute is billed then.
    """

    run_s: Floats
    starts: int
    stopped_s: float
    stopped_is_billed: Bools


def compute_costs(table: OfferTable, rows: Rows, timeline: Timeline) -> Floats:
    """What the lines of ``compute.compute`` come to for ``rows``, in the currency of each; NaN without an estimate.

    Metered, with granularity g and minimum m: starts x max(ceil(r / g) g, m);
    the rules of ``rounding.billed_seconds`` and ``compute.terms``.
    """
    prepaid = table.prepaid[rows]
    hours = np.empty(len(rows))
    for kind, billed_hours in ((prepaid, _term_hours), (~prepaid, _metered_hours)):
        hours[kind] = billed_hours(table, rows[kind], timeline._replace(run_s=timeline.run_s[kind]))
    return hours * table.price_per_hour[rows]


def _metered_hours(table: OfferTable, rows: Rows, timeline: Timeline) -> Floats:
    classes, meters, starts = table.billing[rows], table.meters, timeline.starts
    step = np.array([float(meter.granularity_s) for meter in meters])[classes]
    least = np.array([float(meter.minimum_s) for meter in meters])[classes]
    once = np.array([meter.per_resource for meter in meters], dtype=np.bool_)[classes]
    each = _whole(timeline.run_s / step) * step
    seconds = np.where(once, np.maximum(starts * each, least), starts * np.maximum(each, least))
    if timeline.stopped_s:
        stopped = _whole(timeline.stopped_s / step) * step
        seconds += np.where(timeline.stopped_is_billed[classes], stopped, 0.0)
    hours: Floats = seconds / 3600
    return hours


def _term_hours(table: OfferTable, rows: Rows, timeline: Timeline) -> Floats:
    """Hours of whole terms; see ``compute.terms`` for what a term is used up by."""
    term_s = table.term_hours[rows] * 3600
    running = timeline.run_s * timeline.starts
    wall = running + timeline.stopped_s
    is_pack = np.array([unit == "credit_pack" for unit in table.term_units], dtype=np.bool_)[table.term_unit[rows]]
    lapses = np.array([meter.lapses_on_stop for meter in table.meters], dtype=np.bool_)[table.billing[rows]]
    lives = _whole(wall / (table.validity_hours[rows] * 3600))
    used = np.where(lapses, timeline.starts * _whole(timeline.run_s / term_s), _whole(wall / term_s))
    count = np.where(is_pack, np.maximum(_whole(running / term_s), lives), used)
    return np.maximum(count, table.minimum_terms[rows]) * table.term_hours[rows]


def _whole(count: Floats) -> Floats:
    """``count`` rounded up, unless it is a whole number but for the rounding of floats."""
    nearest = np.rint(count)
    return np.where(np.abs(count - nearest) <= _SAME * count, nearest, np.ceil(count))
