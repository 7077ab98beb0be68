"""The card of ``gpu``: what it says beyond facts is computed, follows its rules, and is the same on the screen."""

import re
from decimal import Decimal

import pytest
from tests.cli.ask import DAY, answer

from rackrate import api
from rackrate.cli.gpu_words import BECAUSE, HOW, NO_RESULT, QUANTITIES, RESULTS, SIZES, WORKS
from rackrate.facts import bundled
from rackrate.facts.suits import suits

ONE = ("a40", "h100-sxm5-80", "p40", "rtx4090-48-mod", "tpu-v7x")
PAIR = ("gpu", "a40", "a100-sxm4-80")


def card(name):
    (gpu,) = answer("gpu", name, "--json").document["gpus"]
    return gpu


def text(*args):
    return " ".join(answer(*args).out.split())


# ---------------------------------------------------------------- what one card holds


@pytest.mark.parametrize("name", ["a40", "a100-pcie-40", "h100-sxm5-80", "rtx4090"])
def test_the_largest_model_fits_and_the_next_does_not_surely(name):
    for size in card(name)["sizes"]:
        job = {
            "task": size["task"],
            "engine": size["engine"],
            "precision": "bf16",
            "quantization": size["weight_format"],
            "context": size["tokens"],
            "batch": size["batch"],
            "limits": {"gpus": [name]},
        }
        fit = api.fit({**job, "model": size["largest"]["model"]})
        assert fit.verdict == "fits"
        assert fit.peak_bytes.likely / fit.usable_bytes == pytest.approx(size["largest"]["share_of_usable"])
        assert api.fit({**job, "model": size["too_small_for"]}).verdict != "fits"
        half = api.fit({**job, "model": size["half_empty"]["model"]})
        assert half.verdict == "fits"
        assert half.peak_bytes.likely / half.usable_bytes <= 0.5
        assert size["half_empty"]["params"] <= size["largest"]["params"]


def test_more_memory_holds_more():
    small, large = card("a100-pcie-40")["sizes"], card("a100-pcie-80")["sizes"]
    for one, other in zip(small, large, strict=True):
        assert one["largest"]["params"] < other["largest"]["params"]


def test_four_bits_hold_more_than_sixteen_and_adapters_more_than_a_full_fine_tune():
    sixteen, four, lora, qlora, full = (size["largest"]["params"] for size in card("a40")["sizes"])
    assert sixteen < four
    assert full < lora < qlora


def test_a_card_that_no_engine_runs_on_says_so():
    assert {size["reason"] for size in card("trainium1")["sizes"]} == {"engine_unsupported"}
    assert "no engine of the list runs on it" in text("gpu", "trainium1")


def test_the_screen_names_every_kind_of_work():
    for name in ONE:
        said = text("gpu", name)
        for kind in SIZES:
            assert f" {kind} " in said


# ---------------------------------------------------------------- what results cost


@pytest.mark.parametrize("name", ["a40", "a100-sxm4-80", "rtx4090"])
def test_a_result_costs_its_time_at_the_price_on_demand(name):
    gpu = card(name)
    for result in gpu["results"]:
        price = next(p for p in gpu["prices"] if p["offer_id"] == result["offer_id"])
        assert price["market"] in {"on_demand", "on_demand_secure", "on_demand_community", "marketplace_on_demand"}
        hours = result["per_tokens"] / result["tokens_per_s"]["likely"] / 3600
        assert float(result["cost"]) == pytest.approx(float(price["per_gpu_hour"]) * hours, rel=1e-4)
        assert Decimal(result["cost_low"]) < Decimal(result["cost"]) < Decimal(result["cost_high"])


def test_it_is_the_cheapest_of_the_prices_on_demand():
    gpu = card("a40")
    demand = [p for p in gpu["prices"] if p["market"].startswith(("on_demand", "marketplace_on_demand"))]
    cheapest = min(demand, key=lambda p: Decimal(p["per_gpu_hour"]))
    assert {result["offer_id"] for result in gpu["results"]} == {cheapest["offer_id"]}


