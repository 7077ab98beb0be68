"""Long price lists: the answer over lots of offers is that of pricing every offer exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from bench.offers import generate, places_of
from tests.plan.build import AT, JOB, SERVICE
from tests.plan.test_planner import exhaustive

from rackrate.cost.bounds import SLACK
from rackrate.facts.book import FactBook
from rackrate.money import Money
from rackrate.offers import catalog
from rackrate.offers.columns import table_of as table_of_columns
from rackrate.offers.offer import Offer
from rackrate.offers.price_list import Reader
from rackrate.offers.rows import table_of_offers
from rackrate.offers.table import OfferTable
from rackrate.offers.texts import Records, nth_of_base, read_texts
from rackrate.plan.answer import Plan, Rank, Reason
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.columns import CostColumns
from rackrate.plan.filters import KEPT, exclude
from rackrate.plan.outcomes import estimate_sets
from rackrate.plan.planner import plan
from rackrate.plan.pricing import likely_bill, shown
from rackrate.plan.question import Question
from rackrate.plan.ranking import frontier, ranked, slowness
from rackrate.plan.shapes import Estimator
from rackrate.values import replace

Ask = Callable[..., Question]
STOPPING = {
    **JOB,
    "use": {"starts": 3, "keep_disk_days": 40, "disk": "300 GB", "data_in": "400 GB", "data_out": "30 TB"},
}
RESTING = {
    **SERVICE,
    "use": {"hours_per_day": 8, "horizon_days": 12.4, "keep_disk_days": 3, "data_in": "2 TB", "data_out": "500 GB"},
}
BUSY = {**SERVICE, "serving": {**SERVICE["serving"], "requests_per_s": 2.0}, "use": {"data_out": "800 GB"}}
LONG = {**JOB, "training": {**JOB["training"], "tokens": "3B"}, "use": {"data_out": "30 TB"}}  # type: ignore[dict-item]
WORKLOADS = {"job": JOB, "long": LONG, "stopping": STOPPING, "service": SERVICE, "resting": RESTING, "busy": BUSY}


class Lists:
    """Synthetic price lists in lots, and the same offers a row each."""

    def __init__(self, book: FactBook) -> None:
        self.book = book
        self.bundled = catalog.load(book, at=AT).table.records()
        self._held: dict[tuple[int, int], tuple[OfferTable, OfferTable]] = {}
        self._priced: dict[str, list[Plan]] = {}

    def of(self, count: int, seed: int = 1) -> tuple[OfferTable, OfferTable]:
        if (count, seed) not in self._held:
            reader = Reader(self.book.accelerators, places_of(self.bundled))
            texts, columns, _ = read_texts(generate(count, self.book, self.bundled, seed=seed), reader)
            record = Records(texts, nth_of_base(texts), reader, self.book.accelerators)
            lots = table_of_columns(columns, record, self.book.rules_of, at=AT)[0]
            rows = table_of_offers([record(place) for place in range(count)], self.book.rules_of, at=AT)
            self._held[count, seed] = lots, rows
        return self._held[count, seed]

    def every(self, ask: Ask, name: str) -> list[Plan]:
        """Every plan of two thousand offers for a workload without a budget, priced once."""
        if name not in self._priced:
            self._priced[name] = exhaustive(question(ask, WORKLOADS[name], self.of(2_000, seed=len(name))[1]))
        return self._priced[name]


@pytest.fixture(scope="module")
def lists(book: FactBook) -> Lists:
    return Lists(book)


def question(
    ask: Ask, workload: dict[str, Any], offers: OfferTable, rank: Rank = Rank.COST, limit: int = 20
) -> Question:
    return replace(ask(workload, [], rank=rank, limit=limit), offers=offers)


def with_budget(workload: dict[str, Any], budget: str) -> dict[str, Any]:
    return {**workload, "limits": {"budget": budget}} if budget else workload


def numbers(plans: Sequence[Any]) -> list[tuple[Money, float]]:
    return [(p.cost.likely, slowness(p)) for p in plans]


def is_within(asked: Question, found: Plan) -> bool:
    most = budget_for_plan(asked, found.hours.likely)
    return most is None or not most < found.cost.likely


def share_of_budget(asked: Question, found: Plan) -> float:
    most = budget_for_plan(asked, found.hours.likely)
    assert most is not None
    return float(found.cost.likely.amount / most.amount)


def counts(answer: Any) -> dict[Reason, int]:
    return {group.reason: group.count for group in answer.rejected}


@pytest.mark.parametrize("rank", list(Rank))
@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("job", ""),
        ("job", "9 USD"),
        ("stopping", "900 USD"),
        ("busy", ""),
        ("long", "6 USD/hour"),
        ("stopping", "400 USD/day"),
        ("busy", "2500 USD/month"),
        ("job", "9 USD/day"),
    ],
)
def test_two_thousand_offers_in_lots_are_planned_as_if_each_were_priced(
    ask: Ask, lists: Lists, name: str, budget: str, rank: Rank
) -> None:
    lots, rows = lists.of(2_000, seed=len(name))
    workload = with_budget(WORKLOADS[name], budget)
    every = lists.every(ask, name)
    within = [p for p in every if is_within(question(ask, workload, rows), p)]
    answer = plan(question(ask, workload, lots, rank))
    assert len(within) > 20
    assert budget == "" or len(within) < len(every)
    assert (answer.possible, answer.considered) == (len(within), 2_000)
    assert counts(answer).get(Reason.BUDGET, 0) == len(every) - len(within)
    if budget:
        least = min(share_of_budget(question(ask, workload, rows), p) for p in every if p not in within)
        over = next(group.nearest for group in answer.rejected if group.reason is Reason.BUDGET)
        assert over is not None
        assert over.cost in [p.cost.likely for p in every if share_of_budget(question(ask, workload, rows), p) == least]
    assert numbers(answer.plans) == numbers(ranked(within, rank)[:20])
    assert numbers(answer.frontier) == numbers(frontier(within))


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_twenty_thousand_offers_in_lots_get_the_answer_of_a_row_each(ask: Ask, lists: Lists, name: str) -> None:
    lots, rows = lists.of(20_000)
    limits = {"budget": "2500 USD", "max_gpus": 4, "regions": ["us", "eu", "cn"], "interruptible": True}
    workload = {**WORKLOADS[name], "limits": limits}
    in_lots, by_row = (plan(question(ask, workload, table)) for table in (lots, rows))
    assert len(lots) < len(rows) == lots.count == 20_000
    assert in_lots.possible + sum(counts(in_lots).values()) == in_lots.considered == 20_000
    assert (in_lots.possible, counts(in_lots)) == (by_row.possible, counts(by_row))
    assert len(counts(in_lots)) > 8
    assert numbers(in_lots.plans) == numbers(by_row.plans)
    assert numbers(in_lots.frontier) == numbers(by_row.frontier)
    for mine, its in zip(in_lots.rejected, by_row.rejected, strict=True):
        assert (mine.reason, mine.nearest is None) == (its.reason, its.nearest is None)
        if mine.nearest and its.nearest:
            assert (mine.nearest.cost, mine.nearest.change) == (its.nearest.cost, its.nearest.change)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_columns_of_cost_are_the_exact_costs_but_for_rounding(ask: Ask, lists: Lists, name: str) -> None:
    asked = question(ask, WORKLOADS[name], lists.of(20_000)[0])
    codes = exclude(asked).codes
    wanted = np.unique(asked.offers.shape_set[codes == KEPT]).tolist()
    outcomes = estimate_sets(Estimator(asked), asked.offers.shape_sets, wanted)
    known = np.isin(asked.offers.shape_set, list(outcomes.estimates))
    rows = np.flatnonzero((codes == KEPT) & known)[::37]
    columns = CostColumns(asked, outcomes)
    found = columns.compute(rows) + columns.others(rows)
    exact = [exactly(asked, outcomes.estimates, row) for row in rows.tolist()]
    assert len(rows) > 100
    np.testing.assert_allclose(found, exact, rtol=SLACK / 10)


def exactly(asked: Question, estimates: dict[int, Any], row: int) -> float:
    offer: Offer = asked.offers.record(asked.offers.number(row))
    return float(shown(asked, likely_bill(asked, offer, estimates[int(asked.offers.shape_set[row])])).amount)


@pytest.mark.parametrize("shift", ["-0.0001", "0", "0.0001"])
def test_a_budget_that_is_the_cost_of_many_offers_is_decided_exactly(ask: Ask, lists: Lists, shift: str) -> None:
    """The budget is one exact cost, a ten-thousandth less or more, where floats alone decide nothing."""
    _, rows = lists.of(2_000)
    every = exhaustive(question(ask, JOB, rows))
    middle = sorted(p.cost.likely.amount for p in every)[len(every) // 2]
    most = middle * (1 + type(middle)(shift) / 10**6)
    workload = {**JOB, "limits": {"budget": f"{most:f} USD"}}
    answer = plan(question(ask, workload, lists.of(2_000)[0]))
    assert answer.possible == sum(is_within(question(ask, workload, rows), p) for p in every)


def test_an_estimator_that_is_kept_gives_the_same_answer(ask: Ask, lists: Lists) -> None:
    asked = question(ask, with_budget(JOB, "9 USD"), lists.of(2_000)[0])
    estimator = Estimator(asked)
    first, second = (plan(asked, estimator) for _ in range(2))
    assert first == second == plan(asked)


def test_an_estimator_of_another_question_is_refused(ask: Ask, lists: Lists) -> None:
    offers = lists.of(2_000)[0]
    with pytest.raises(ValueError, match="another question"):
        plan(question(ask, JOB, offers), Estimator(question(ask, STOPPING, offers)))


def test_by_time_the_cheapest_of_the_soonest_come_first(ask: Ask, lists: Lists) -> None:
    """As many offers are equally fast as there are of one shape: their cost decides, not their place in the list."""
    answer = plan(question(ask, JOB, lists.of(20_000)[0], Rank.TIME, limit=5))
    assert len({slowness(p) for p in answer.plans}) == 1
    costs = [p.cost.likely.amount for p in answer.plans]
    assert costs == sorted(costs)
