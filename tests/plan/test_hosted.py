"""Renting beside calling: which prices are compared, and from which load on renting is cheaper."""

from datetime import date
from decimal import Decimal

import pytest
from tests.plan.build import AT, SERVICE, offer

from rackrate.cost.hosted import request_charges
from rackrate.facts.hosted import COLUMNS, hosted_price
from rackrate.money import ExchangeRates
from rackrate.plan.answer import likely_of
from rackrate.plan.hosted import (
    Basis,
    Carried,
    Doubt,
    break_even,
    cheapest,
    comparison,
    hosted_costs,
    processing_of,
    rent_per_day,
    requests_of,
    traffic_of,
)
from rackrate.plan.hosted_models import hosted_models, others
from rackrate.plan.machines import UTILISATION_AT_MOST
from rackrate.plan.planner import plan

RATES = ExchangeRates(base="EUR", per_base={"USD": Decimal("1.2"), "CNY": Decimal(8)}, on=AT, source="a test")
BATCH_JOB = SERVICE | {"serving": {"requests": "10k", "prompt_tokens": 3000, "output_tokens": 300}}


def service(requests_per_s):
    return SERVICE | {"serving": SERVICE["serving"] | {"requests_per_s": requests_per_s}}


def hosted(provider="acme", model="llama-2-13b-chat", **cells):
    """A price, half a dollar a million tokens in and out unless ``cells`` say otherwise."""
    row = dict.fromkeys(COLUMNS, "") | {
        "provider": provider,
        "model": model,
        "currency": "USD",
        "input_per_million": "0.5",
        "output_per_million": "0.5",
        "seen_at": "2026-11-30",
        "source": "a test",
    }
    return hosted_price(row | cells)


@pytest.fixture
def planned(ask):
    """The plans for a workload on one offer, and the workload."""

    def build(table=SERVICE, card="a100-pcie-80", price="2", **given):
        question = ask(table, [offer(1, card, price, **given)])
        return plan(question).plans, question.workload

    return build


def costs_of(prices, workload, plans=()):
    models = hosted_models(prices, workload.model, AT, processing_of(workload))
    return hosted_costs(models, workload, traffic_of(workload, plans[0] if plans else None), RATES)


# ---------------------------------------------------------------- how many requests


def test_a_rate_makes_its_requests_in_the_hours_of_use(planned):
    table = service(0.5) | {"use": {"hours_per_day": 10, "horizon_days": 7}}
    plans, workload = planned(table)
    found = traffic_of(workload, plans[0])
    assert found.basis is Basis.REQUESTS_PER_S
    assert (found.count.low, found.count.likely, found.count.high) == (126_000,) * 3
    assert traffic_of(workload, None) == found


def test_users_make_as_many_requests_as_the_plan_answers(planned):
    plans, workload = planned()
    found = traffic_of(workload, plans[0])
    assert found.basis is Basis.CONCURRENCY
    assert found.count.likely == pytest.approx(plans[0].pace.likely / 300 * 30 * 86400)
    assert traffic_of(workload, None) is None


def test_a_job_has_the_requests_that_it_has(planned):
    plans, workload = planned(BATCH_JOB)
    found = traffic_of(workload, plans[0])
    assert (found.basis, found.count.likely) == (Basis.REQUESTS, 10_000)


def test_the_longest_prompt_is_what_the_context_leaves(planned):
    _, workload = planned()
    asked = requests_of(workload)
    assert (asked.prompt_tokens, asked.output_tokens, asked.longest_prompt_tokens) == (3000, 300, 4096 - 300)
    assert asked.all_day


# ---------------------------------------------------------------- costs


def test_a_job_by_hand(planned):
    plans, workload = planned(BATCH_JOB)
    [cost] = costs_of([hosted(input_per_million="0.5", output_per_million="2")], workload, plans)
    assert cost.total.likely.amount == Decimal(21)  # 10,000 x (3000 x 0.5 + 300 x 2) / 10^6
    assert cost.total.low == cost.total.high == cost.total.likely


def test_another_currency_is_converted(planned):
    _, workload = planned(BATCH_JOB)
    [cost] = costs_of([hosted(currency="CNY")], workload)
    assert cost.total.likely.currency == "USD"
    assert float(cost.total.likely.amount) == pytest.approx(10_000 * 3300 * 0.5e-6 * 1.2 / 8)


def test_a_batch_price_is_of_jobs_that_can_wait(planned):
    prices = [hosted(), hosted(input_per_million="0.25", output_per_million="0.25", processing="batch")]
    for table, amount in (
        (BATCH_JOB, "8.25"),
        (BATCH_JOB | {"limits": {"deadline": "25 h"}}, "8.25"),
        (BATCH_JOB | {"limits": {"deadline": "23 h"}}, "16.5"),
    ):
        _, workload = planned(table)
        [cost] = costs_of(prices, workload)
        assert cost.total.likely.amount == Decimal(amount)
    _, service = planned()
    [cost] = costs_of(prices, service)
    assert cost.per_request.likely.amount == Decimal("0.00165")


def test_what_is_not_comparable_is_shown_after_the_rest_and_says_why(planned):
    _, workload = planned(BATCH_JOB)
    prices = [
        hosted("long", context_tokens="2048", input_per_million="0.1"),
        hosted("old", state="deprecated", input_per_million="0.1"),
        hosted("dated", "llama-2-13b-0718", input_per_million="0.1"),
        hosted("elsewhere", currency="TWD", input_per_million="0.1"),
        hosted("dear", input_per_million="5"),
        hosted("cheap"),
        hosted("other size", "llama-2-7b-chat", input_per_million="0.1"),
    ]
    found = costs_of(prices, workload)
    assert [cost.hosted.price.provider for cost in found[:2]] == ["cheap", "dear"]
    assert {cost.hosted.price.provider: cost.doubt for cost in found[2:]} == {
        "long": Doubt.CONTEXT,
        "old": Doubt.DEPRECATED,
        "dated": Doubt.UNCLEAR,
        "elsewhere": Doubt.CURRENCY,
    }
    assert cheapest(found).hosted.price.provider == "cheap"
    assert cheapest(found[2:]) is None


