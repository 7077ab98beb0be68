"""Other lines: what bills come to beside compute, for many offers at once.

Disk, traffic, address and fees do not depend on an offer's price. For offers
that are billed alike, and timelines that differ in running time alone, they are
linear in it within one count of billing months: two exact bills give all.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.charges import beside_compute
from rackrate.cost.rates import MONTH_HOURS, SECONDS
from rackrate.offers.offer import Offer
from rackrate.plan.figures import OtherLines, Timeless
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.question import Question
from rackrate.values import replace

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def other_lines(question: Question, outcomes: Outcomes, rows: Rows) -> Floats:
    """The sum of the lines beside compute for ``rows``, whose sets have estimates, in the currency of each."""
    table, columns = question.offers, outcomes.columns
    classes, class_of_billing = table.other_classes
    held = outcomes.estimator.other_lines
    if held is None or held.classes is not classes:
        held = outcomes.estimator.other_lines = OtherLines(classes)
    if not len(rows):
        return np.zeros(0)
    lines, sets = held.of(columns.kinds), table.shape_set[rows]
    cells = columns.kind[sets] * len(classes) + class_of_billing[table.billing[rows]]
    running_s = columns.running_s[sets]
    amounts = _amounts(lines, cells, running_s)
    missing = np.isnan(amounts)
    if missing.any():
        example = np.full(len(lines) * len(classes), -1)
        example[cells[missing]] = rows[missing]
        for cell in np.flatnonzero(example >= 0).tolist():
            kind, code = divmod(cell, len(classes))
            offer = table.record(table.number(int(example[cell])))
            lines[kind][:, code] = _line(question, offer, columns.kinds[kind])
        amounts = _amounts(lines, cells, running_s)
    return amounts


def _amounts(lines: list[Floats], cells: Rows, running_s: Floats) -> Floats:
    fixed, per_s = np.concatenate(lines, axis=1)
    amounts: Floats = fixed[cells] + per_s[cells] * running_s
    return amounts


def _line(question: Question, offer: Offer, kind: Timeless) -> tuple[float, float]:
    """Through the exact amounts at the longest and the shortest time that make up the months of ``kind``."""
    month = MONTH_HOURS * SECONDS
    longest = kind.months * month - kind.usage.stopped_seconds
    shortest = max(longest - month + 1, Decimal(0)) if kind.months > 1 else Decimal(0)
    ends = [_amount(question, offer, kind, seconds) for seconds in (shortest, longest)]
    per_s = (ends[1] - ends[0]) / (longest - shortest)
    return float(ends[0] - per_s * shortest), float(per_s)


def _amount(question: Question, offer: Offer, kind: Timeless, seconds: Decimal) -> Decimal:
    usage = replace(kind.usage, run_seconds=(seconds,))
    rules = question.book.rules_of(offer.provider)
    return beside_compute(rules, offer, usage, question.at, kind.machines).total.amount
