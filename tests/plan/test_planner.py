"""The planner: its answer is the one that pricing everything exactly would give."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.build import JOB, SERVICE, offer

from rackrate.money import Money
from rackrate.offers.offer import Offer, Term
from rackrate.plan.answer import Rank, Reason
from rackrate.plan.filters import KEPT, exclude
from rackrate.plan.machines import UTILISATION_AT_MOST
from rackrate.plan.outcomes import estimate_sets
from rackrate.plan.planner import plan
from rackrate.plan.pricing import priced_plan
from rackrate.plan.question import Question
from rackrate.plan.ranking import frontier, ranked
from rackrate.plan.shapes import Estimator

Ask = Callable[..., Question]
CARDS = ("a40", "a100-pcie-40", "a100-sxm4-80", "rtx4090", "t4", "rtx3060-12", "h100-sxm5-80")
TERMS = (("hour", "1", False), ("day", "24", True), ("month", "730", True))
PROVIDERS = ("aws", "runpod", "AutoDL", "somewhere", "lambda")


@st.composite
def offers(draw: st.DrawFn) -> list[Offer]:
    count = draw(st.integers(1, 12))
    made = []
    for number in range(count):
        unit, hours, prepaid = draw(st.sampled_from(TERMS))
        price = draw(st.decimals(min_value="0.01", max_value="40", places=2)) * Decimal(hours)
        made.append(
            offer(
                number,
                draw(st.sampled_from(CARDS)),
                str(price),
                provider=draw(st.sampled_from(PROVIDERS)),
                gpus=draw(st.sampled_from([1, 2, 4])),
                term=Term(unit=unit, hours=Decimal(hours), prepaid=prepaid),
                interruptible=draw(st.booleans()),
            )
        )
    return made


def exhaustive(question: Question) -> list:  # type: ignore[type-arg]
    """Every offer that passes the filters and has estimates, priced exactly."""
    codes = exclude(question).codes
    wanted = np.unique(question.offers.shape_set[codes == KEPT]).tolist()
    outcomes = estimate_sets(Estimator(question), question.offers.shape_sets, wanted)
    rows = [i for i in np.flatnonzero(codes == KEPT) if int(question.offers.shape_set[i]) in outcomes.estimates]
    return [
        priced_plan(question, question.offers.offer(int(i)), outcomes.estimates[int(question.offers.shape_set[i])])
        for i in rows
    ]


@given(offers(), st.sampled_from(list(Rank)), st.integers(1, 5))
def test_the_best_plans_are_those_of_pricing_everything(ask: Ask, some: list[Offer], rank: Rank, limit: int) -> None:
    for job in (JOB, SERVICE):
        question = ask(job, some, rank=rank, limit=limit)
        expected = ranked(exhaustive(question), rank)[:limit]
        assert [(p.offer.id, p.cost.likely) for p in plan(question).plans] == [
            (p.offer.id, p.cost.likely) for p in expected
        ]


@given(offers())
def test_the_frontier_is_that_of_pricing_everything(ask: Ask, some: list[Offer]) -> None:
    question = ask(JOB, some)
    expected = frontier(exhaustive(question))
    found = plan(question).frontier
    assert [(p.cost.likely.amount, p.hours.likely) for p in found] == [
        (p.cost.likely.amount, p.hours.likely) for p in expected
    ]


def test_of_equal_cost_only_the_sooner_is_on_the_frontier(ask: Ask) -> None:
    """A service costs the same on any card at one price."""
    answer = plan(ask(SERVICE, [offer(1, "a100-sxm4-80", "2"), offer(2, "h100-sxm5-80", "2")]))
    assert [p.offer.id for p in answer.frontier] == ["o2"]


def test_a_near_miss_would_be_in_time(ask: Ask) -> None:
    slow, fast = offer(1, "a40", "0.1"), offer(2, "h100-sxm5-80", "3")
    hours = [plan(ask(JOB, [each])).plans[0].hours.likely for each in (slow, fast)]
    limits = {"providers": ["aws"], "deadline": f"{sum(hours) / 2} h"}
    group = plan(ask({**JOB, "limits": limits}, [slow, fast])).rejected[0]
    assert (group.reason, group.count) == (Reason.PROVIDER, 2)
    assert group.nearest is not None
    assert group.nearest.offer.id == "o2"


def test_a_near_miss_would_be_within_the_budget(ask: Ask) -> None:
    """By the hour the month's contract is cheaper, but a month of it is over the budget."""
    limits = {"providers": ["aws"], "budget": "100 USD"}
    month = offer(1, "a40", "400", term=Term(unit="month", hours=Decimal(730), prepaid=True))
    group = plan(ask({**JOB, "limits": limits}, [month, offer(2, "a40", "1")])).rejected[0]
    assert group.reason is Reason.PROVIDER
    assert group.nearest is not None
    assert group.nearest.offer.id == "o2"


