"""Possible: the offers that are left after every filter, estimate and limit, ready to be ranked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.plan.answer import Reason
from rackrate.plan.filters import KEPT, Excluded, code_of, distinct, exclude
from rackrate.plan.outcomes import Outcomes, estimate_sets
from rackrate.plan.question import Question
from rackrate.plan.search import Search
from rackrate.plan.shapes import Estimator


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
    if question.workload.limits.budget is not None:
        search.exclude_over_budget()
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
