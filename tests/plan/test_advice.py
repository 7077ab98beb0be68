"""Advice: each line is what the question asked again with it answers, helps, and fits."""

from datetime import date

import pytest

from rackrate import api
from rackrate.app.advice_documents import WORDS
from rackrate.plan.advice import CHANGES_RESULTS, FASTER, SAVES, SLOWER_AT_MOST, Mechanism

AT = date(2026, 11, 30)
L7B = "meta-llama/Llama-2-7b-hf"
JOBS = {
    "lora": ({"model": L7B, "task": "lora"}, "a100-pcie-40"),
    "padded": ({"model": L7B, "task": "lora", "training": {"micro_batch": 4, "attention": "eager"}}, "a100-sxm4-80"),
    "qlora": ({"model": L7B, "task": "qlora"}, "rtx4090"),
    "full": ({"model": L7B, "task": "full_finetune", "limits": {"gpu_counts": [8]}}, "h100-sxm5-80"),
    "fp32": ({"model": L7B, "task": "full_finetune", "precision": "fp32"}, "h100-sxm5-80"),
    "chat": ({"model": L7B, "task": "inference"}, "l40s"),
    "eager": ({"model": L7B, "task": "inference", "engine": "transformers"}, "a40"),
    "batch": ({"model": L7B, "task": "inference", "serving": {"mode": "offline", "requests": "100k"}}, "h100-sxm5-80"),
    "load": ({"model": L7B, "task": "inference", "serving": {"requests_per_s": 4}}, "a100-sxm4-80"),
}


def answered(name, flags=None, **more):
    job, card = JOBS[name]
    return api.speed(job, {"limits.gpus": [card], **(flags or {}), **more}, at=AT).cards[0]


def leading(card):
    return next(machine for machine in card.machines if machine.gpus == card.advice_gpus)


def settings_of(advice):
    """The flags that the changes stand for."""
    return {change.knob: change.after for change in advice.changes}


def of(card, mechanism):
    return next((each for each in card.advice if each.mechanism == mechanism), None)


@pytest.mark.parametrize("name", JOBS)
def test_asking_again_with_it_gives_what_it_promises(name):
    card = answered(name)
    assert card.advice
    for each in card.advice:
        flags = settings_of(each)
        counts = flags.pop("limits.gpu_counts", str(card.advice_gpus))
        switches = {knob: {"true": True, "false": False}.get(value, value) for knob, value in flags.items()}
        again = answered(name, switches, **{"limits.gpu_counts": [int(counts)]})
        (machine,) = again.machines
        assert machine.tokens_per_s == each.pace
        assert machine.work_hours == each.hours or each.hours is None


@pytest.mark.parametrize("name", JOBS)
def test_only_what_helps_and_fits_is_told_the_fastest_first(name):
    card = answered(name)
    now = leading(card)
    single = [each for each in card.advice if each.mechanism != "together"]
    speeds = [each.speedup for each in single if each.speedup >= FASTER]
    assert speeds == sorted(speeds, reverse=True)
    for each in single:
        cheaper = each.cost_before and float(each.cost_after) <= float(each.cost_before) * (1 - SAVES)
        assert each.speedup >= FASTER or cheaper or each.speedup >= SLOWER_AT_MOST
    if now.tokens_per_s and not JOBS[name][0].get("serving", {}).get("requests_per_s"):
        for each in card.advice:
            assert each.speedup == pytest.approx(each.pace.likely / now.tokens_per_s.likely)


@pytest.mark.parametrize("name", JOBS)
def test_together_is_more_than_each_part_and_changes_no_results(name):
    card = answered(name)
    joined = of(card, "together")
    parts = [each for each in card.advice if not each.changes_results and each.mechanism not in {"together", "cards"}]
    if joined is None:
        return
    assert card.advice[0] is joined
    assert len(joined.changes) > 1
    assert all(joined.speedup > each.speedup for each in parts)
    assert not joined.changes_results


def test_what_is_done_already_is_not_advised():
    done = {"training.compiled": True, "training.packed": True, "training.checkpointing": "none"}
    card = answered("lora", done)
    assert {each.mechanism for each in card.advice}.isdisjoint({"compile", "packing", "less_checkpointing", "together"})


def test_each_fault_is_found():
    found = {each.mechanism for name in JOBS for each in answered(name).advice}
    assert {"packing", "flash_attention", "mixed_precision", "compile", "less_checkpointing", "fp8"} <= found
    assert {"quantised_weights", "narrow_cache", "captured_graphs", "more_in_flight", "optimizer_8bit"} <= found


def test_fp8_is_not_advised_where_the_card_has_none():
    job, _ = JOBS["full"]
    card = api.speed({**job, "limits": {"gpus": ["a100-sxm4-80"], "gpu_counts": [8]}}, at=AT).cards[0]
    assert of(card, "fp8") is None


def test_cost_follows_speed_at_the_price_of_the_machine():
    card = answered("lora")
    faster = of(card, "compile")
    assert float(faster.cost_before) / float(faster.cost_after) == pytest.approx(
        faster.speedup, rel=2e-3
    )  # checkpoints wait as long
    yuan = of(answered("lora", currency="CNY"), "compile")
    assert yuan.currency == "CNY"
    assert float(yuan.cost_after) > float(faster.cost_after)


def test_nothing_is_advised_where_the_work_cannot_be_done():
    card = api.speed(
        {"model": L7B, "task": "full_finetune"}, {"limits.gpus": ["rtx4090"], "limits.gpu_counts": [1]}, at=AT
    )
    assert card.cards[0].advice == ()
    assert card.cards[0].advice_gpus is None


def test_every_mechanism_has_words_and_a_source():
    assert set(WORDS) == set(Mechanism)
    assert all(what and source for what, source in WORDS.values())
    assert set(Mechanism) > CHANGES_RESULTS
