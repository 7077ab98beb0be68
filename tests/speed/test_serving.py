"""Serving: the closed loop, the room in the cache, load and latency."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_8B, LLAMA_13B, SINGLE, one_replica, room, serve, speed

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.speed.decode import decode_step_s
from rackrate.speed.estimate import estimate
from rackrate.speed.estimate_types import Bound
from rackrate.speed.prefill import prefill_s
from rackrate.speed.serving import cycle_s, sequences_held, shortest_step_s
from rackrate.workload.layout import Layout

A100_40, A100_80 = "a100-sxm4-40", "a100-sxm4-80"
PRICE_40, PRICE_80 = 10, 18  # CNY per hour, of the article's example


def with_memory(book, workload, card):
    """Speed with the memory room's own estimate."""
    accelerator, engine = book.accelerators[card], book.engine("vllm")
    return known(
        estimate(workload, accelerator, SINGLE, engine, known(estimate_memory(workload, accelerator, SINGLE, engine)))
    )


def test_throughput_is_the_batch_over_prefill_and_decode(book):
    workload = serve(book, LLAMA_8B, concurrency=16)
    one = one_replica(book, workload, A100_80)
    cycle = prefill_s(one, 16, 1000) + 200 * decode_step_s(one, 16, 1100)
    assert cycle_s(one, 16, workload.serving) == cycle
    found = speed(book, workload, A100_80).serving
    assert found.output_tokens_per_s.likely == pytest.approx(16 * 200 / cycle)
    assert found.requests_per_s.likely == pytest.approx(16 / cycle)


def test_latency_rate_and_requests_in_flight_obey_littles_law(book):
    found = speed(book, serve(book, LLAMA_8B, concurrency=16), A100_80).serving
    one = one_replica(book, serve(book, LLAMA_8B), A100_80)
    seconds = prefill_s(one, 1, 1000) + 200 / found.per_user_tokens_per_s.likely
    assert found.requests_per_s.likely * seconds == pytest.approx(16)


def test_one_stream_of_13b_is_cheaper_a_token_on_40_gb(book):
    """Bound by bandwidth: the 80 GB card is 1.31 times as fast and costs 1.8 times as much."""
    workload = serve(book, LLAMA_13B, prompt_tokens=64, output_tokens=4032)
    small, large = (with_memory(book, workload, card) for card in (A100_40, A100_80))
    gain = large.serving.output_tokens_per_s.likely / small.serving.output_tokens_per_s.likely
    assert gain == pytest.approx(2039 / 1555, rel=0.03)
    assert 1 - PRICE_40 / (PRICE_80 / gain) == pytest.approx(0.27, abs=0.02)


def test_a_full_cache_of_13b_is_cheaper_a_token_on_80_gb(book):
    """3 against 15 sequences of 4,096 tokens: 42 % cheaper in the article, 48 at the published bandwidths."""
    workload = serve(book, LLAMA_13B, prompt_tokens=2048, output_tokens=2048, concurrency=64)
    small, large = (with_memory(book, workload, card) for card in (A100_40, A100_80))
    assert (small.serving.concurrency, large.serving.concurrency) == (3, 15)
    assert small.limited_by is large.limited_by is Bound.CACHE_ROOM
    gain = large.serving.output_tokens_per_s.likely / small.serving.output_tokens_per_s.likely
    assert 0.30 < 1 - (PRICE_80 / gain) / PRICE_40 < 0.48


def test_the_physical_limit_of_full_caches_gives_42_per_cent(book):
    workload = serve(book, LLAMA_13B, prompt_tokens=4096, output_tokens=0, context_tokens=4096)
    limits = [
        held / shortest_step_s(one_replica(book, workload, card), held, workload.serving)
        for card, held in ((A100_40, 3), (A100_80, 15))
    ]
    assert 1 - (PRICE_80 / limits[1]) / (PRICE_40 / limits[0]) == pytest.approx(0.42, abs=0.01)


def test_requests_beyond_the_cache_wait(book):
    workload = serve(book, LLAMA_8B, concurrency=40)
    roomy, narrow = (speed(book, workload, A100_80, held=held) for held in (100, 10))
    assert (roomy.serving.concurrency, narrow.serving.concurrency) == (40, 10)
    assert narrow.limited_by is Bound.CACHE_ROOM
    assert narrow.serving.output_tokens_per_s.likely < roomy.serving.output_tokens_per_s.likely
    beyond = speed(book, serve(book, LLAMA_8B, concurrency=10), A100_80, held=10).serving
    waiting = narrow.serving.first_token_s.likely - beyond.first_token_s.likely
    assert waiting == pytest.approx(30 / narrow.serving.requests_per_s.likely)