def test_a_full_cache_is_cheaper_by_the_token_than_one_stream():
    for name in ("a40", "a100-pcie-80", "h100-sxm5-80"):
        stream, full, _ = card(name)["results"]
        assert Decimal(full["cost"]) < Decimal(stream["cost"]) / 3
        assert full["sequences"] > stream["sequences"] == 1


@pytest.mark.parametrize(
    ("name", "result", "reason"),
    [
        ("t4", 0, "does_not_fit"),
        ("p40", 0, "engine_unsupported"),
        ("ascend-910b-64", 0, "speed_unknown"),
        ("rtxpro6000-ws", 0, "no_offer"),
    ],
)
def test_a_result_without_a_cost_says_why(name, result, reason):
    found = card(name)["results"][result]
    assert (found["cost"], found["reason"]) == (None, reason)
    assert NO_RESULT[reason].format(detail=found["detail"]) in text("gpu", name)


def test_the_reference_work_is_said():
    reference = answer("gpu", "a40", "--json").document["reference"]
    assert [r["result"] for r in reference] == list(RESULTS)
    said = text("gpu", "a40")
    assert f"Reference: {reference[0]['model']}" in said
    assert f"{reference[0]['prompt_tokens']} tokens in and {reference[0]['output_tokens']} out" in said


# ---------------------------------------------------------------- suits


def test_every_rule_has_words():
    cards = bundled.load().accelerators.values()
    found = [suit for one in cards for suit in suits(one)]
    assert {suit.work for suit in found} == set(WORKS)
    assert {suit.because for suit in found} <= set(BECAUSE)


@pytest.mark.parametrize(
    ("name", "work", "verdict"),
    [
        ("a40", "fp8_arithmetic", "unsuited"),
        ("a40", "training_over_eight", "limited"),
        ("a40", "rendering", "suited"),
        ("a40", "workstation", "unsuited"),
        ("h100-sxm5-80", "fp8_arithmetic", "suited"),
        ("h100-sxm5-80", "rendering", "unsuited"),
        ("h100-sxm5-80", "training_over_eight", "suited"),
        ("p40", "half_precision", "unsuited"),
        ("rtx4090-48-mod", "unattended_runs", "unsuited"),
        ("tpu-v7x", "cuda_programs", "unsuited"),
        ("tpu-v7x", "double_precision", "unknown"),
    ],
)
def test_what_a_card_suits(name, work, verdict):
    (suit,) = [s for s in card(name)["suits"] if s["work"] == work]
    assert suit["verdict"] == verdict
    assert WORKS[work] in text("gpu", name)


@pytest.mark.parametrize(
    ("name", "verdict", "said"),
    [
        ("l4", "suited", "2 encoders, 4 decoders"),
        ("a100-sxm4-80", "limited", "5 decoders, no encoder"),
        ("a40", "unknown", "video engines unknown"),
    ],
)
def test_video_engines_are_told_where_a_source_names_them(name, verdict, said):
    assert {s["verdict"] for s in card(name)["suits"] if s["work"] == "video"} == {verdict}
    assert said in text("gpu", name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a40", "yes, on by default (takes 1/16 of GDDR memory)"),  # its reading shows it
        ("a6000", "yes, off by default (takes 1/16 of GDDR memory), as recalled"),
        ("rtx4090", "yes, off by default (takes 1/16 of GDDR memory)"),  # its driver prints Off, not N/A
        ("rtx5080", "as recalled"),
        ("rtx4090", "with FP16 sums"),
    ],
)
def test_error_correction_and_sums_are_told_apart(name, said):
    assert said in text("gpu", name)
    assert (said.endswith("as recalled")) == ("ecc" in card(name)["recalled"] and "FP16" not in said)


# ---------------------------------------------------------------- measured beside published, slices


@pytest.mark.parametrize("name", ONE)
def test_measurements_stand_beside_what_is_published(name):
    gpu, said = card(name), text("gpu", name)
    for doc in gpu["measured"]:
        assert doc["low"] <= doc["high"]
        assert doc["source"]
        if doc["published"]:
            assert doc["share_of_published"] == pytest.approx(doc["high"] / doc["published"])
        if doc["kind"] in HOW and doc["quantity"] in QUANTITIES:
            assert QUANTITIES[doc["quantity"]].split(",")[0] in said
    if not gpu["measured"]:
        assert "No measurement that is surely of this card is known." in said


