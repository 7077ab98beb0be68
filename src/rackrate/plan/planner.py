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
from rackrate.plan.filters import KEPT, Excluded, code_of, distinct, exclude
from rackrate.plan.frontier import frontier
from rackrate.plan.outcomes import Outcomes, estimate_sets
from rackrate.plan.question import Question
from rackrate.plan.ranking import ranked
from rackrate.plan.reasons import rejections
from rackrate.plan.search import Search
from rackrate.plan.shapes import Estimator
from rackrate.speed.startup import startup_hours
from rackrate.units import format_hours
from rackrate.workload.workload import Assumption


def plan(question: Question, estimator: Estimator | None = None) -> Answer:
    """The best plans for the question, the frontier, and every rejection grouped by reason.

    Give the ``estimator`` of an earlier question about the same workload,
    engine, facts and day, and what it found out is not found out again.

    Raises:
        ValueError: the estimator is of another workload, engine, set of facts or day.
    """
    search, excluded = searched(question, estimator or Estimator(question))
    best = search.best(question.limit)
    return Answer(
        plans=tuple(ranked(best, question.rank)),
        frontier=tuple(frontier(search)),
        rejected=tuple(rejections(question, excluded, search)),
        considered=question.offers.count,
        possible=int(search.inside.sum()),
        assumptions=(*question.workload.assumptions, startup_assumption(question)),
        currency=question.currency,
        rank=question.rank,
    )


def searched(question: Question, estimator: Estimator) -> tuple[Search, Excluded]:
    """What is left after every filter, estimate and limit, ready to be ranked, and why the rest is out.

    Raises:
        ValueError: the estimator is of another workload, engine, set of facts or day.
    """
    if not estimator.serves(question):
        raise ValueError("the estimator is of another question")
    excluded = exclude(question)
    codes = excluded.codes
    wanted = distinct(question.offers.shape_set[codes == KEPT])
    outcomes = estimate_sets(estimator, question.offers.shape_sets, wanted)
    _exclude_by_estimate(question, codes, outcomes)
    search = Search(question, codes, outcomes)
    most = budget_for_plan(question)
    if most is not None:
        search.exclude_above(most)
    return search, excluded


def _exclude_by_estimate(question: Question, codes: NDArray[np.int8], outcomes: Outcomes) -> None:
    """Leave out offers whose shapes fail a test of memory, speed or time (in place)."""
    reasons = np.full(len(question.offers.shape_sets), KEPT, dtype=np.int8)
    for index, failure in outcomes.failed.items():
        reasons[index] = code_of(failure.reason)
    deadline = question.workload.limits.deadline_hours
    if deadline is not None and not question.workload.is_service:
        reasons[outcomes.columns.hours > deadline] = code_of(Reason.DEADLINE)
    kept = np.flatnonzero(codes == KEPT)
    codes[kept] = reasons[question.offers.shape_set[kept]]


def startup_assumption(question: Question) -> Assumption:
    """What is taken to happen on the meter before work begins."""
    parts = startup_hours(question.workload, question.engine).parts
    text = ", ".join(
        f"{name.replace('_', ' ')} {format_hours(span.likely)}" for name, span in parts.items() if span.likely
    )
    return Assumption(key="startup", value=text, why="fresh_machine")