def test_a_near_miss_is_within_the_budget_with_its_disk(ask: Ask) -> None:
    """The cheaper by the hour bills a large disk on top, the other is not known to."""
    job = {**JOB, "use": {"disk": "5 TB"}}
    dear, cheap = offer(1, "a40", "1", provider="aws"), offer(2, "a40", "1.1")
    most = plan(ask(job, [cheap])).plans[0].cost.likely.amount * Decimal("1.1")
    assert plan(ask(job, [dear])).plans[0].cost.likely.amount > most
    limits = {"providers": ["gcp"], "budget": f"{most:.2f} USD"}
    group = plan(ask({**job, "limits": limits}, [dear, cheap])).rejected[0]
    assert group.reason is Reason.PROVIDER
    assert group.nearest is not None
    assert group.nearest.offer.id == "o2"


@given(offers(), st.decimals(min_value="1", max_value="300", places=0), st.integers(1, 100))
def test_every_offer_is_a_plan_or_counted_under_one_reason(
    ask: Ask, some: list[Offer], budget: Decimal, deadline: int
) -> None:
    limits = {"budget": f"{budget} USD", "deadline": f"{deadline} h"}
    answer = plan(ask({**JOB, "limits": limits}, some, limit=100))
    assert len(answer.plans) == answer.possible
    assert answer.possible + sum(group.count for group in answer.rejected) == answer.considered == len(some)
    assert all(p.cost.likely <= Money(budget, "USD") for p in answer.plans)
    assert all(p.hours.likely <= deadline for p in answer.plans)


@given(offers())
def test_a_higher_budget_never_loses_a_plan(ask: Ask, some: list[Offer]) -> None:
    counts = [
        plan(ask({**JOB, "limits": {"budget": f"{most} USD"}}, some, limit=100)).possible for most in (5, 50, 500, 5000)
    ]
    assert counts == sorted(counts)


def test_the_same_question_has_the_same_answer(ask: Ask) -> None:
    some = [offer(n, "a40", "1.00") for n in range(5)]
    assert [p.offer.id for p in plan(ask(JOB, some)).plans] == [p.offer.id for p in plan(ask(JOB, some[::-1])).plans]


def test_no_plan_is_an_answer_with_the_nearest_miss_and_a_change(ask: Ask) -> None:
    answer = plan(ask({**JOB, "limits": {"deadline": "1 h"}}, [offer(1, "a40", "1"), offer(2, "t4", "0.3")]))
    assert not answer.plans
    late = next(g for g in answer.rejected if g.reason is Reason.DEADLINE)
    assert late.nearest is not None
    assert late.nearest.change is not None
    assert late.nearest.change.knob == "limits.deadline"


def test_what_does_not_fit_says_by_how_much_and_what_would_help(ask: Ask) -> None:
    big = {"model": "meta-llama/Llama-2-7b-hf", "task": "full_finetune", "training": {"tokens": "1M"}}
    answer = plan(ask(big, [offer(1, "a100-sxm4-80", "2")]))
    group = answer.rejected[0]
    assert (group.reason, group.count) == (Reason.DOES_NOT_FIT, 1)
    assert group.nearest is not None
    assert "GiB" in group.nearest.observed
    assert group.nearest.change is not None