def test_a_suspect_figure_is_nowhere():
    assert 40e12 not in [doc["low"] for doc in card("a40")["measured"]]
    assert [doc["high"] for doc in card("h200-sxm-141")["measured"] if doc["quantity"] == "memory_test"] == []


def test_what_slices_leave_unused():
    slices = {s["profile"]: s for s in card("a100-sxm4-80")["slices"]}
    assert slices["1g.10gb"]["memory_unused"] == pytest.approx(1 / 8)  # 7 x 10 of 80
    assert slices["1g.10gb"]["compute_unused"] == pytest.approx(0)
    assert slices["3g.40gb"]["memory_unused"] == pytest.approx(0)
    assert slices["3g.40gb"]["compute_unused"] == pytest.approx(1 / 7)
    assert slices["1g.20gb"]["at_most"] == 4
    assert card("a40")["slices"] == []
    for profile in slices:
        assert f" {profile} " in text("gpu", "a100-sxm4-80")


def test_variants_are_shown_with_their_condition():
    gpu, said = card("a100-sxm4-80"), text("gpu", "a100-sxm4-80")
    watts = {fact["value"]: fact["condition"] for fact in gpu["variants"] if fact["quantity"] == "power_limit_w"}
    assert watts == {500: "500 W variant", 275: "subsystem 147F"}
    assert "power limit 500 W: 500 W variant" in said
    p40 = {fact["condition"]: fact["value"] for fact in card("p40")["variants"]}
    assert p40["ecc off"] == 24576 * 2**20
    assert "memory total 24,576 MiB: ecc off" in text("gpu", "p40")


# ---------------------------------------------------------------- side by side


def test_ratios_are_to_the_first_card():
    first, second = answer(*PAIR, "--json").document["gpus"]
    assert first["ratios"] == []
    ratio = {r["quantity"]: r["ratio"] for r in second["ratios"]}
    assert ratio["memory_sold_gb"] == pytest.approx(80 / 48)
    assert ratio["bandwidth_bytes_per_s"] == pytest.approx(2039 / 695.8)
    assert ratio["power_limit_w"] == pytest.approx(400 / 300)
    costs = [{r["result"]: Decimal(r["cost"]) for r in gpu["results"]} for gpu in (first, second)]
    for result in RESULTS:
        assert ratio[result] == pytest.approx(float(costs[1][result] / costs[0][result]))


def test_the_columns_show_capacity_rates_power_prices_results_and_shares():
    said = text(*PAIR)
    for row in ("as sold", "bandwidth", "BF16 dense", "power limit", "on demand, card-hour", *RESULTS.values()):
        assert f" {row} " in said
    assert "80 GB HBM2e (167 %)" in said
    assert "(293 %)" in said
    assert WORKS["rendering"] in said  # for which the two differ
    assert WORKS["fp8_arithmetic"] not in said  # for which they do not


def test_the_table_for_machines_has_sizes_and_costs():
    header = answer(*PAIR, "--csv").out.splitlines()[0].split(",")
    assert {"largest_inference_16bit", "largest_full_finetune", *RESULTS} <= set(header)


def test_the_list_of_all_cards_stays_short():
    document = answer("gpu", "--json").document
    assert document["reference"] == []
    for gpu in document["gpus"]:
        assert [gpu[key] for key in ("measured", "slices", "suits", "sizes", "results", "ratios", "variants")] == [
            []
        ] * 7


def test_a_misspelt_card_is_suggested():
    ended = answer("gpu", "A100 48GB")
    assert ended.code == 2
    assert "did you mean a100-pcie-40" in ended.err


def test_meanings_are_on_the_card():
    said = text("gpu", "a40")
    assert "without 2:4 sparsity" in said
    assert re.search(r"each way one direction of a link", said)


def test_prices_are_of_the_day_asked_for():
    assert answer("gpu", "a40", "--json").document["as_of"] == DAY
