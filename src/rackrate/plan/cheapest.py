"""The cheapest card classes that hold the work: the catalogue by price per hour, each card tried once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.money import Money
from rackrate.offers.offer import MachineShape, Offer
from rackrate.plan.filters import can_do
from rackrate.plan.question import Question
from rackrate.plan.shapes import Estimator
from rackrate.plan.slices import as_rented
from rackrate.values import Value
from rackrate.workload.layout import Layout

ON_DEMAND = frozenset({"on_demand", "on_demand_secure", "on_demand_community", "marketplace_on_demand"})
"""Markets whose machines come by the hour, without a commitment and without being taken away."""


class Holding(Value, frozen=True, kw_only=True):
    """A card class that surely holds the work, at its cheapest offer on demand: ``per_hour`` for the whole machine."""

    offer: Offer
    per_hour: Money
    layout: Layout
    memory: MemoryEstimate


def any_card(_card: Accelerator) -> bool:
    """Every card is wanted."""
    return True


def cheapest_that_hold(
    estimator: Estimator, gpus: int, most: int, wanted: Callable[[Accelerator], bool] = any_card
) -> tuple[Holding, ...]:
    """The ``most`` cheapest cards of which ``gpus`` in one machine surely hold the work, cheapest first.

    Of each card that is ``wanted`` its cheapest offer on demand counts; what the question says about providers
    and regions does not.
    """
    question, found, tried = estimator.question, list[Holding](), set[MachineShape]()
    for entry in _by_price(question, gpus):
        if len(found) == most:
            break
        offer = question.offers.first_offer(entry)
        (shape,) = offer.shapes
        if shape in tried or any(each.offer.cards == offer.cards for each in found):
            continue
        tried.add(shape)
        if not wanted(question.book.accelerators[shape.accelerator]):
            continue
        held = _held(estimator, as_rented(question.book.accelerators[shape.accelerator], shape), gpus)
        if held is not None:
            per_hour = question.book.rates.convert(offer.price_per_hour, question.currency)
            found.append(Holding(offer=offer, per_hour=per_hour, layout=held[0], memory=held[1]))
    return tuple(found)


def _held(estimator: Estimator, card: Accelerator, gpus: int) -> tuple[Layout, MemoryEstimate] | None:
    """The first layout in which the work surely fits on ``gpus`` of ``card``."""
    work = estimator.question.workload
    if not can_do(work, estimator.question.engine, card):
        return None
    for layout in estimator.layouts(gpus):
        memory = estimator.memory(work, card, layout)
        if not isinstance(memory, Unknown) and memory.verdict is Verdict.FITS:
            return layout, memory
    return None


def _by_price(question: Question, gpus: int) -> list[int]:
    """Entries of ``gpus`` whole cards of one sure kind with a full price on demand, from the cheapest up."""
    table, rates = question.offers, question.book.rates
    sure = np.array([len(shapes) == 1 and shapes[0].share >= 1 for shapes in table.shape_sets], dtype=np.bool_)
    asked = np.array([market in ON_DEMAND for market in table.markets], dtype=np.bool_)
    doubtful = table.superseded | table.commitment_unknown | table.price_is_from | table.excludes_host
    rows = np.flatnonzero(sure[table.shape_set] & asked[table.market] & table.priced & ~doubtful & (table.gpus == gpus))
    factors = [float(rates.factor(c, question.currency)) if rates.knows(c) else math.inf for c in table.currencies]
    prices = table.price_per_hour[rows] * np.array(factors, dtype=np.float64)[table.currency[rows]]
    order = np.argsort(prices, kind="stable")
    return [int(row) for row in rows[order[np.isfinite(prices[order])]]]