@pytest.mark.parametrize(
    ("limits", "given", "reason"),
    [
        ({"providers": ["aws"]}, {}, Reason.PROVIDER),
        ({"exclude_providers": ["somewhere"]}, {}, Reason.PROVIDER),
        ({"regions": ["eu-west"]}, {}, Reason.REGION),
        ({"regions": ["eu-west"]}, {"region": ""}, Reason.REGION_UNKNOWN),
        ({"markets": ["spot"]}, {}, Reason.MARKET),
        ({}, {"interruptible": True}, Reason.INTERRUPTIBLE),
        ({"gpus": ["t4"]}, {}, Reason.CARD_NOT_ASKED),
        ({"require": ["fp8_compute"]}, {}, Reason.CARD_PROPERTY),
        ({"vendors": ["AMD"]}, {}, Reason.CARD_NOT_ASKED),
        ({"gpu_counts": [2]}, {}, Reason.GPU_COUNT),
        ({"max_gpus": 1}, {"gpus": 2}, Reason.GPU_COUNT),
        ({}, {"cards": ()}, Reason.CARD_UNKNOWN),
        ({}, {"price": "0"}, Reason.PRICE_INVALID),
        ({}, {"excludes": ("host",)}, Reason.PRICE_INCOMPLETE),
        ({}, {"commitment_unknown": True}, Reason.COMMITMENT_UNKNOWN),
        ({}, {"currency": "XAU"}, Reason.NO_RATE),
        ({}, {"cards": ("k80",)}, Reason.ENGINE_UNSUPPORTED),
        ({"budget": "1 USD"}, {"price": "9"}, Reason.BUDGET),
    ],
)
def test_each_test_gives_its_reason(
    ask: Ask, limits: dict[str, object], given: dict[str, object], reason: Reason
) -> None:
    answer = plan(ask({**JOB, "limits": limits}, [offer(1, "a40", **({"price": "1"} | given))]))
    assert [(g.reason, g.count) for g in answer.rejected] == [(reason, 1)]


def test_an_offer_of_an_unclear_card_covers_every_card_it_can_be(ask: Ask) -> None:
    unclear = offer(1, "a100-pcie-40", "1", cards=("a100-pcie-40", "a100-sxm4-80"))
    both = plan(ask(JOB, [unclear])).plans[0]
    each = [plan(ask(JOB, [offer(1, card, "1")])).plans[0] for card in unclear.cards]
    assert both.hours.low == min(p.hours.low for p in each)
    assert both.hours.high == max(p.hours.high for p in each)
    assert both.headroom_bytes == min(p.headroom_bytes for p in each)
    assert any(w.code == "ambiguous_card" for w in both.warnings)


def test_idle_memory_is_named_with_its_price(ask: Ask) -> None:
    small = {**JOB, "model": "Qwen/Qwen2.5-0.5B"}
    best = plan(ask(small, [offer(1, "h100-sxm5-80", "3")])).plans[0]
    assert best.idle.fraction > 0.5
    assert best.idle.cost.amount == pytest.approx(
        best.cost.likely.amount * Decimal(best.idle.fraction), rel=Decimal("1e-5")
    )
    assert any(w.code == "oversized" for w in best.warnings)


@pytest.mark.parametrize("load", [0.01, 2.0, 6.0])
def test_a_service_rents_the_fewest_machines_that_carry_its_load(ask: Ask, load: float) -> None:
    busy = {**SERVICE, "serving": {**SERVICE["serving"], "requests_per_s": load}}  # type: ignore[dict-item]
    best = plan(ask(busy, [offer(1, "a100-sxm4-80", "2")])).plans[0]
    speed = best.estimates[0].speed.serving
    assert speed is not None
    assert speed.capacity_requests_per_s is not None
    capacity = speed.capacity_requests_per_s.likely
    assert best.machines * capacity * UTILISATION_AT_MOST >= load * (1 - 1e-9)
    assert (best.machines - 1) * capacity * UTILISATION_AT_MOST < load
    assert best.gpus == best.machines


def test_a_load_beyond_the_most_machines_says_what_they_would_carry(ask: Ask) -> None:
    busy = {**SERVICE, "serving": {**SERVICE["serving"], "requests_per_s": 1e5}}  # type: ignore[dict-item]
    group = plan(ask(busy, [offer(1, "a100-sxm4-80", "2")])).rejected[0]
    assert group.reason is Reason.LOAD
    assert group.nearest is not None
    assert group.nearest.change is not None
    assert group.nearest.change.knob == "serving.requests_per_s"
