"""Limits: a budget per period of a job, and the machines that a deadline takes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.build import SERVICE, offer

from rackrate.money import Money
from rackrate.plan.answer import Answer, Nearest, Plan, Reason
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.machines import MACHINES_AT_MOST
from rackrate.plan.planner import plan
from rackrate.plan.question import Question

Ask = Callable[..., Question]
LONG = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "300M"}}
BATCH = {"model": "meta-llama/Llama-2-7b-hf", "serving": {"requests": "100k"}}


def with_limits(table: dict[str, Any], **limits: object) -> dict[str, Any]:
    return {**table, "limits": limits}


def nearest(answer: Answer, reason: Reason) -> Nearest:
    found = next(group.nearest for group in answer.rejected if group.reason is reason)
    assert found is not None
    return found


# ---------------------------------------------------------------- budget


def test_a_budget_per_hour_is_for_each_hour_of_a_job(ask: Ask) -> None:
    """Eight hours at 1.50 an hour are within 2 an hour, and not within 2 in all."""
    machine = [offer(1, "h100-sxm5-80", "1.50", provider="runpod")]
    (best,) = plan(ask(with_limits(LONG, budget="2 USD/hour"), machine)).plans
    assert best.hours.likely > 2
    assert best.cost.likely.amount > 2
    assert not plan(ask(with_limits(LONG, budget="2 USD"), machine)).plans


@pytest.mark.parametrize(
    ("budget", "hours", "expected"),
    [
        ("2 USD/hour", 5.0, "10"),
        ("2 USD/hour", 0.5, "2"),
        ("48 USD/day", 36.0, "72"),
        ("48 USD/day", 3.0, "48"),
        ("730.5 USD/month", 1461.0, "1461"),
        ("730.5 USD/month", 10.0, "730.5"),
        ("50 USD", 100.0, "50"),
    ],
)
def test_the_budget_of_a_job_lasts_as_many_periods_as_it_does_but_one_at_least(
    ask: Ask, budget: str, hours: float, expected: str
) -> None:
    most = budget_for_plan(ask(with_limits(LONG, budget=budget), []), hours)
    assert most is not None
    assert float(most.amount) == pytest.approx(float(expected))


def test_the_budget_of_a_service_is_for_its_horizon_whatever_the_hours(ask: Ask) -> None:
    asked = ask({**with_limits(SERVICE, budget="100 USD/month"), "use": {"horizon_days": 60.875}}, [])
    assert budget_for_plan(asked, 5.0) == budget_for_plan(asked, 5000.0) == Money(Decimal("200.0"), "USD")


def test_a_job_that_is_sooner_may_cost_less_per_period(ask: Ask) -> None:
    """The same total: the slow card spends it over more hours, and is within the budget of each."""
    fast, slow = offer(1, "h100-sxm5-80", "3", provider="runpod"), offer(2, "a40", "0.9", provider="runpod")
    both = {p.offer.id: p for p in plan(ask(LONG, [fast, slow])).plans}
    per_hour = {name: float(p.cost.likely.amount) / p.hours.likely for name, p in both.items()}
    assert per_hour["o1"] > 2 > per_hour["o2"]
    answer = plan(ask(with_limits(LONG, budget="2 USD/hour"), [fast, slow]))
    assert [p.offer.id for p in answer.plans] == ["o2"]
    near = nearest(answer, Reason.BUDGET)
    assert near.offer.id == "o1"
    assert near.cost == both["o1"].cost.likely
    assert near.limit == str(Money(Decimal(2 * both["o1"].hours.likely), "USD"))


def test_what_is_over_the_budget_by_least_is_the_nearest_not_the_cheapest(ask: Ask) -> None:
    """Per hour it takes a smaller change to afford the slow card, though it costs more in all."""
    fast, slow = offer(1, "h100-sxm5-80", "6", provider="runpod"), offer(2, "a40", "2.2", provider="runpod")
    both = {p.offer.id: p.cost.likely for p in plan(ask(LONG, [fast, slow])).plans}
    assert both["o1"] < both["o2"]
    assert nearest(plan(ask(with_limits(LONG, budget="2 USD/hour"), [fast, slow])), Reason.BUDGET).offer.id == "o2"
    assert nearest(plan(ask(with_limits(LONG, budget="2 USD"), [fast, slow])), Reason.BUDGET).offer.id == "o1"


@given(st.lists(st.tuples(st.sampled_from(["a40", "h100-sxm5-80", "rtx4090"]), st.integers(10, 900)), min_size=1))
def test_a_budget_per_hour_keeps_what_costs_no_more_per_hour(ask: Ask, some: list[tuple[str, int]]) -> None:
    offers = [offer(n, card, f"{cents / 100}", provider="runpod") for n, (card, cents) in enumerate(some)]

    def per_hour(found: Plan) -> float:
        return float(found.cost.likely.amount) / max(1.0, found.hours.likely)

    every = plan(ask(LONG, offers, limit=100)).plans
    kept = plan(ask(with_limits(LONG, budget="3 USD/hour"), offers, limit=100)).plans
    assert {p.offer.id for p in kept} == {p.offer.id for p in every if per_hour(p) <= 3}


# ---------------------------------------------------------------- deadline


def test_a_deadline_takes_no_more_machines_than_a_plan_rents(ask: Ask) -> None:
    machine = [offer(1, "h100-sxm5-80", "2")]
    free = plan(ask(BATCH, machine)).plans[0]
    limit = free.estimates[0].startup_hours.likely + 1.05 * free.estimates[0].work_hours.likely / MACHINES_AT_MOST
    best = plan(ask(with_limits(BATCH, deadline=f"{limit} h"), machine)).plans[0]
    assert best.machines == MACHINES_AT_MOST
    assert best.hours.likely <= limit < best.hours.high
    assert "deadline_at_risk" in {w.code for w in best.warnings}


def test_what_misses_the_deadline_says_when_all_machines_together_finish(ask: Ask) -> None:
    """Text and limit are of the same quantity: the observed time is longer than the deadline that it misses."""
    machine = [offer(1, "h100-sxm5-80", "2")]
    near = nearest(plan(ask(with_limits(BATCH, deadline="6 min"), machine)), Reason.DEADLINE)
    assert near.change is not None
    again = plan(ask(with_limits(BATCH, deadline=near.change.after), machine)).plans[0]
    assert again.machines == MACHINES_AT_MOST
    assert near.observed == f"{again.hours.likely * 60:.0f} min"
    assert (near.limit, again.hours.likely > 0.1) == ("6 min", True)


@given(st.integers(4, 600))
def test_a_later_deadline_never_loses_a_plan_nor_takes_more_machines(ask: Ask, minutes: int) -> None:
    machine = [offer(1, "h100-sxm5-80", "2")]
    sooner, later = (plan(ask(with_limits(BATCH, deadline=f"{m} min"), machine)).plans for m in (minutes, minutes + 20))
    assert len(sooner) <= len(later)
    if sooner:
        assert later[0].machines <= sooner[0].machines
        assert sooner[0].hours.likely * 60 <= minutes


# ---------------------------------------------------------------- machines of an unclear card


@pytest.mark.parametrize(
    "asked",
    [
        with_limits(BATCH, deadline="1 h"),
        {"model": "meta-llama/Llama-2-7b-hf", "serving": {"requests_per_s": 12.0}},
    ],
)
def test_as_many_machines_are_billed_as_are_rented(ask: Ask, asked: dict[str, Any]) -> None:
    """The cards that an offer can be may need different numbers of machines: one of them stands for all."""
    unclear = offer(1, "a40", "1", cards=("a40", "h100-sxm5-80"), provider="runpod")
    best = plan(ask(asked, [unclear])).plans[0]
    needed = {e.shape.accelerator: e.machines for e in best.estimates}
    assert needed["a40"] > needed["h100-sxm5-80"]
    assert best.machines == best.gpus == needed["a40"]
    (compute,) = (line for line in best.cost.lines if line.name == "compute")
    on_the_meter_h = best.hours.likely if "limits" in asked else 720
    assert float(compute.quantity) == pytest.approx(best.machines * on_the_meter_h, rel=1e-3)
