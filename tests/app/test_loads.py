"""``speed`` with a simulated load: percentiles, the highest load, targets at a percentile, and what cannot be served."""

import pytest

from rackrate import api

CHAT = {"model": "meta-llama/Meta-Llama-3-8B", "task": "inference", "limits": {"gpus": ["l4"]}}


def answered(simulate=True, counts=(1,), **serving):
    job = {**CHAT, "serving": serving, "limits": {"gpus": ["l4"], "gpu_counts": list(counts)}}
    return api.speed(job, simulate=simulate)


def one(**serving):
    return answered(**serving).cards[0].machines[0]


def test_nothing_is_simulated_unless_asked_or_needed():
    assert one(simulate=False, requests_per_s=1, first_token_ms=2000).load is None
    assert one(simulate=False, requests_per_s=1, first_token_ms=2000, percentile="90").load is not None
    training = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "limits": {"gpus": ["a40"], "gpu_counts": [1]}}
    assert api.speed(training, simulate=True).cards[0].machines[0].load is None


def test_percentiles_rise_and_ranges_hold_them():
    load = one(requests_per_s=1).load
    for times in (load.first_token_s, load.s_per_output_token, load.request_s):
        assert times.p50.likely <= times.p90.likely <= times.p99.likely
        assert times.p50.low < times.p50.likely < times.p50.high
    assert load.requests_per_s.likely == load.requests_per_s.high == load.offered_requests_per_s == 1
    assert load.stable


def test_users_are_a_closed_loop():
    load = one(concurrency=4).load
    assert (load.users, load.offered_requests_per_s) == (4, None)
    assert load.in_flight + load.waiting == pytest.approx(4, rel=0.05)


def test_a_load_above_the_capacity_is_missed_and_said():
    found = answered(requests_per_s=5, first_token_ms=2000)
    machine = found.cards[0].machines[0]
    assert not machine.load.stable
    assert [missed.target for missed in machine.missed] == ["load"]
    assert found.cards[0].fewest_gpus is None


def test_a_target_is_held_at_its_percentile():
    asked = {"requests_per_s": 1, "first_token_ms": 700, "simulate": True}
    median, ninetieth = one(**asked, percentile="50"), one(**asked, percentile="90")
    assert not median.missed
    assert [missed.target for missed in ninetieth.missed] == ["latency"]
    assert ninetieth.missed[0].observed == ninetieth.load.first_token_s.p90.likely > 0.7
    assert ninetieth.highest_load.requests_per_s.likely < median.highest_load.requests_per_s.likely


def test_no_load_meets_what_a_request_alone_misses():
    most = one(requests_per_s=0.1, output_token_ms=5).highest_load
    assert (most.requests_per_s, most.ended_by, most.max_s_per_output_token) == (None, "output_token", 0.005)


def test_without_numbers_of_cards_the_fewest_that_meet_are_the_last_simulated():
    job = {**CHAT, "serving": {"requests_per_s": 2, "first_token_ms": 1000, "percentile": "90"}}
    card = api.speed(job).cards[0]
    simulated = [machine.gpus for machine in card.machines if machine.load is not None]
    assert simulated[-1] == card.fewest_gpus
    assert simulated == [machine.gpus for machine in card.machines][: len(simulated)]


def test_how_requests_differ_is_an_assumption_only_where_it_counts():
    assert "serving.length_spread" in {made.key for made in answered(requests_per_s=1).assumptions}
    for found in (answered(simulate=False, requests_per_s=1), answered(requests_per_s=1, length_spread=1)):
        assert "serving.length_spread" not in {made.key for made in found.assumptions}


def test_requests_that_differ_wait_longer_at_the_tail():
    alike, mixed = one(requests_per_s=1).load, one(requests_per_s=1, length_spread=1).load
    assert mixed.first_token_s.p99.likely > alike.first_token_s.p99.likely


def test_one_card_can_be_shared_and_that_is_not_calibrated():
    job = {"model": "Qwen/Qwen3-0.6B", "serving": {"concurrency": 16}, "limits": {"gpus": ["a100-sxm4-80"]}}
    one, two = api.speed({**job, "limits": {**job["limits"], "gpu_counts": [1, 2]}}, simulate=True).cards[0].machines
    assert not two.shared
    assert one.shared[0].copies == 1
    assert {way.mig_profile for way in one.shared} > {None, "1g.10gb"}
    assert not any(way.calibrated for way in one.shared)
    for way in one.shared:
        assert way.copies * way.in_flight == pytest.approx(16, abs=way.copies)
        assert way.requests_per_s.likely < one.ceiling_tokens_per_s / 128


def test_a_plan_says_where_the_tail_misses_what_the_median_meets():
    job = {**CHAT, "serving": {"requests_per_s": 1, "first_token_ms": 700, "length_spread": 1}}
    job["limits"] = {"gpus": ["l4"], "gpu_counts": [1]}
    median, tail = api.plan(job), api.plan(job, {"serving.percentile": "99"})
    assert [plan.offer for plan in median.plans] == [plan.offer for plan in tail.plans]
    for plan in tail.plans:
        assert plan.warnings[0].code == "slow_answer"
        assert "for 99 of 100 requests, simulated" in plan.warnings[0].observed
    assert not any("simulated" in warning.observed for plan in median.plans for warning in plan.warnings)