@given(st.integers(11, 2000), st.integers(1, 4000), st.integers(1, 400))
def test_users_beyond_the_cache_obey_littles_law(book, asked, prompt, output):
    """Every user is waiting, being read or being written for: none is lost, whatever the queue's length."""
    workload = serve(book, LLAMA_8B, concurrency=asked, prompt_tokens=prompt, output_tokens=output)
    found = speed(book, workload, A100_80, held=10).serving
    full = serve(book, LLAMA_8B, concurrency=found.concurrency, prompt_tokens=prompt, output_tokens=output)
    no_queue = speed(book, full, A100_80, held=10).serving
    queued = found.requests_per_s.likely * (found.first_token_s.likely - no_queue.first_token_s.likely)
    assert queued + found.concurrency == pytest.approx(asked)


def test_replicas_multiply_throughput_and_leave_one_user_alone(book):
    one = speed(book, serve(book, LLAMA_8B, concurrency=8), A100_80).serving
    four = speed(book, serve(book, LLAMA_8B, concurrency=32), A100_80, layout=Layout(data=4)).serving
    assert four.output_tokens_per_s.likely == pytest.approx(4 * one.output_tokens_per_s.likely)
    assert four.per_user_tokens_per_s.likely == one.per_user_tokens_per_s.likely
    few = speed(book, serve(book, LLAMA_8B, concurrency=2), A100_80, layout=Layout(data=4)).serving
    assert few.output_tokens_per_s.likely < four.output_tokens_per_s.likely / 4


def test_no_room_is_unknown_and_not_zero(book):
    found = estimate(serve(book, LLAMA_8B), book.accelerators["t4"], SINGLE, book.engine("vllm"), room(0))
    assert isinstance(found, Unknown)


def test_a_paged_pool_holds_more_short_requests_than_planned_contexts(book):
    serving = serve(book, LLAMA_8B, prompt_tokens=100, output_tokens=100, context_tokens=8000).serving
    cache = room(held=2, context=8000, tokens=16_000).cache
    assert sequences_held(cache, serving, book.engine("vllm")) == 80
    assert sequences_held(cache, serving, book.engine("llama.cpp")) == 2


@given(st.floats(0.05, 500))
def test_an_offered_load_is_served_or_the_capacity_is_reported(book, load):
    found = speed(book, serve(book, LLAMA_8B, online=True, requests_per_s=load), A100_80, held=200).serving
    capacity = found.capacity_requests_per_s.likely
    if load <= capacity:
        assert found.requests_per_s.likely >= load
        assert found.concurrency <= 200
    else:
        assert found.concurrency == 200
        assert found.requests_per_s.likely == pytest.approx(capacity)


def test_a_light_load_takes_few_requests_in_flight(book):
    one = speed(book, serve(book, LLAMA_8B, online=True, requests_per_s=0.1), A100_80).serving
    assert one.concurrency == 1
    more = speed(book, serve(book, LLAMA_8B, online=True, requests_per_s=5.0), A100_80).serving
    assert 10 < more.concurrency < 60
    assert more.per_user_tokens_per_s.likely < one.per_user_tokens_per_s.likely


def test_offline_work_is_requests_over_the_rate(book):
    found = speed(book, serve(book, LLAMA_8B, concurrency=64, requests=1e5), A100_80)
    rate = found.serving.requests_per_s
    assert found.work_hours.likely == pytest.approx(1e5 / rate.likely / 3600)
    assert found.work_hours.low == pytest.approx(1e5 / rate.high / 3600)
    assert speed(book, serve(book, LLAMA_8B), A100_80).work_hours is None


@pytest.mark.parametrize(
    ("card", "measured_s"),
    [("a10g", 0.1184), (A100_40, 0.0365), (A100_80, 0.0386), ("h100-sxm5-80", 0.0180), ("l4", 0.1441)],
)
def test_first_token_of_a_lone_request_is_near_vllm_measurements(book, card, measured_s):
    """SpareCores/sc-inspector-data: vLLM 0.22 and 0.27, 8B, 256 tokens, median through the HTTP server."""
    workload = serve(book, LLAMA_8B, "bf16", precision=Precision.BF16, prompt_tokens=256, output_tokens=128)
    first = speed(book, workload, card).serving.first_token_s
    assert first.likely == pytest.approx(measured_s, rel=0.4)
    assert first.low < first.likely < first.high


@given(st.sampled_from([A100_80, "a40", "l4", "rtx4090", "h100-sxm5-80"]), st.integers(1, 128), st.integers(1, 8000))
def test_nothing_serves_above_the_physical_limit(book, card, concurrency, prompt):
    workload = serve(book, LLAMA_8B, concurrency=concurrency, prompt_tokens=prompt)
    found = speed(book, workload, card)
    assert found.serving.output_tokens_per_s.high <= found.ceiling_tokens_per_s * (1 + 1e-9)
    assert found.serving.per_user_tokens_per_s.high * 16e9 <= book.accelerators[card].bandwidth_bytes_per_s * 1.1