def test_a_model_that_was_chosen_is_compared_whatever_its_name_says(planned):
    _, workload = planned(BATCH_JOB)
    prices = [hosted("a", "gpt-9"), hosted("b", "shop/gpt-9", state="deprecated"), hosted("c", "gpt-9-mini")]
    found = hosted_costs(hosted_models(prices, workload.model, AT, named="GPT-9"), workload, None, RATES)
    assert [(cost.hosted.price.provider, cost.hosted.match, cost.doubt) for cost in found] == [
        ("a", "chosen", None),
        ("b", "chosen", None),
    ]


def test_a_price_that_has_not_begun_is_none(planned):
    _, workload = planned()
    assert hosted_models([hosted(effective_from="2026-12-01")], workload.model, AT) == []
    assert len(hosted_models([hosted(effective_from="2026-12-01")], workload.model, date(2026, 12, 1))) == 1


def test_others_are_of_the_family_and_about_the_size(planned):
    _, workload = planned()
    prices = [
        hosted("dear", "llama-3-14b", input_per_million="9"),
        hosted("cheap", "llama-3-14b"),
        hosted("x", "llama-3-70b"),
        hosted("x", "mistral-13b"),
        hosted("x", "llama-large"),
        hosted("gone", "llama-1-13b", state="deprecated"),
    ]
    assert [(one.price.provider, one.match) for one in others(prices, workload.model, AT)] == [("cheap", "other")]


# ---------------------------------------------------------------- break-even


def test_at_the_break_even_a_service_costs_what_the_api_does(planned):
    plans, workload = planned(service(0.2) | {"use": {"hours_per_day": 8}})
    [cost] = costs_of([hosted(input_per_million="0.7", output_per_million="2")], workload, plans)
    even = break_even(plans[0], workload, cost.per_request)
    requests = even.tokens_per_day.likely / 3300 * 30
    assert requests * float(cost.per_request.likely.amount) == pytest.approx(float(plans[0].cost.likely.amount))


def test_at_the_break_even_a_job_costs_what_the_api_does(planned):
    plans, workload = planned(BATCH_JOB)
    [cost] = costs_of([hosted()], workload, plans)
    even = break_even(plans[0], workload, cost.per_request)
    requests = even.tokens_per_day.likely / 3300 * plans[0].hours.likely / 24
    assert requests * float(cost.per_request.likely.amount) == pytest.approx(float(plans[0].cost.likely.amount))
    pace = 10_000 * 3300 / plans[0].hours.likely * 24
    dearer = plans[0].cost.likely.amount > cost.total.likely.amount
    assert (even.tokens_per_day.likely > pace) == dearer


def test_the_capacity_is_that_of_all_machines_in_the_hours_of_use(planned):
    table = service(4) | {"use": {"hours_per_day": 8}}
    plans, workload = planned(table, "a100-pcie-40")
    assert plans[0].machines > 1
    [cost] = costs_of([hosted()], workload, plans)
    even = break_even(plans[0], workload, cost.per_request)
    one = likely_of(plans[0].estimates)
    each = one.speed.serving.capacity_requests_per_s.likely * UTILISATION_AT_MOST
    assert even.capacity_tokens_per_day.likely == pytest.approx(each * plans[0].machines * 8 * 3600 * 3300)
    assert even.capacity_tokens_per_day.likely >= 4 * 8 * 3600 * 3300


@pytest.mark.parametrize(("price", "carried"), [("0.01", Carried.YES), ("90", Carried.NO)])
def test_a_dear_machine_never_beats_an_api(planned, price, carried):
    plans, workload = planned(price=price)
    [cost] = costs_of([hosted()], workload, plans)
    assert break_even(plans[0], workload, cost.per_request).carried is carried


def test_between_the_ends_of_the_capacity_it_is_unclear(planned):
    plans, workload = planned()
    [cost] = costs_of([hosted()], workload, plans)
    even = break_even(plans[0], workload, cost.per_request)
    share = even.capacity_tokens_per_day.likely / even.tokens_per_day.likely
    plans, workload = planned(price=f"{2 * share:.6f}")
    assert break_even(plans[0], workload, cost.per_request).carried is Carried.UNCLEAR


def test_a_dearer_plan_breaks_even_later(planned):
    [cheap], workload = planned(price="1")
    [dear], _ = planned(price="3")
    [cost] = costs_of([hosted()], workload, [cheap])
    low, high = (break_even(one, workload, cost.per_request).tokens_per_day.likely for one in (cheap, dear))
    assert high == pytest.approx(3 * low)
    assert rent_per_day(dear, workload).likely == pytest.approx(72)


def test_every_plan_is_held_against_the_cheapest_api(planned):
    plans, workload = planned()
    costs = costs_of([hosted("dear", output_per_million="9"), hosted("cheap")], workload, plans)
    expected = break_even(plans[0], workload, request_charges(costs[0].hosted.schedule, requests_of(workload)))
    assert costs[0].hosted.price.provider == "cheap"
    assert comparison(plans, workload, costs) == {plans[0].offer.id: expected}
    assert comparison(plans, workload, costs_of([hosted(state="deprecated")], workload, plans)) == {}
