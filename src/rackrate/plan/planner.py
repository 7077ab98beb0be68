"""The planner: offers to ranked plans, with a reason for everything left out.

Memory and speed are estimated once per machine shape. Costs are bounded from
below on columns; offers are priced exactly in order of that bound until no
offer left can still enter the answer, so the result is the one that pricing
every offer exactly would give.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.plan.answer import Answer, Reason
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.filters import KEPT, distinct, exclude, mark
from rackrate.plan.outcomes import Outcomes, estimate_sets
from rackrate.plan.question import Question
from rackrate.plan.ranking import ranked
from rackrate.plan.reasons import rejections
from rackrate.plan.search import Search
from rackrate.plan.shapes import Estimator
from rackrate.speed.startup import startup_hours
from rackrate.units import format_hours
from rackrate.workload.workload import Assumption


def plan(question: Question) -> Answer:
    """The best plans for the question, the frontier, and every rejection grouped by reason."""
    excluded = exclude(question)
    codes = excluded.codes
    outcomes = estimate_sets(Estimator(question), distinct(question.offers.shape_set[codes == KEPT]))
    _exclude_by_estimate(question, codes, outcomes)
    search = Search(question, codes, outcomes)
    most = budget_for_plan(question)
    if most is not None:
        search.exclude_above(most)
    best = search.best(question.limit)
    return Answer(
        plans=tuple(ranked(best, question.rank)),
        frontier=tuple(search.frontier()),
        rejected=tuple(rejections(question, excluded, outcomes, search)),
        considered=len(question.offers),
        possible=int(np.count_nonzero(codes == KEPT)),
        assumptions=(*question.workload.assumptions, startup_assumption(question)),
        currency=question.currency,
        rank=question.rank,
    )


def _exclude_by_estimate(question: Question, codes: NDArray[np.int16], outcomes: Outcomes) -> None:
    """Leave out offers whose shapes fail a test of memory, speed or time (in place)."""
    table = question.offers
    for index, failure in outcomes.failed.items():
        mark(codes, table.shape_set == index, failure.reason)
    deadline = question.workload.limits.deadline_hours
    if deadline is not None and not question.workload.is_service:
        late = outcomes.finish_column(len(table.shape_sets)) > deadline
        mark(codes, late[table.shape_set], Reason.DEADLINE)


def startup_assumption(question: Question) -> Assumption:
    """What is taken to happen on the meter before work begins."""
    parts = startup_hours(question.workload, question.engine).parts
    text = ", ".join(
        f"{name.replace('_', ' ')} {format_hours(span.likely)}" for name, span in parts.items() if span.likely
    )
    return Assumption(key="startup", value=text, why="fresh_machine")
