"""Other lines: what bills come to beside compute, for many offers at once.

Disk, traffic, address and fees do not depend on an offer's price. For offers
of one billing class, and timelines that differ in running time alone, they are
linear in it within one count of billing months: two exact bills give all.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.charges import beside_compute
from rackrate.cost.rates import MONTH_HOURS, SECONDS
from rackrate.cost.traffic import months
from rackrate.cost.usage import Usage
from rackrate.offers.offer import Offer
from rackrate.plan.outcomes import Figures, Outcomes
from rackrate.plan.question import Question
from rackrate.values import replace

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Timeless(NamedTuple):
    """A timeline of each of ``machines`` without its running time, of which the billing months are left."""

    usage: Usage
    months: Decimal
    machines: int


class OtherLine(NamedTuple):
    """The sum of all machines' lines, in the currency of the offer: at no running time, and what a second adds."""

    fixed: float
    per_s: float


def other_lines(question: Question, outcomes: Outcomes, rows: Rows) -> Floats:
    """The sum of the lines beside compute for ``rows``, whose sets have estimates, in the currency of each."""
    table, known = question.offers, outcomes.estimator.other_lines
    kinds, kind_of_set = _kinds(outcomes)
    sets = table.shape_set[rows]
    pairs = table.billing[rows] * len(kinds) + kind_of_set[sets]
    example = np.full(len(table.billing_classes) * len(kinds), -1)
    example[pairs[::-1]] = rows[::-1]
    fixed, per_s = np.zeros(len(example)), np.zeros(len(example))
    for pair in np.flatnonzero(example >= 0).tolist():
        billing, kind = divmod(pair, len(kinds))
        key = (table.billing_classes[billing], kinds[kind])
        if key not in known:
            offer = table.record(table.number(int(example[pair])))
            known[key] = _line(question, offer, kinds[kind])
        fixed[pair], per_s[pair] = known[key]
    running = outcomes.column(lambda f: float(f.usage.running_seconds))[sets]
    amounts: Floats = fixed[pairs] + per_s[pairs] * running
    return amounts


def _kinds(outcomes: Outcomes) -> tuple[list[Timeless], NDArray[np.intp]]:
    """The timelines without their time, and a code into them by shape set (0 where there is no estimate)."""
    codes: dict[Timeless, int] = {}
    column = np.zeros(len(outcomes.shape_sets), dtype=np.intp)
    for index in outcomes.estimates:
        column[index] = codes.setdefault(timeless(outcomes.figures(index)), len(codes))
    return list(codes), column


def timeless(figures: Figures) -> Timeless:
    """What is left of a timeline without its running time."""
    return Timeless(replace(figures.usage, run_seconds=()), months(figures.usage), figures.machines)


def _line(question: Question, offer: Offer, kind: Timeless) -> OtherLine:
    """The line through the exact amounts at the longest and the shortest time that make up the months of ``kind``."""
    month = MONTH_HOURS * SECONDS
    longest = kind.months * month - kind.usage.stopped_seconds
    shortest = max(longest - month + 1, Decimal(0)) if kind.months > 1 else Decimal(0)
    ends = [_amount(question, offer, kind, seconds) for seconds in (shortest, longest)]
    per_s = (ends[1] - ends[0]) / (longest - shortest)
    return OtherLine(float(ends[0] - per_s * shortest), float(per_s))


def _amount(question: Question, offer: Offer, kind: Timeless, seconds: Decimal) -> Decimal:
    usage = replace(kind.usage, run_seconds=(seconds,))
    rules = question.book.rules_of(offer.provider)
    return beside_compute(rules, offer, usage, question.at).total.amount * kind.machines
