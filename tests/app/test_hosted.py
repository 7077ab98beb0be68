"""Hosted APIs beside plans and models: documents, the user's own prices, and what is refused."""

from datetime import date
from decimal import Decimal

import pytest

from rackrate import api
from rackrate.app.suggest import words

AT = date(2026, 11, 30)
LLAMA = "meta-llama/Llama-2-13b-hf"
SERVICE = {"model": LLAMA, "task": "inference", "precision": "fp16"}
SERVING = {"requests_per_s": 0.5, "prompt_tokens": 1500, "output_tokens": 300, "context_tokens": 4096}
NEEDED = "provider,model,input_per_million,output_per_million,seen_at"


def ask(model=LLAMA, use=None, limits=None, **serving):
    job = SERVICE | {"model": model, "serving": SERVING | serving, "use": use or {}, "limits": limits or {}}
    return api.plan(job, limit=3, at=AT)


def price(**cells):
    """A file with one own price, changed by ``cells``."""
    row = {
        "provider": "our deal",
        "model": "llama-2-13b-chat",
        "input_per_million": "0.1",
        "output_per_million": "0.2",
        "seen_at": "2026-11-01",
    } | cells
    return {"hosted_prices.csv": f"{','.join(row)}\n{','.join(row.values())}\n"}


# ---------------------------------------------------------------- plans


def test_a_bundled_price_by_hand():
    """Requests a month x 1,800 tokens at openrouter's 0.22 USD a million, in and out."""
    hosted = ask(use={"hours_per_day": 10}).hosted
    first = hosted.prices[0]
    assert (first.price.provider, first.price.match) == ("openrouter", "tuned")
    assert (first.price.input_per_million.likely, first.price.output_per_million.likely) == ("0.22", "0.22")
    assert hosted.requests.likely == 0.5 * 10 * 3600 * 30
    assert Decimal(first.cost.likely) == Decimal("213.84")
    assert first.cost.low == first.cost.high == first.cost.likely
    assert hosted.compared == "openrouter:meta-llama/llama-2-13b-chat"
    assert "openrouter.ai" in first.price.source
    assert first.price.seen_at == "2026-11-30"


def test_at_the_break_even_of_the_document_both_cost_the_same():
    found = ask()
    best = found.hosted.prices[0]
    tokens = best.break_even.tokens_per_day.likely * 30
    assert tokens * float(best.per_million_tokens.likely) / 1e6 == pytest.approx(float(found.plans[0].cost.likely))
    assert [one.offer_id for one in found.hosted.plans] == [plan.offer_id for plan in found.plans]
    assert found.hosted.plans[0].break_even == best.break_even


def test_a_price_by_the_hour_of_the_day_is_a_range_unless_the_service_runs_all_day():
    """deepseek-reasoner: 0.55 in and 2.19 out for 16 hours of the day, 0.135 and 0.55 for 8."""
    day, night = Decimal("0.55"), Decimal("0.135")

    def reasoner(hours):
        found = ask(use={"hours_per_day": hours}, hosted="deepseek-reasoner").hosted
        return next(one.price for one in found.prices if one.price.provider == "deepseek")

    always, office = reasoner(24).input_per_million, reasoner(10).input_per_million
    assert Decimal(always.likely) == Decimal(office.likely) == ((2 * day + night) / 3).quantize(Decimal("0.000001"))
    assert (always.low, always.high) == (always.likely, always.likely)
    assert (Decimal(office.low), Decimal(office.high)) == (night, day)
    assert "time_of_day" in reasoner(24).conditions


def test_a_price_by_the_length_of_the_prompt_is_that_of_the_tier(own):
    own(price(input_per_million="0.1|1000:0.15|3000:0.9"))
    first = ask(context_tokens=1800).hosted.prices[0]
    assert (first.price.provider, first.price.own, first.price.conditions) == ("our deal", True, ["prompt_length"])
    assert first.price.input_per_million.likely == first.price.input_per_million.high == "0.15"
    longer = ask().hosted.prices[0]  # prompts of up to 4096 - 300 tokens come up
    assert (longer.price.input_per_million.likely, longer.price.input_per_million.high) == ("0.15", "0.9")
    assert Decimal(longer.cost.likely) < Decimal(longer.cost.high)


def test_a_model_that_nobody_sells_names_others():
    hosted = ask("Qwen/Qwen2.5-14B-Instruct").hosted
    assert (hosted.prices, hosted.compared, hosted.plans) == ([], None, [])
    assert {one.match for one in hosted.others} == {"other"}
    assert "Qwen/Qwen3-14B" in {one.model for one in hosted.others}


def test_a_job_is_held_against_batch_prices():
    job = SERVICE | {
        "serving": {"requests": "10k", "hosted": "mistral-large-4", "prompt_tokens": 1000, "output_tokens": 100}
    }
    prices = {one.price.provider: one for one in api.plan(job, at=AT).hosted.prices}
    assert prices["mistral"].price.conditions == ["batch"]
    assert Decimal(prices["mistral"].cost.likely) == Decimal("4.55")  # 10k x (1000 x 0.35 + 100 x 1.05) / 10^6
    before = {one.price.provider: one for one in api.plan(job, at=date(2026, 10, 21)).hosted.prices}
    assert Decimal(before["mistral"].cost.likely) == Decimal("8.89")  # 0.68 and 2.09 from 2026-10-20


def test_training_and_no_wish_for_it_have_none():
    assert ask(hosted="None").hosted is None
    assert api.plan({"model": LLAMA, "task": "lora"}, at=AT).hosted is None


def test_without_a_plan_prices_stand_alone():
    found = ask(limits={"gpus": ["t4"], "gpu_counts": [1]})
    assert not found.plans
    assert found.hosted.prices[0].cost is not None
    assert found.hosted.prices[0].break_even is None
    assert found.hosted.plans == []


