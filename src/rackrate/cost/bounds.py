"""Bounds: how much and how little the compute part of a bill can be, for a whole table at once.

Floats on columns, to leave out what cannot win before anything is priced in
Decimal. The bounds hold for every way in which the running time can be divided
over the starts, so they are as tight as the sum alone allows.
"""

from __future__ import annotations

import numpy as np

from rackrate.offers.table import Bools, Floats, OfferTable

LowHigh = tuple[Floats, Floats]

SLACK = 1e-9
"""Relative room for the rounding of floats; the exact amount lies inside."""


def compute_bounds(table: OfferTable, running_hours: Floats, *, starts: int = 1, stopped_hours: float = 0.0) -> LowHigh:
    """The least and the most that ``compute`` and ``term`` can cost, per row, in the currency of each offer.

    ``running_hours`` is the time on the meter for each row (hours by shape set
    become that by ``hours[table.shape_set]``); NaN where the work has no
    estimate, and the bounds are then NaN. ``starts`` and ``stopped_hours`` are
    those of the usage. Compute billed while stopped is not in the bounds.

    Metered, with granularity g, minimum m, running time R in S starts, in hours:
    max(R, S m) <= sum of max(ceil(r / g) g, m) <= R + S max(g, m).
    """
    metered = _metered(table, running_hours, starts)
    terms = _terms(table, running_hours, starts, stopped_hours)
    low, high = (np.where(table.prepaid, *pair) * table.price_per_hour for pair in zip(terms, metered, strict=True))
    return low * (1 - SLACK), high * (1 + SLACK)


def _metered(table: OfferTable, running: Floats, starts: int) -> LowHigh:
    step, least = table.granularity_s / 3600, table.minimum_s / 3600
    least_total = np.where(table.minimum_once, least, starts * least)
    return np.maximum(running, least_total), running + starts * np.maximum(step, least)


def _terms(table: OfferTable, running: Floats, starts: int, stopped_hours: float) -> LowHigh:
    """Hours of whole terms; see ``compute.terms`` for what a term is used up by."""
    hours, wall = table.term_hours, running + stopped_hours
    is_pack = _is_pack(table)
    used = np.where(is_pack | table.lapses_on_stop, running, wall)
    lives = np.where(is_pack, wall / table.validity_hours, 0.0)
    floor = np.maximum(_whole(lives, -SLACK), table.minimum_terms)
    low = np.maximum(_whole(used / hours, -SLACK), floor)
    extra = np.where(table.lapses_on_stop & ~is_pack, starts, 0)
    high = np.maximum(np.maximum(_whole(used / hours, SLACK) + extra, _whole(lives, SLACK)), table.minimum_terms)
    return low * hours, high * hours


def _is_pack(table: OfferTable) -> Bools:
    return np.array([unit == "credit_pack" for unit in table.term_units], dtype=np.bool_)[table.term_unit]


def _whole(count: Floats, slack: float) -> Floats:
    """``count`` rounded up, with ``slack`` (relative and absolute) for or against."""
    rounded: Floats = np.ceil(count * (1 + slack) + slack)
    return np.maximum(rounded, 0.0)
