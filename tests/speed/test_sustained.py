"""What cards keep up in training, and what one micro-batch asks of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, MIXTRAL, one_replica, speed, train, with_fact, without_fact

from rackrate.facts.accelerator import Precision
from rackrate.speed import training_terms as terms
from rackrate.speed.sustained import SUSTAINED_SHARE, WITHOUT_LIMIT, sustained, sustained_share
from rackrate.speed.training import chunks, held_params, step_s
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

FULL = Task.FULL_FINETUNE
H100, A100 = "h100-sxm5-80", "a100-sxm4-80"


def card_rates(book, card, precision=Precision.BF16):
    one = one_replica(book, train(book, LLAMA_7B, FULL, precision=precision), card, "fsdp")
    return sustained(one.accelerator, one.rates), one


def test_share_follows_the_root_of_what_the_power_limit_pays_for(book):
    card = book.accelerators[H100]
    half = card.peak_flop_per_s(Precision.BF16)
    paid = 700 * 1.36e12 / half
    limited = SUSTAINED_SHARE * math.sqrt(paid)
    assert sustained_share(card, half) == pytest.approx((limited**-3 + WITHOUT_LIMIT**-3) ** (-1 / 3))
    assert sustained_share(without_fact(card, "power_limit_w"), half) == SUSTAINED_SHARE


@given(st.floats(100, 1000))
def test_more_power_is_never_slower_and_never_above_the_peak(book, watts):
    card = book.accelerators[H100]
    half = card.peak_flop_per_s(Precision.BF16)
    less, more = (sustained_share(with_fact(card, "power_limit_w", w), half) for w in (watts, watts * 1.2))
    assert less < more < WITHOUT_LIMIT
    assert more / less <= math.sqrt(1.2) + 1e-9


def test_narrow_arithmetic_multiplies_matrices_and_not_attention(book):
    wide, _ = card_rates(book, H100)
    narrow, _ = card_rates(book, H100, Precision.FP8)
    assert narrow.flop_per_s == pytest.approx(2 * wide.flop_per_s, rel=0.01)
    assert narrow.half_flop_per_s == pytest.approx(wide.half_flop_per_s)
    assert narrow.exps_per_s == wide.exps_per_s == pytest.approx(67e12 / 16, rel=0.01)


def test_fp32_is_not_held_back_by_power(book):
    found, one = card_rates(book, A100, Precision.FP32)
    assert found.flop_per_s == pytest.approx(WITHOUT_LIMIT * one.rates.flop_per_s)


def test_fp8_trains_faster_but_not_twice_as_fast(book):
    """Llama 3 8B on H100 with FSDP: 1.28 times (pytorch/torchtitan docs/performance.md)."""
    wide, narrow = (
        speed(book, train(book, LLAMA_7B, FULL, precision=precision), H100, "fsdp").training.tokens_per_s.likely
        for precision in (Precision.BF16, Precision.FP8)
    )
    assert 1.15 < narrow / wide < 1.6


def test_selective_checkpointing_costs_only_where_scores_are_stored(book):
    for attention, costs in (("flash", False), ("eager", True)):
        plain, selective = (
            speed(
                book,
                train(book, LLAMA_7B, FULL, checkpointing=kind, attention=attention, sequence_tokens=8192),
                A100,
                "fsdp",
            ).training.step_s.likely
            for kind in (Checkpointing.NONE, Checkpointing.SELECTIVE)
        )
        assert (selective > plain) is costs


def test_stored_scores_grow_with_the_square_of_the_sequence(book):
    def extra(tokens):
        jobs = [train(book, LLAMA_7B, FULL, sequence_tokens=tokens, attention=a) for a in ("eager", "flash")]
        eager, flash = (terms.stream_s(one_replica(book, j, A100, "fsdp"), j, j.training) for j in jobs)
        return eager - flash

    assert extra(4096) == pytest.approx(4 * extra(2048))


def test_compiled_layers_move_less(book):
    plain, compiled = (
        speed(book, train(book, LLAMA_7B, FULL, compiled=flag), A100, "torchtune").training.tokens_per_s.likely
        for flag in (False, True)
    )
    assert 1.05 < compiled / plain < 1.4


def test_adapters_in_fp32_move_more_than_in_16_bits(book):
    def moved(engine):
        lora, frozen = (train(book, LLAMA_7B, task) for task in (Task.LORA, FULL))
        one = one_replica(book, lora, A100, engine)
        return terms.stream_s(one, lora, lora.training) - terms.stream_s(one, frozen, frozen.training)

    assert moved("peft-trl") == pytest.approx(2 * moved("torchtune"))


def test_experts_shared_by_more_cards_talk_over_the_network_beyond_a_machine(book):
    job = train(book, MIXTRAL, FULL, global_batch=64)
    near, far = (
        terms.experts_s(one_replica(book, job, H100, "megatron", Layout(data=16, expert=e)), job.training)
        for e in (8, 16)
    )
    alone = one_replica(book, job, H100, "megatron", Layout(data=16))
    assert terms.experts_s(alone, job.training) == 0
    assert 0 < near < far
    assert terms.machine_cards(one_replica(book, job, "gb200-186", "megatron")) == 72


def test_experts_are_divided_over_the_cards_that_share_them(book):
    job = train(book, MIXTRAL, FULL)
    all_of, part = (
        held_params(one_replica(book, job, H100, "megatron", Layout(data=8, expert=e)), job, job.training)
        for e in (1, 8)
    )
    assert all_of == job.model.params_total
    assert part < 0.2 * all_of


def test_interleaved_stages_have_a_smaller_bubble(book):
    job = train(book, LLAMA_7B, FULL, global_batch=8)
    one = one_replica(book, job, H100, "megatron", Layout(pipeline=4))
    assert chunks(one) == one.policy.stage_chunks > 1
    whole = replace(one, policy=replace(one.policy, stage_chunks=1))
    assert step_s(one, job, job.training) < step_s(whole, job, job.training)
    assert chunks(replace(one, layout=Layout(pipeline=4, chunks=2))) == 2


def test_more_cards_in_a_sharded_collective_take_longer(book):
    few, many = (
        speed(
            book,
            train(book, LLAMA_7B, FULL, micro_batch=8, global_batch=8 * n),
            H100,
            "fsdp",
            Layout(data=n, zero_stage=3),
        ).training
        for n in (128, 512)
    )
    assert few.step_s.likely < many.step_s.likely < 1.3 * few.step_s.likely


def test_hybrid_models_count_mixers(book):
    hybrid = book.model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert terms.mixers(hybrid) == 29
    assert terms.token_layers(hybrid) == 6 + 3 * 23
    assert terms.expert_layers(hybrid) == 23
    assert terms.token_layers(book.model(LLAMA_7B)) == 32
