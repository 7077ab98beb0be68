"""What the tutorials and guides say in words holds: they quote numbers by their outputs, and these are the rest."""

import sys
from decimal import Decimal
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # as the scripts there find each other

from claims.asking import fit, part, plan

QUOTES = (
    "RACKRATE_FACTS=examples/two-quotes rackrate plan --model llama-2-13b --requests 1000 --prompt-tokens 512 "
    '--output-tokens 3584 --provider "first quote,second quote" --currency CNY --concurrency'
)
TERMS = 'RACKRATE_FACTS=examples/four-terms rackrate plan --provider "four terms" --currency CNY'


def serving(card, more=""):
    return fit(f"rackrate fit examples/serve-13b.toml --gpu {card} {more}".strip())


def lines(command):
    return {line.name: Decimal(line.amount) for line in plan(command).plans[0].cost.lines}


# ---------------------------------------------------------------- tune a 7B


def test_it_fits_on_24_gb_and_weights_are_most_of_it():
    answer = fit("rackrate fit examples/lora-7b.toml --gpu rtx3090")
    assert answer.verdict == "fits"
    assert part(answer, "weights") > answer.peak_bytes.likely / 2
    assert part(answer, "gradients") < part(answer, "weights") / 20
    assert answer.peak_phase == "loss"


def test_it_does_not_fit_on_10_gb_more_cards_make_it_fit_and_qlora_is_about_as_much():
    answer = fit("rackrate fit examples/lora-7b.toml --gpu rtx3080-10")
    assert answer.verdict == "does_not_fit"
    assert [change.knob for change in answer.changes] == ["task", "limits.gpu_counts"]
    assert "gptq" in answer.changes[0].after
    narrow = fit("rackrate fit examples/lora-7b.toml --gpu rtx3080-10 --task qlora")
    assert narrow.verdict != "fits"
    assert narrow.peak_bytes.likely == pytest.approx(narrow.usable_bytes, rel=0.02)
    assert narrow.peak_bytes.high > narrow.usable_bytes


def test_the_cheapest_plan_lacks_parts_and_one_of_known_rules_does_not():
    cheapest = plan("rackrate plan examples/lora-7b.toml")
    known = plan("rackrate plan examples/lora-7b.toml --provider runpod --top 1")
    assert [w.severity for w in cheapest.plans[0].warnings if w.code == "unknown_rule"].count("warning") > 0
    assert not [w for w in known.plans[0].warnings if w.code == "unknown_rule"]
    assert cheapest.plans[0].speed.limited_by == "compute"
    assert len(cheapest.frontier) > 1
    assert not plan('rackrate plan examples/lora-7b.toml --budget "1 USD"').plans


# ---------------------------------------------------------------- serve a 13B


def test_a_full_sequence_takes_an_eighth_of_the_weights():
    answer = serving("a100-sxm4-40")
    assert answer.cache.bytes_per_token == 2 * 40 * 40 * 128 * 2
    assert answer.cache.bytes_per_token * 4096 == pytest.approx(part(answer, "weights") / 8, rel=0.05)


def test_forty_gb_are_short_and_eighty_hold_several_times_as_many():
    small, large = serving("a100-sxm4-40"), serving("a100-sxm4-80")
    assert small.verdict == large.verdict == "fits"
    assert "short_of_concurrency" in {warning.code for warning in small.warnings}
    assert large.cache.full_sequences >= 3 * small.cache.full_sequences


def test_one_stream_is_cheaper_on_40_gb_and_fifteen_on_80():
    one, fifteen = plan(f"{QUOTES} 1"), plan(f"{QUOTES} 15")
    assert [found.plans[0].accelerator for found in (one, fifteen)] == ["a100-sxm4-40", "a100-sxm4-80"]
    assert one.plans[0].speed.limited_by == "bandwidth"


def test_fewer_bits_leave_more_room():
    usual = serving("a100-sxm4-40")
    assert serving("a100-sxm4-40", "--quantization awq-int4").cache.full_sequences > usual.cache.full_sequences
    halved = serving("a100-sxm4-40", "--cache-precision fp8").cache.bytes_per_token
    assert halved == usual.cache.bytes_per_token / 2


# ---------------------------------------------------------------- guides


def test_the_term_follows_the_length():
    short = plan(f"{TERMS} examples/lora-7b.toml")
    longer = plan(f'{TERMS} examples/lora-7b.toml --rows 500k --deadline "30 days" --budget "9000 CNY"')
    service = plan(f"{TERMS} --model llama-2-7b --task inference --context 2048 --hours-per-day 24 --days 60")
    markets = [found.plans[0].market for found in (short, longer, service)]
    assert markets == ["on_demand", "daily_package", "monthly_package"]


def test_a_disk_kept_for_a_month_is_the_dearest_line():
    kept = lines("rackrate plan examples/lora-7b.toml --starts 5 --keep-disk-days 30 --provider runpod --top 1")
    assert max(kept, key=kept.get) == "disk_stopped"


def test_the_same_facts_and_day_give_the_same_digest():
    first, second = (plan(f"rackrate plan examples/lora-7b.toml --top {n}") for n in (1, 2))
    assert first.facts_digest == second.facts_digest
