"""Hourly: what one machine costs by the hour at its cheapest, without a commitment and never taken away."""

from __future__ import annotations

import math

import numpy as np

from rackrate.money import Money
from rackrate.offers.offer import MachineShape
from rackrate.plan.cheapest import ON_DEMAND
from rackrate.plan.question import Question


def hourly(question: Question, shape: MachineShape) -> Money | None:
    """The lowest full price on demand of a whole machine like ``shape``, in the question's currency; None: none seen.

    What the question says about providers and regions does not count.
    """
    table, rates = question.offers, question.book.rates
    like = np.array([_is_like(shapes, shape) for shapes in table.shape_sets], dtype=np.bool_)
    asked = np.array([market in ON_DEMAND for market in table.markets], dtype=np.bool_)
    doubtful = table.superseded | table.commitment_unknown | table.price_is_from | table.excludes_host
    sold = like[table.shape_set] & asked[table.market] & table.priced & ~doubtful
    rows = np.flatnonzero(sold & (table.gpus == shape.gpus))
    if not len(rows):
        return None
    factors = [float(rates.factor(c, question.currency)) if rates.knows(c) else math.inf for c in table.currencies]
    prices = table.price_per_hour[rows] * np.array(factors, dtype=np.float64)[table.currency[rows]]
    cheapest = int(np.argmin(prices))
    if not math.isfinite(prices[cheapest]):
        return None
    return rates.convert(table.first_offer(int(rows[cheapest])).price_per_hour, question.currency)


def _is_like(shapes: tuple[MachineShape, ...], shape: MachineShape) -> bool:
    """Whether offers of ``shapes`` are surely such machines, bridged or not."""
    return len(shapes) == 1 and shapes[0].share >= 1 and shapes[0].accelerator == shape.accelerator
