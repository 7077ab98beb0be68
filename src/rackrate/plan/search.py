"""Search: exact prices in order of a lower bound, until nothing left can enter the answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rackrate.money import Money
from rackrate.plan.answer import Plan, Rank, Reason, ShapeEstimate
from rackrate.plan.columns import cost_columns, slowness_column
from rackrate.plan.filters import KEPT, code_of
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.pricing import likely_cost, priced_plan
from rackrate.plan.question import Question

Criterion = tuple[bool, float]


class Search:
    """Best plans and frontier over the offers still kept in ``codes``; every price is computed once."""

    def __init__(self, question: Question, codes: NDArray[np.int16], outcomes: Outcomes) -> None:
        self.question = question
        self.codes = codes
        self.outcomes = outcomes
        self.bounds = cost_columns(question, outcomes, np.flatnonzero(codes == KEPT))
        self.slowness = slowness_column(question, outcomes)
        self._likely: dict[int, Money] = {}
        self._plans: dict[int, Plan] = {}

    def likely(self, index: int) -> Money:
        """The exact likely cost of an offer, computed once."""
        if index not in self._likely:
            offer, estimates = self.question.offers.record(index), self._estimates(index)
            self._likely[index] = likely_cost(self.question, offer, estimates)
        return self._likely[index]

    def plan(self, index: int) -> Plan:
        """The whole plan of an offer, computed once."""
        if index not in self._plans:
            self._plans[index] = priced_plan(self.question, self.question.offers.offer(index), self._estimates(index))
        return self._plans[index]

    def exclude_above(self, most: Money) -> None:
        """Leave out offers whose likely cost is over ``most``; exact prices decide where the bounds do not."""
        kept, limit = self.codes == KEPT, float(most.amount)
        self.codes[kept & (self.bounds.low > limit)] = code_of(Reason.BUDGET)
        unclear = kept & (self.bounds.low <= limit) & (self.bounds.high > limit)
        for index in np.flatnonzero(unclear).tolist():
            if most < self.likely(index):
                self.codes[index] = code_of(Reason.BUDGET)

    def best(self, limit: int) -> list[Plan]:
        """The ``limit`` best plans by the question's rank.

        Offers are visited by verdict, then by the lower bound of the
        criterion; the visit stops when the bound of the next offer is above
        the exact criterion of the last place.
        """
        held: list[tuple[Criterion, int]] = []
        for bound, index in sorted((self._criterion(i, float(self.bounds.low[i])), i) for i in self._kept()):
            if len(held) >= limit and bound > held[limit - 1][0]:
                break
            held.append((self._criterion(index, float(self.likely(index).amount)), index))
            held.sort()
        return [self.plan(index) for _, index in held[:limit]]

    def frontier(self) -> list[Plan]:
        """Plans that fit, cheapest first, of which no other is both cheaper and sooner (exact)."""
        rows = [i for i in self._kept() if not self._tight(i)]
        rows.sort(key=lambda i: (self.slowness[i], self.bounds.low[i], i))
        best: list[int] = []
        for index in rows:
            if best and self.bounds.low[index] >= float(self.likely(best[-1]).amount):
                continue
            if not best or self.likely(index) < self.likely(best[-1]):
                if best and self.slowness[index] == self.slowness[best[-1]]:
                    best.pop()
                best.append(index)
        return [self.plan(i) for i in reversed(best)]

    def _criterion(self, index: int, cost: float) -> Criterion:
        """Verdict first, then what plans are ranked by, for an exact or a bounded cost."""
        rank, slow = self.question.rank, float(self.slowness[index])
        weighed = {Rank.COST: cost, Rank.TIME: slow, Rank.BOTH: cost * slow}[rank]
        return (self._tight(index), weighed)

    def _kept(self) -> list[int]:
        kept: list[int] = np.flatnonzero(self.codes == KEPT).tolist()
        return kept

    def _set(self, index: int) -> int:
        return int(self.question.offers.shape_set[index])

    def _tight(self, index: int) -> bool:
        return self.outcomes.is_tight(self._set(index))

    def _estimates(self, index: int) -> tuple[ShapeEstimate, ...]:
        return self.outcomes.estimates[self._set(index)]
