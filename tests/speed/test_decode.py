"""Decode and prefill steps: published cases, and what must hold on every card."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, LLAMA_8B, LLAMA_70B, MIXTRAL, one_replica, serve, speed, with_fact, with_speed

from rackrate.evidence import known
from rackrate.facts.engine_speed import Host
from rackrate.speed.decode import cache_read_bytes, decode_step_s, decode_terms
from rackrate.speed.estimate_types import Bound
from rackrate.speed.prefill import prefill_s, stages_at_once
from rackrate.speed.replica import replica
from rackrate.values import replace
from rackrate.workload.layout import Layout

MISTRAL = "mistralai/Mistral-7B-v0.1"


def decode_tokens_per_s(book, model, form, card, engine="vllm", **given):
    batch, context = given.get("batch", 1), given.get("context", 300)
    one = one_replica(book, serve(book, model, form), card, engine, given.get("layout", Layout()))
    return batch / decode_step_s(one, batch, context)


def test_a_7b_in_16_bits_on_an_a40_stays_under_the_bandwidth_ceiling(book):
    """Measured 32 tokens/s, 67 % of 696 GB/s / 14.5 GB = 48 (dphnAI/sonar#294)."""
    found = speed(book, serve(book, MISTRAL, prompt_tokens=50, output_tokens=400), "a40", "vllm==0.5")
    assert found.ceiling_tokens_per_s == pytest.approx(48, abs=1)
    per_user = found.serving.per_user_tokens_per_s
    assert per_user.low <= 32 <= per_user.high <= found.ceiling_tokens_per_s
    assert found.limited_by is Bound.BANDWIDTH


def test_four_bits_raise_the_a40_to_about_the_published_80(book):
    """Of 2024, when the scheduler and the card took turns."""
    per_user = speed(
        book, serve(book, MISTRAL, "awq-int4", prompt_tokens=50, output_tokens=400), "a40", "vllm==0.5"
    ).serving
    assert per_user.per_user_tokens_per_s.low <= 80 <= per_user.per_user_tokens_per_s.high


def test_a_layer_split_never_speeds_decode(book):
    """Six cards generated slower than one (XiongjieDai/GPU-Benchmarks-on-LLM-Inference#8)."""
    rates = [
        decode_tokens_per_s(
            book, LLAMA_8B, "gguf-q4_k_m", "rtx4090", "llama.cpp==2900", layout=Layout(pipeline=n, layer_split=n > 1)
        )
        for n in (1, 2, 4, 6, 8)
    ]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == pytest.approx(130.6, rel=0.15)  # the same repository's table: one card,
    assert rates[-1] == pytest.approx(118.1, rel=0.15)  # and eight


def test_llama_cpp_gains_little_from_hbm_in_16_bits(book):
    """54 tokens/s on an A100 80 GB, 55 on an RTX 4090 with half the bandwidth (XiongjieDai)."""
    a100 = decode_tokens_per_s(book, LLAMA_8B, "fp16", "a100-pcie-80", "llama.cpp==2900")
    rtx4090 = decode_tokens_per_s(book, LLAMA_8B, "fp16", "rtx4090", "llama.cpp==2900")
    assert a100 / rtx4090 == pytest.approx(54 / 55, rel=0.15)


def test_tensor_parallel_gains_over_nvswitch_and_little_over_pcie(book):
    def gain(card, gpus):
        one, many = (
            decode_tokens_per_s(book, LLAMA_8B, "fp16", card, layout=Layout(tensor=n), batch=8, context=1000)
            for n in (1, gpus)
        )
        return many / one

    assert gain("a100-sxm4-80", 8) > 3
    assert gain("a100-pcie-80", 8) < 0.65 * gain("a100-sxm4-80", 8)
    assert gain("a100-pcie-80", 8) < gain("a100-pcie-80", 4)  # as seen with a 70B: 21.4 tokens/s on 2, 17.6 on 8


def test_eager_hosts_make_faster_cards_useless_at_batch_one(book):
    """Hugging Face at batch 1 is bound by launches: an H100 ran 8B at 41 tokens/s, an RTX 4090 at 47 (bitsandbytes)."""
    found = {
        card: decode_tokens_per_s(book, LLAMA_8B, "fp16", card, "transformers")
        for card in ("a100-sxm4-80", "h100-sxm5-80")
    }
    assert found["h100-sxm5-80"] == found["a100-sxm4-80"]
    one = one_replica(book, serve(book, LLAMA_8B), "h100-sxm5-80", "transformers")
    terms = decode_terms(one, 1, 300)
    assert decode_step_s(one, 1, 300) == max(terms[Bound.HOST], terms[Bound.BANDWIDTH])


def test_captured_graphs_add_their_gaps(book):
    engine = book.engine("vllm")
    workload, card = serve(book, LLAMA_8B), book.accelerators["a100-sxm4-80"]
    steps = [
        decode_step_s(known(replica(workload, card, Layout(), with_speed(engine, launch_s_per_layer=s))), 1, 300)
        for s in (0.0, 50e-6)
    ]
    assert steps[1] - steps[0] == pytest.approx(32 * 50e-6)
    assert engine.speed.host is Host.GRAPHS


def test_cache_read_is_kv_bytes_times_context(book):
    one = one_replica(book, serve(book, LLAMA_7B), "a100-sxm4-80")
    assert cache_read_bytes(one, 3, 4096) == 3 * 4096 * 2 * 32 * 32 * 128 * 2
    halved = one_replica(book, serve(book, LLAMA_7B, cache_bits=8), "a100-sxm4-80")
    assert cache_read_bytes(halved, 3, 4096) == cache_read_bytes(one, 3, 4096) / 2
    split = one_replica(book, serve(book, LLAMA_7B), "a100-sxm4-80", layout=Layout(tensor=4))
    assert cache_read_bytes(split, 3, 4096) == cache_read_bytes(one, 3, 4096) / 4


def test_pipeline_stages_work_on_their_part_of_the_batch(book):
    flat = one_replica(book, serve(book, LLAMA_70B), "h100-sxm5-80")
    staged = one_replica(book, serve(book, LLAMA_70B), "h100-sxm5-80", layout=Layout(pipeline=2))
    same, half = decode_terms(flat, 32, 1000), decode_terms(staged, 64, 1000)
    assert half[Bound.BANDWIDTH] == same[Bound.BANDWIDTH]
    assert half[Bound.COMPUTE] == same[Bound.COMPUTE]
    assert stages_at_once(staged, 1, 1000) == 1
    assert 1.9 < stages_at_once(staged, 64, 1000) < 2


def test_four_bit_weights_without_a_fused_kernel_are_slower_in_batches(book):
    """8B at batch 32 on an RTX 4090: NF4 695 tokens/s, BF16 1,054 (bitsandbytes benchmarking/README.md)."""
    nf4 = decode_tokens_per_s(book, LLAMA_8B, "nf4", "rtx4090", "transformers", batch=32)
    assert nf4 < decode_tokens_per_s(book, LLAMA_8B, "fp16", "rtx4090", "transformers", batch=32)


def test_a_mixture_of_experts_decodes_by_its_active_weights_at_batch_one(book):
    one = decode_tokens_per_s(book, MIXTRAL, "fp16", "h200-sxm-141")
    dense = decode_tokens_per_s(book, LLAMA_70B, "fp16", "h200-sxm-141")
    assert one > 4 * dense


def test_time_to_read_a_prompt_grows_faster_than_its_length(book):
    one = one_replica(book, serve(book, LLAMA_8B), "h100-sxm5-80")
    short, long = prefill_s(one, 1, 8_000), prefill_s(one, 1, 32_000)
    assert 4 < long / short < 16
    assert prefill_s(one, 1, 0) == 0


cards = st.sampled_from(["a40", "a100-sxm4-80", "h100-sxm5-80", "l4", "rtx4090", "t4", "mi300x-192", "b200-180"])
models = st.sampled_from([LLAMA_7B, LLAMA_8B, LLAMA_70B, MIXTRAL, "deepseek-ai/DeepSeek-V3"])
engines = st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"])


@given(cards, models, engines, st.tuples(st.integers(1, 200), st.integers(1, 30_000)))
def test_a_longer_context_is_never_faster_and_a_bigger_batch_never_serves_less(book, card, model, engine, sizes):
    batch, context = sizes
    one = one_replica(book, serve(book, model), card, engine)
    step = decode_step_s(one, batch, context)
    assert decode_step_s(one, batch, context + 1000) >= step
    assert (batch + 1) / decode_step_s(one, batch + 1, context) >= batch / step * (1 - 1e-9)


@given(cards, models, engines, st.tuples(st.integers(1, 200), st.floats(1.0, 10.0)))
def test_more_bandwidth_and_more_arithmetic_are_never_slower(book, card, model, engine, sizes):
    batch, factor = sizes
    workload, slow = serve(book, model), book.accelerators[card]
    fast = slow
    for quantity in ("bandwidth_bytes_per_s", "peak_fp16_flop_per_s"):
        value = slow.number(quantity)
        if isinstance(value, float):
            fast = with_fact(fast, quantity, value * factor)
    before, after = (one_replica(book, workload, c, engine) for c in (slow, fast))
    assert decode_step_s(after, batch, 1000) <= decode_step_s(before, batch, 1000) * (1 + 1e-9)
    assert prefill_s(after, batch, 1000) <= prefill_s(before, batch, 1000) * (1 + 1e-9)


def test_unknown_cache_shape_is_a_reason(book):
    odd = replace(book.model(LLAMA_8B), kv_heads=None)
    found = replica(serve(book, odd), book.accelerators["a40"], Layout(), book.engine("vllm"))
    assert "KV heads" in found.reason
