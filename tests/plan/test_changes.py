"""What a reason says would let an offer in lets it in: the question is asked again with the change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.build import JOB, SERVICE, offer

from rackrate.offers.offer import Offer, Term
from rackrate.plan.answer import Answer, Change, Nearest, Reason
from rackrate.plan.planner import plan
from rackrate.plan.question import Question

Ask = Callable[..., Question]
Asked = dict[str, Any]
LLAMA_7B, LLAMA_13B = "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-13b-hf"
LEFT_OUT = {"any", "none"}
CARDS = (
    "a40",
    "a100-pcie-40",
    "a100-sxm4-80",
    "rtx4090",
    "t4",
    "rtx3060-12",
    "h100-sxm5-80",
    "l40s",
    "mi300x-192",
    "v100-pcie-16",
)
TERMS = (("hour", "1", False), ("day", "24", True), ("month", "730", True))
REASONS_WITH_CHANGES = {
    Reason.CARD_NOT_ASKED,
    Reason.CARD_PROPERTY,
    Reason.ARITHMETIC,
    Reason.GPU_COUNT,
    Reason.PROVIDER,
    Reason.REGION,
    Reason.REGION_UNKNOWN,
    Reason.MARKET,
    Reason.ACCESS,
    Reason.ACCESS_UNKNOWN,
    Reason.INTERRUPTIBLE,
    Reason.PRICE_FROM,
    Reason.COMMITMENT_UNKNOWN,
    Reason.DOES_NOT_FIT,
    Reason.LATENCY,
    Reason.LOAD,
    Reason.DEADLINE,
    Reason.BUDGET,
}

# ---------------------------------------------------------------- a change, made as a user would make it


def with_change(asked: Asked, change: Change) -> Asked:
    """The same table with the key of ``change`` set to what it says, in place of the shorthand that set it before."""
    short = {"training.micro_batch": "batch", "serving.concurrency": "batch"}.get(change.knob, "context")
    if change.knob.endswith(("_tokens", "micro_batch", "concurrency")):
        asked = {key: held for key, held in asked.items() if key != short}
    task = re.fullmatch(r"(\w+) \((.+)\)", change.after) if change.knob == "task" else None
    if task is not None:
        return with_key(with_key(asked, "task", task[1]), "quantization", task[2])
    return with_key(asked, change.knob, None if change.after in LEFT_OUT else change.after)


def with_key(asked: Asked, path: str, value: str | None) -> Asked:
    section, _, name = path.rpartition(".")
    if not section:
        return {key: held for key, held in {**asked, name: value}.items() if held is not None}
    inner = {key: held for key, held in {**asked.get(section, {}), name: value}.items() if held is not None}
    return {**asked, section: inner}


def named(answer: Answer) -> dict[Reason, Nearest]:
    return {group.reason: group.nearest for group in answer.rejected if group.nearest and group.nearest.change}


def assert_changes_hold(ask: Ask, asked: Asked, offers: Sequence[Offer]) -> dict[Reason, Nearest]:
    found = named(plan(ask(asked, offers)))
    for reason, near in found.items():
        assert near.change is not None
        assert near.change.before != near.change.after, reason
        again = plan(ask(with_change(asked, near.change), offers, limit=len(offers)))
        costs = {p.offer.id: p.cost.likely for p in again.plans}
        assert near.offer.id in costs, (reason, near.change)
        if near.cost is not None and reason is not Reason.BUDGET:
            assert near.cost == costs[near.offer.id], (reason, near.change)
    return found


# ---------------------------------------------------------------- any question


@st.composite
def made_offers(draw: st.DrawFn) -> list[Offer]:
    made = []
    for number in range(draw(st.integers(1, 10))):
        unit, hours, prepaid = draw(st.sampled_from(TERMS))
        price = draw(st.integers(5, 1500)) / 100 * int(hours)
        first = draw(st.sampled_from(CARDS))
        made.append(
            offer(
                number,
                first,
                f"{price:.2f}",
                currency=draw(st.sampled_from(["USD", "CNY"])),
                cards=draw(st.sampled_from([(first,), (first,), (first,), tuple(sorted({first, "a40"}))])),
                provider=draw(st.sampled_from(["aws", "runpod", "AutoDL", "somewhere", "digitalocean"])),
                gpus=draw(st.sampled_from([1, 1, 2, 4, 8])),
                region=draw(st.sampled_from(["us-east", "eu-west", ""])),
                market=draw(st.sampled_from(["on_demand", "spot", "reserved_1y"])),
                term=Term(unit=unit, hours=Decimal(hours), prepaid=prepaid),
                interruptible=draw(st.sampled_from([False, False, True])),
                price_is_from=draw(st.sampled_from([False, False, False, True])),
                commitment_unknown=draw(st.sampled_from([False, False, False, True])),
            )
        )
    return made


def sometimes(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.none(), st.sampled_from(values))


shared_limits = {
    "gpus": sometimes([["a40"], ["h100-sxm5-80", "rtx4090"]]),
    "gpu_counts": sometimes([[1], [2, 4]]),
    "max_gpus": sometimes([1, 2]),
    "providers": sometimes([["aws"], ["runpod", "autodl"]]),
    "exclude_providers": sometimes([["somewhere"], ["runpod", "AutoDL"]]),
    "regions": sometimes([["us-east"], ["eu-west"]]),
    "markets": sometimes([["on_demand"], ["spot"], ["reserved"]]),
    "interruptible": st.booleans(),
    "require": sometimes([["fp8_compute"], ["min_memory_gb=40"], ["fp8_compute", "min_memory_gb=30"]]),
    "access": sometimes([["no_company_verification"], ["payment=card", "no_quota"]]),
    "vendors": sometimes([["NVIDIA"], ["AMD"]]),
    "budget": sometimes(["5 USD", "40 CNY", "2 USD/hour", "30 USD/day", "900 USD/month"]),
}
limits_of_jobs = {**shared_limits, "deadline": sometimes(["30 min", "2 h", "8 h"])}
uses = {
    "starts": sometimes([3]),
    "data_in": sometimes(["200 GB"]),
    "disk": sometimes(["900 GB"]),
    "keep_disk_days": sometimes([2, 20]),
}
trainings = {
    "tokens": st.sampled_from(["3M", "30M", "300M"]),
    "sequence_tokens": st.sampled_from([1024, 4096]),
    "micro_batch": st.sampled_from([1, 2, 16]),
    "optimizer": sometimes(["sgd"]),
    "checkpointing": sometimes(["none"]),
}
servings = {
    "prompt_tokens": st.sampled_from([200, 3000]),
    "output_tokens": st.sampled_from([1, 300]),
    "first_token_ms": sometimes([20, 200]),
    "output_token_ms": sometimes([5, 30]),
    "requests_per_s": sometimes([0.5, 20, 400]),
    "concurrency": sometimes([4, 64]),
}


def table(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Asked]:
    return st.fixed_dictionaries(dict(values)).map(lambda held: {k: v for k, v in held.items() if v is not None})


models = st.sampled_from([LLAMA_7B, LLAMA_13B, "Qwen/Qwen2.5-0.5B"])
jobs = table(
    model=models,
    task=st.sampled_from(["lora", "qlora", "full_finetune"]),
    quantization=st.none(),
    training=table(**trainings),
    use=table(**uses),
    limits=table(**limits_of_jobs),
)
services = table(
    model=models,
    precision=sometimes(["fp8", "fp8", "bf16"]),
    quantization=sometimes(["fp8", "awq-int4"]),
    serving=table(**servings),
    use=table(hours_per_day=sometimes([8]), horizon_days=sometimes([0.4, 2.5])),
    limits=table(**shared_limits),
)
batches = table(
    model=models,
    precision=sometimes(["fp8", "bf16"]),
    serving=table(requests=st.sampled_from([1000, 100_000]), output_tokens=st.sampled_from([20, 300])),
    use=table(**uses),
    limits=table(**limits_of_jobs),
)


def understood(ask: Ask, asked: Asked) -> bool:
    try:
        ask(asked, [])
    except AssertionError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(asked=st.one_of(jobs, services, batches), offers=made_offers())
def test_every_change_that_is_named_lets_its_offer_in(ask: Ask, asked: Asked, offers: list[Offer]) -> None:
    if understood(ask, asked):
        assert_changes_hold(ask, asked, offers)


# ---------------------------------------------------------------- every reason, on purpose

FULL = {"model": LLAMA_7B, "task": "full_finetune", "training": {"tokens": "1M"}}
FP8 = {**SERVICE, "precision": "fp8"}
BATCH = {"model": LLAMA_7B, "serving": {"requests": "100k"}}
SLOW = {**SERVICE, "serving": {**SERVICE["serving"], "first_token_ms": 5}}  # type: ignore[dict-item]
LOADED = {**SERVICE, "serving": {**SERVICE["serving"], "requests_per_s": 1e5}}  # type: ignore[dict-item]


def limited(asked: Asked, **limits: object) -> Asked:
    return {**asked, "limits": limits}


@pytest.mark.parametrize(
    ("asked", "given", "reason", "expected"),
    [
        (limited(JOB, gpus=["t4"]), {}, Reason.CARD_NOT_ASKED, ("limits.gpus", "a100-sxm4-80")),
        (limited(JOB, vendors=["AMD"]), {}, Reason.CARD_NOT_ASKED, ("limits.vendors", "NVIDIA")),
        (limited(JOB, require=["fp8_compute"]), {}, Reason.CARD_PROPERTY, ("limits.require", "none")),
        (
            limited(JOB, require=["fp8_compute", "min_memory_gb=40"]),
            {},
            Reason.CARD_PROPERTY,
            ("limits.require", "min_memory_gb=40"),
        ),
        (FP8, {}, Reason.ARITHMETIC, ("precision", "bf16")),
        (limited(JOB, max_gpus=1), {"gpus": 2}, Reason.GPU_COUNT, ("limits.max_gpus", "2")),
        (limited(JOB, gpu_counts=[2, 4]), {}, Reason.GPU_COUNT, ("limits.gpu_counts", "1")),
        (limited(JOB, providers=["aws"]), {}, Reason.PROVIDER, ("limits.providers", "somewhere")),
        (limited(JOB, exclude_providers=["somewhere"]), {}, Reason.PROVIDER, ("limits.exclude_providers", "none")),
        (
            limited(JOB, exclude_providers=["aws", "somewhere"]),
            {},
            Reason.PROVIDER,
            ("limits.exclude_providers", "aws"),
        ),
        (limited(JOB, regions=["eu-west"]), {}, Reason.REGION, ("limits.regions", "us-east")),
        (limited(JOB, regions=["eu-west"]), {"region": ""}, Reason.REGION_UNKNOWN, ("limits.regions", "any")),
        (limited(JOB, markets=["spot"]), {}, Reason.MARKET, ("limits.markets", "on_demand")),
        (limited(JOB, access=["payment=card"]), {}, Reason.ACCESS_UNKNOWN, ("limits.access", "any")),
        (limited(JOB, access=["no_quota"]), {"provider": "aws"}, Reason.ACCESS, ("limits.access", "any")),
        (JOB, {"interruptible": True}, Reason.INTERRUPTIBLE, ("limits.interruptible", "true")),
        (JOB, {"price_is_from": True, "market": "from"}, Reason.PRICE_FROM, ("limits.markets", "from")),
        (JOB, {"commitment_unknown": True}, Reason.COMMITMENT_UNKNOWN, ("limits.markets", "on_demand")),
        (FULL, {}, Reason.DOES_NOT_FIT, ("training.optimizer", None)),
        (SLOW, {}, Reason.LATENCY, ("serving.first_token_ms", None)),
        (LOADED, {}, Reason.LOAD, ("serving.requests_per_s", None)),
        (limited(JOB, deadline="30 min"), {}, Reason.DEADLINE, ("limits.deadline", None)),
        (limited(BATCH, deadline="6 min"), {}, Reason.DEADLINE, ("limits.deadline", None)),
        (limited(JOB, budget="1 USD"), {"price": "9"}, Reason.BUDGET, ("limits.budget", None)),
        (limited(JOB, budget="1 CNY/hour"), {"price": "9"}, Reason.BUDGET, ("limits.budget", None)),
    ],
)
def test_each_reason_names_the_setting_that_lets_the_offer_in(
    ask: Ask, asked: Asked, given: dict[str, object], reason: Reason, expected: tuple[str, str | None]
) -> None:
    found = assert_changes_hold(ask, asked, [offer(1, "a100-sxm4-80", **({"price": "1"} | given))])
    assert list(found) == [reason]
    change = found[reason].change
    assert change is not None
    assert (change.knob, expected[1] and change.after) == expected


def test_the_table_has_every_reason_that_carries_a_change() -> None:
    marks = test_each_reason_names_the_setting_that_lets_the_offer_in.pytestmark  # type: ignore[attr-defined]
    assert {case[2] for case in marks[0].args[1]} == REASONS_WITH_CHANGES


def only(ask: Ask, asked: Asked, some: Sequence[Offer], reason: Reason) -> Nearest:
    groups = {group.reason: group.nearest for group in plan(ask(asked, some)).rejected}
    found = groups[reason]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("asked", "given", "reason"),
    [
        (limited(JOB, providers=["aws"], regions=["eu-west"]), {}, Reason.PROVIDER),
        (limited(JOB, gpus=["t4"], vendors=["AMD"]), {}, Reason.CARD_NOT_ASKED),
        (limited(JOB, gpu_counts=[1], max_gpus=2), {"gpus": 4}, Reason.GPU_COUNT),
        (limited(JOB, providers=["aws"]), {"interruptible": True}, Reason.PROVIDER),
        (limited(JOB, providers=["aws"], exclude_providers=["somewhere"]), {}, Reason.PROVIDER),
        (limited(FULL, budget="0.01 USD"), {}, Reason.DOES_NOT_FIT),
        (limited(JOB, budget="0.01 USD", deadline="30 min"), {}, Reason.DEADLINE),
        (limited(JOB, budget="0.01 USD", providers=["aws"]), {}, Reason.PROVIDER),
    ],
)
def test_no_change_is_named_where_one_is_not_enough(
    ask: Ask, asked: Asked, given: dict[str, object], reason: Reason
) -> None:
    near = only(ask, asked, [offer(1, "a100-sxm4-80", "1", **given)], reason)
    assert near.offer.id == "o1"
    assert near.change is None
    assert near.cost is None


def test_a_replaced_price_that_another_filter_keeps_out_too_is_no_change_away(ask: Ask) -> None:
    same = {"provider": "runpod", "name": "one", "product": "one"}
    old, new = (offer(n, "a40", str(n), observed_on=date(2026, 11, n), **same) for n in (1, 2))
    near = only(ask, limited(JOB, providers=["aws"]), [old, new], Reason.PROVIDER)
    assert (near.offer.id, near.change is None) == ("o2", False)


def test_a_replaced_price_is_no_change_away_where_the_new_one_fails_two_filters(ask: Ask) -> None:
    same = {"provider": "runpod", "name": "one", "product": "one"}
    old = offer(1, "a40", "1", observed_on=date(2026, 11, 1), **same)
    new = offer(2, "a40", "2", observed_on=date(2026, 11, 2), interruptible=True, **same)
    near = only(ask, limited(JOB, providers=["aws"]), [old, new], Reason.PROVIDER)
    assert (near.offer.id, near.change) == ("o1", None)


def test_what_was_said_by_a_shorthand_can_change(ask: Ask) -> None:
    asked = {"model": LLAMA_7B, "task": "lora", "batch": 64, "training": {"tokens": "30M"}}
    change = assert_changes_hold(ask, asked, [offer(1, "a40", "1")])[Reason.DOES_NOT_FIT].change
    assert change is not None
    assert (change.knob, change.before) == ("training.micro_batch", "64")


def test_another_precision_is_priced_with_the_weights_that_it_has(ask: Ask) -> None:
    """FP8 weights of 13B leave room on 24 GB; in BF16, which the card computes in, they do not load."""
    small, large = offer(1, "rtx3090", "0.2"), offer(2, "a100-sxm4-80", "2")
    near = only(ask, FP8, [small, large], Reason.ARITHMETIC)
    assert near.offer.id == "o2"
    assert near.change is not None
    assert near.cost == plan(ask({**SERVICE, "precision": "bf16"}, [large])).plans[0].cost.likely


def test_what_does_not_fit_is_offered_by_the_hour_where_the_month_is_over_the_budget(ask: Ask) -> None:
    month = offer(1, "a100-sxm4-80", "700", term=Term(unit="month", hours=Decimal(730), prepaid=True))
    near = only(ask, limited(FULL, budget="50 USD"), [month, offer(2, "a100-sxm4-80", "2")], Reason.DOES_NOT_FIT)
    assert (near.offer.id, near.change is None) == ("o2", False)


def test_lora_that_does_not_fit_becomes_qlora(ask: Ask) -> None:
    tight = {"model": LLAMA_13B, "task": "lora", "training": {"sequence_tokens": 512}}
    found = assert_changes_hold(ask, tight, [offer(1, "rtx3090", "0.3")])
    change = found[Reason.DOES_NOT_FIT].change
    assert change is not None
    assert (change.knob, change.before, change.after) == ("task", "lora (bf16)", "qlora (int8)")


def test_more_cards_are_no_change_of_an_offer_with_one(ask: Ask) -> None:
    large = {"model": "meta-llama/Meta-Llama-3.1-70B", "serving": {"context_tokens": 4096}, "quantization": "bf16"}
    near = only(ask, large, [offer(1, "a100-sxm4-80", "1")], Reason.DOES_NOT_FIT)
    assert near.change is None or near.change.knob != "limits.gpu_counts"
