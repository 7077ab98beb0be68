"""The planner: offers to ranked plans, with a reason for everything left out.

Memory and speed are estimated once per machine shape. Costs are bounded from
below on columns; offers are priced exactly in order of that bound until no
offer left can still enter the answer, so the result is the one that pricing
every offer exactly would give.
"""

from __future__ import annotations

from rackrate.plan.answer import Answer
from rackrate.plan.frontier import frontier
from rackrate.plan.possible import searched
from rackrate.plan.question import Question
from rackrate.plan.ranking import ranked
from rackrate.plan.reasons import rejections
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


def startup_assumption(question: Question) -> Assumption:
    """What is taken to happen on the meter before work begins."""
    parts = startup_hours(question.workload, question.engine).parts
    text = ", ".join(
        f"{name.replace('_', ' ')} {format_hours(span.likely)}" for name, span in parts.items() if span.likely
    )
    return Assumption(key="startup", value=text, why="fresh_machine")
