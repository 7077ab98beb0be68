"""Search: exact prices in order of a lower bound, until nothing left can enter the answer."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from rackrate.cost.bounds import SLACK
from rackrate.cost.charge_types import Charges
from rackrate.money import Money
from rackrate.plan.answer import Plan, Reason, ShapeEstimate
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.columns import CostColumns, floor
from rackrate.plan.filters import KEPT, code_of, distinct
from rackrate.plan.outcomes import Outcomes
from rackrate.plan.pricing import likely_bill, priced_plan, shown
from rackrate.plan.question import Question
from rackrate.plan.ranking import Tie, criterion, tie_of
from rackrate.plan.selection import among_smallest

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Key = tuple[float, float, Tie | tuple[()]]
"""What plans of one verdict are ordered by; a bound has no tie and comes before all that are equal to it."""


class Search:
    """Best plans over the entries still kept in ``codes``; every price is computed once.

    ``rows`` are these entries (a place is an index into them), ``sets`` their
    shape sets, ``compute`` the compute part of their costs and ``inside`` how
    many of the offers of each are within the budget. ``over`` has the entries with offers that are not,
    the number of the first of these and the compute part of its cost. ``slowness`` and ``tight`` are by shape set.
    """

    def __init__(self, question: Question, codes: NDArray[np.int8], outcomes: Outcomes) -> None:
        self.question = question
        self.codes = codes
        self.outcomes = outcomes
        self.columns = CostColumns(question, outcomes)
        self.rows = np.flatnonzero(codes == KEPT)
        self.sets = question.offers.shape_set[self.rows]
        self.compute = self.columns.compute(self.rows)
        self.inside = question.offers.sizes[self.rows]
        self.over = (self.rows[:0], self.rows[:0], self.compute[:0])
        self.slowness = outcomes.columns.slowness
        self.tight = outcomes.columns.tight
        self._budgets: dict[int, Money | None] = {}
        self._bills: dict[int, Charges] = {}
        self._plans: dict[int, Plan] = {}

    # ------------------------------------------------------------ exact

    def likely(self, entry: int, number: int) -> Money:
        """The exact likely cost of the offer ``number`` of ``entry``, billed once."""
        if number not in self._bills:
            offer = self.question.offers.record(number)
            self._bills[number] = likely_bill(self.question, offer, self._estimates(entry))
        return shown(self.question, self._bills[number])

    def plan(self, entry: int, number: int) -> Plan:
        """The whole plan of an offer, computed once."""
        if number not in self._plans:
            offer = self.question.offers.offer(number)
            likely = self._bills.get(number)
            self._plans[number] = priced_plan(self.question, offer, self._estimates(entry), likely)
        return self._plans[number]

    def key(self, entry: int, number: int) -> Key:
        """What the offer is ordered by among plans of its verdict."""
        slow = float(self.slowness[self._set(entry)])
        first, second = criterion(float(self.likely(entry, number).amount), slow, self.question.rank)
        return (first, second, tie_of(self.question.offers.record(number)))

    def cost(self, place: int) -> float:
        """The exact likely cost of the first offer at ``place``, as a number."""
        entry = int(self.rows[place])
        return float(self.likely(entry, self.question.offers.number(entry)).amount)

    def tie(self, place: int) -> Tie:
        """What decides where costs are equal."""
        return tie_of(self.question.offers.record(self.question.offers.number(int(self.rows[place]))))

    def first_plan(self, place: int) -> Plan:
        """The plan of the first offer at ``place``."""
        entry = int(self.rows[place])
        return self.plan(entry, self.question.offers.number(entry))

    # ------------------------------------------------------------ budget

    def budget(self, index: int) -> Money | None:
        """The most that offers of one shape set may cost: a budget per period depends on the likely time."""
        if index not in self._budgets:
            hours = self.outcomes.figures(index).hours.likely
            self._budgets[index] = budget_for_plan(self.question, hours)
        return self._budgets[index]

    def limits(self, sets: Rows | NDArray[np.int32]) -> Floats:
        """The budgets of offers by their shape sets, as numbers; infinite without one."""
        known = np.full(len(self.question.offers.shape_sets), np.inf)
        for index in distinct(sets):
            most = self.budget(index)
            known[index] = np.inf if most is None else float(most.amount)
        limits: Floats = known[sets]
        return limits

    def exclude_over_budget(self) -> None:
        """Leave out offers whose likely cost is over their budget; exact prices decide where the columns do not.

        The offers of an entry come from the cheapest up, so those up to some price are inside.
        """
        table, limits = self.question.offers, self.limits(self.sets)
        near = np.flatnonzero(floor(self.compute) <= limits)
        rows, limit = self.rows[near], limits[near]
        per_price = self.compute[near] / table.price_per_hour[rows]
        others = self.columns.others(rows)
        surely = table.up_to(rows, (limit / (1 + SLACK) - others) / per_price)
        next_price = table.prices_of(np.minimum(table.numbers(rows) + surely, table.count - 1))
        doubtful = np.flatnonzero((surely < self.inside[near]) & (floor(next_price * per_price + others) <= limit))
        perhaps = table.up_to(rows[doubtful], (limit[doubtful] / (1 - SLACK) - others[doubtful]) / per_price[doubtful])
        for place, end in zip(doubtful.tolist(), perhaps.tolist(), strict=True):
            surely[place] = self._inside(int(rows[place]), range(surely[place], end))
        inside = np.zeros_like(self.inside)
        inside[near] = surely
        self._leave_out(inside)

    def _inside(self, entry: int, doubtful: range) -> int:
        """How many offers of ``entry`` are exactly within the budget, one of ``doubtful`` or all of them."""
        first = self.question.offers.number(entry)
        return doubtful.start + bisect_left(doubtful, 1, key=lambda nth: int(not self.covers(entry, first + nth)))

    def covers(self, entry: int, number: int) -> bool:
        """Whether the exact likely cost of the offer ``number`` of ``entry`` is within the budget."""
        most = self.budget(self._set(entry))
        return most is None or not most < self.likely(entry, number)

    def _leave_out(self, inside: Rows) -> None:
        """Keep the first ``inside`` offers of each row; what is over is remembered by entry and number."""
        table = self.question.offers
        beyond = np.flatnonzero(inside < self.inside)
        entries = self.rows[beyond]
        numbers = table.numbers(entries) + inside[beyond]
        dearer = table.prices_of(numbers) / table.price_per_hour[entries]
        self.over = (entries, numbers, self.compute[beyond] * dearer)
        self.codes[self.rows[inside == 0]] = code_of(Reason.BUDGET)
        kept = np.flatnonzero(inside)
        self.rows, self.sets = self.rows[kept], self.sets[kept]
        self.compute, self.inside = self.compute[kept], inside[kept]

    def cheapest_over(self) -> tuple[int, int]:
        """Entry and number of the offer that is over its budget by the smallest part of it."""
        entries, numbers, compute = self.over
        limits = self.limits(self.question.offers.shape_set[entries])
        few = among_smallest(compute / limits, 1)[:8].tolist()
        least = min(float(self.likely(int(entries[at]), int(numbers[at])).amount) / limits[at] for at in few)
        near = np.flatnonzero(floor(compute / limits) <= least)
        costs = compute[near] + self.columns.others(entries[near])
        at = near[np.argmin(costs / limits[near])]
        return int(entries[at]), int(numbers[at])

    # ------------------------------------------------------------ best

    def best(self, limit: int) -> list[Plan]:
        """The ``limit`` best plans by the question's rank: those that fit, then those that fit tightly.

        Entries are visited by the lower bound of the criterion; the visit stops
        when the bound of the next is above the exact criterion of the last place.
        """
        tight = self.tight[self.sets]
        found: list[tuple[int, int]] = []
        for places in (np.flatnonzero(~tight), np.flatnonzero(tight)):
            if len(found) < limit:
                found += self._first(places, limit - len(found))
        return [self.plan(entry, number) for entry, number in found]

    def _first(self, places: Rows, limit: int) -> list[tuple[int, int]]:
        """Entry and number of the first ``limit`` offers at ``places`` of the rows.

        The last place among a few is a limit that leaves few to look at closely.
        """
        if not len(places):
            return []
        first, second = self._bounds(places, self.compute[places])
        few = among_smallest(first, limit)
        few = few[np.lexsort((second[few], first[few]))[: 4 * limit]]
        last = self._visit(places[few], limit)[-1][0]
        held = self._visit(places[first <= last[0]], limit)
        return [(entry, number) for _, entry, number in held]

    def _visit(self, places: Rows, limit: int) -> list[tuple[Key, int, int]]:
        table, rows = self.question.offers, self.rows[places]
        first, second = self._bounds(places, self.compute[places] + self.columns.others(rows))
        order = np.lexsort((second, first))
        bounds = zip(first[order].tolist(), second[order].tolist(), places[order].tolist(), strict=True)
        queue: list[tuple[Key, int, int]] = [((one, two, ()), place, 0) for one, two, place in bounds]
        held: list[tuple[Key, int, int]] = []
        while queue and not (len(held) >= limit and queue[0][0] > held[limit - 1][0]):
            _, place, nth = heappop(queue)
            entry = int(self.rows[place])
            number = table.number(entry) + nth
            key = self.key(entry, number)
            insort(held, (key, entry, number))
            if nth + 1 < self.inside[place]:
                heappush(queue, (key, place, nth + 1))
        return held[:limit]

    def _bounds(self, places: Rows, costs: Floats) -> tuple[Floats, Floats]:
        slow = self.slowness[self.sets[places]]
        return criterion(floor(costs), slow, self.question.rank)

    def _set(self, entry: int) -> int:
        return int(self.question.offers.shape_set[entry])

    def _estimates(self, entry: int) -> tuple[ShapeEstimate, ...]:
        return self.outcomes.estimates[self._set(entry)]
