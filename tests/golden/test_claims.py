"""The articles' claims: rackrate's live answers, as docs/claims.md prints them, hold the right values."""

import csv
from pathlib import Path

import pytest
from tools.claims import answer, known

from rackrate.facts.bundled import claims

ROWS = list(csv.DictReader(Path(__file__).with_name("claims.csv").read_text("utf-8").splitlines()))
MUST_BE_SHOWN = [
    "C01",
    "C02",
    "C03",
    "C04",
    "C05",
    "C06",
    "C08",
    "C09",
    "C10",
    "C11",
    "C14",
    "C15",
    "C16",
    "C17",
    "C18",
    "C19",
    "C21",
    "C22",
    "C23",
    "C24",
    "C25",
    "C30",
    "C31",
    "C36",
    "C45",
    "C46",
    "C49",
    "C52",
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['claim']}-{row['value']}" for row in ROWS])
def test_the_live_answer_is_the_right_one(row):
    """Whole numbers above zero have an absolute tolerance in counts, other numbers a relative one."""
    found = answer(row["claim"]).values[row["value"]]
    expected, tolerance = row["expected"], row["tolerance"]
    if isinstance(found, bool):
        assert str(found).lower() == expected
    elif not tolerance:
        assert found == expected
    elif float(tolerance) >= 1:
        assert float(found) == pytest.approx(float(expected), abs=float(tolerance))
    else:
        assert float(found) == pytest.approx(float(expected), rel=float(tolerance), abs=0)


def test_every_claim_that_plan_fit_or_gpu_can_show_is_shown():
    assert set(MUST_BE_SHOWN) <= set(known()) <= {claim.id for claim in claims()}


@pytest.mark.parametrize("claim", known())
def test_an_answer_says_what_to_run_and_ends_as_a_sentence(claim):
    shown = answer(claim)
    assert shown.text.endswith(".")
    assert all(command.startswith(("rackrate ", "python -m tools.claims")) for command in shown.commands)
    assert shown.commands


# ---------------------------------------------------------------- claims whose answer moves with the offers


def test_idle_memory_is_priced_by_its_share_of_the_card():
    shown = answer("C21")
    assert 0 < shown.number("fraction") < 1
    assert shown.number("idle_cost") == pytest.approx(shown.number("cost") * shown.number("fraction"), rel=1e-4)


def test_a_small_model_idles_most_of_an_a40_and_pretraining_takes_years():
    shown = answer("C11")
    # 0.5B in 16 bits and one short request: about 3 GiB of 41.
    assert shown.number("idle_fraction") > 0.85
    # 6 x 6.74e9 x 2e12 FLOP at 8 x 149.7 TFLOPS: 782 days at the peak, which no run reaches.
    assert 782 < shown.number("days") < 782 / 0.2


def test_the_cheapest_gb_hour_is_a_matter_of_the_offers():
    values = answer("C12").values
    assert set(values) == {"a40", "l40s", "a6000", "a100-sxm4-80"}
    assert all(0.001 < float(price) < 0.2 for price in values.values())


def test_80_gb_seldom_costs_1_5_to_2_2_times_40_gb():
    ratios = [float(ratio) for ratio in answer("C29").values.values()]
    assert len(ratios) >= 5
    assert all(0.5 < ratio < 4 for ratio in ratios)
    assert min(ratios) < 1.5  # so the claim is not a rule


def test_disk_and_traffic_do_not_add_a_fifth_to_a_fine_tune():
    shown = answer("C32")
    assert shown.number("plans") >= 5
    assert 0 <= shown.number("least") <= shown.number("middle") <= shown.number("most") < 0.2


def test_the_second_card_over_pcie_gives_less_than_over_nvswitch():
    shown = answer("C37")
    assert 1 < shown.number("gain_pcie") < shown.number("gain_nvswitch") < 4
    assert shown.number("two_small_over_one_large") > 1  # the bandwidth of two cards, less what the link costs
    assert shown.number("two_small_over_one_large") < 2 * 1555 / 1935


def test_beyond_a_pair_the_a40_gains_less_than_its_cards():
    assert 1 < answer("C07").number("gain_8_over_2") < 4


def test_most_providers_bill_in_steps_below_an_hour():
    shown = answer("C28")
    below = shown.number("a second") + shown.number("up to a minute")
    assert below > shown.number("an hour") > 0


def test_the_crossover_comes_after_the_40_gb_card_is_full():
    """Its cache holds 3 full sequences; while both cards take all requests, the cheaper hour wins."""
    assert 3 < answer("C31").number("crossover_requests") <= 15


def test_where_prompts_are_long_and_answers_short_arithmetic_decides():
    """The dense peaks are the same, so that the 80 GB card is dearer or about as dear (prices differ by 1.8)."""
    assert answer("C31").number("full_cache_of_prompts_80_over_40") > 0.9


def test_bert_with_fused_attention_takes_less_than_with_stored_scores():
    shown = answer("C45")
    # 24 layers x 4 x 16 heads x 512 x 512 scores, at least 4 bytes each: 1.6 GB.
    assert shown.number("fp32_reserved_bytes") - shown.number("fused_reserved_bytes") > 1.6e9


def test_mixed_precision_is_faster_by_up_to_the_ratio_of_the_peaks():
    assert 2 < answer("C52").number("speed_ratio") <= 312 / 19.5