def test_a_hosted_model_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(api.Refused) as refused:
        ask(hosted="gpt-4o-mni")
    [finding] = refused.value.findings
    assert (finding.code, finding.observed) == ("unknown_name", "gpt-4o-mni")
    assert "gpt-4o-mini" in finding.action
    assert finding.observed not in words("hosted_model")
    assert "gpt-4o-mini" in words("hosted_model")


# ---------------------------------------------------------------- models


def test_a_model_lists_its_prices_the_surest_first():
    [model] = api.model("deepseek-ai/DeepSeek-V3", at=AT).models
    assert [one.match for one in model.hosted] == sorted(
        (one.match for one in model.hosted), key=["same", "tuned", "unclear"].index
    )
    assert {"same", "unclear"} <= {one.match for one in model.hosted}
    assert not any(each.hosted for each in api.model(at=AT).models)


# ---------------------------------------------------------------- own prices


def test_an_own_price_replaces_the_bundled_one_of_the_same_model_and_provider(own):
    bundled = ask().hosted.prices
    here = own(price(provider="OpenRouter", model="meta-llama/llama-2-13b-chat", source="contract"))
    assert here.findings == ()
    found = ask().hosted.prices
    assert [one.price.provider for one in found] == ["OpenRouter", *(one.price.provider for one in bundled[1:])]
    assert (found[0].price.own, found[0].price.source) == (True, "own: contract")


def test_an_own_model_is_chosen_by_its_name(own):
    own(price(model="house-model", currency="CNY"))
    [one] = ask(hosted="House-Model").hosted.prices
    assert (one.price.match, one.price.input_per_million.currency, one.cost.currency) == ("chosen", "CNY", "USD")


def test_an_own_rate_makes_a_currency_known(own):
    files = price(currency="TWD") | {"exchange_rates.csv": "base,currency,per_base,on\nUSD,TWD,32,2026-11-01\n"}
    assert own(files).findings == ()
    assert ask().hosted.prices[0].price.input_per_million.currency == "TWD"


@pytest.mark.parametrize(
    ("cells", "code", "column", "says"),
    [
        ({"input_per_million": "0.1 USD"}, "bad_value", "input_per_million", "without currency"),
        ({"input_per_million": "-1"}, "bad_value", "input_per_million", ""),
        ({"input_per_million": ""}, "missing_value", "input_per_million", "fill it in"),
        ({"input_per_million": "0", "output_per_million": "0"}, "out_of_bounds", "output_per_million", "what you pay"),
        ({"output_per_million": "2|5"}, "bad_value", "output_per_million", ""),
        ({"output_per_million": "200000"}, "out_of_bounds", "output_per_million", "unit"),
        ({"currency": "TWD"}, "unknown_name", "currency", ""),
        ({"processing": "bacth"}, "unknown_name", "processing", "batch"),
        ({"state": "gone"}, "unknown_name", "state", "deprecated"),
        ({"hours_utc": "9 to 5"}, "bad_value", "hours_utc", "00:30-16:30"),
        ({"effective_from": "soon"}, "bad_value", "effective_from", "2026-10-01"),
        ({"context_tokens": "4k"}, "bad_value", "context_tokens", ""),
        ({"seen_at": ""}, "missing_value", "seen_at", "fill it in"),
    ],
)
def test_a_fault_is_told_with_file_row_and_column(own, cells, code, column, says):
    own(price(**cells))
    [problem] = api.check_facts(at=AT).problems
    assert (problem.code, problem.subject) == (code, f"hosted_prices.csv:2 {column}")
    assert says in f"{problem.expected} {problem.action}"
    assert ask().hosted.prices[0].price.provider == "openrouter"


def test_a_column_that_is_not_known_names_the_nearest(own):
    own({"hosted_prices.csv": f"{NEEDED},input_per_milion\nx,y,1,1,2026-11-01,1\n"})
    [problem] = api.check_facts(at=AT).problems
    assert (problem.code, problem.subject) == ("unknown_key", "hosted_prices.csv:1 input_per_milion")
    assert "input_per_million" in problem.action


def test_a_file_that_is_nearly_called_so_is_told(own):
    own({"hosted-prices.csv": f"{NEEDED}\nx,y,1,1,2026-11-01\n"})
    [problem] = api.check_facts(at=AT).problems
    assert problem.code == "unknown_name"
    assert "hosted_prices.csv" in problem.action


# ---------------------------------------------------------------- facts show


def test_facts_show_the_prices_of_a_model_and_which_of_two_counts(own):
    def told():
        found = api.show_facts("meta-llama/Llama-2-13b-hf", at=AT).facts
        return {(f.quantity, f.value, f.used, f.step) for f in found if f.quantity.startswith("hosted ")}

    bundled = told()
    assert ("hosted input at openrouter", "0.22", True, "only") in bundled
    assert all(used for _, _, used, _ in bundled)
    own(price(provider="openrouter", model="meta-llama/llama-2-13b-chat"))
    with_own = told()
    assert ("hosted input at openrouter", "0.1", True, "own") in with_own
    assert ("hosted output at openrouter", "0.2", True, "own") in with_own
    assert ("hosted input at openrouter", "0.22", False, "own") in with_own
    assert ("hosted input at together", "0.225", True, "only") in with_own


def test_facts_show_the_hours_in_which_a_price_holds():
    found = api.show_facts("deepseek-ai/DeepSeek-V3", at=AT).facts
    said = {f.value: f.condition for f in found if f.quantity == "hosted input at deepseek"}
    assert said["0.27"].endswith(", 00:30 to 16:30 UTC")
    assert said["0.135"].endswith(", at other hours")
