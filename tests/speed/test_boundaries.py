"""Where one more or one less decides, and the published numbers that constants stand for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, LLAMA_8B, SINGLE, one_replica, serve, speed, with_fact

from rackrate.evidence import known
from rackrate.facts.accelerator import Precision
from rackrate.speed.communication import link
from rackrate.speed.decode import decode_terms
from rackrate.speed.estimate_types import Bound
from rackrate.speed.prefill import matrix_flop, prefill_terms, stages_at_once
from rackrate.speed.roofline import rates
from rackrate.speed.serving import (
    busiest,
    ceiling_requests_per_s,
    in_flight_for_load,
    most_in_flight,
    requests_per_s,
    shortest_step_s,
)
from rackrate.speed.spread import SPREADS, UNMEASURED_WIDER, Phase
from rackrate.workload.layout import Layout

A100 = "a100-sxm4-80"


@pytest.mark.parametrize("wanted", [1, 2, 3, 17, 64])
def test_a_load_that_so_many_in_flight_just_serve_takes_so_many(book, wanted):
    workload = serve(book, LLAMA_8B, online=True)
    one = one_replica(book, workload, A100)
    load = requests_per_s(one, wanted, workload.serving)
    assert in_flight_for_load(one, load, 64, workload.serving) == wanted
    assert in_flight_for_load(one, load * (1 + 1e-9), 64, workload.serving) == min(64, wanted + 1)


def test_at_capacity_the_caches_the_default_batch_and_what_is_asked_decide(book):
    engine = book.engine("vllm")
    batched = engine.serving.default_sequences
    one, two = (one_replica(book, serve(book, LLAMA_8B), A100, layout=layout) for layout in (SINGLE, Layout(data=2)))
    few, many = serve(book, LLAMA_8B).serving, serve(book, LLAMA_8B, concurrency=5 * batched).serving
    assert most_in_flight(one, few, engine, held=10) == 10
    assert most_in_flight(two, few, engine, held=10) == 20
    assert most_in_flight(one, few, engine, held=10 * batched) == batched
    assert most_in_flight(two, few, engine, held=10 * batched) == 2 * batched
    assert most_in_flight(two, many, engine, held=10 * batched) == 5 * batched
    assert most_in_flight(one, few, engine, held=0) == 1


def test_the_ceiling_is_that_of_the_peak_where_prompts_are_long_and_of_the_bandwidth_where_they_are_not(book):
    long = serve(book, LLAMA_8B, prompt_tokens=4000, output_tokens=1, concurrency=8)
    one = one_replica(book, long, A100)
    per_batch = matrix_flop(one, 8, 4000) + 2 * one.multiplied_params * 8
    assert ceiling_requests_per_s(one, 8, long.serving) == pytest.approx(8 * one.rates.flop_per_s / per_batch)
    short = serve(book, LLAMA_8B, prompt_tokens=10, output_tokens=500)
    alone = one_replica(book, short, A100)
    assert ceiling_requests_per_s(alone, 1, short.serving) == pytest.approx(
        1 / (500 * shortest_step_s(alone, 1, short.serving))
    )


def test_stages_that_read_prompts_at_once_raise_the_ceiling(book):
    long = serve(book, LLAMA_8B, prompt_tokens=4000, output_tokens=1, concurrency=8)
    piped = one_replica(book, long, A100, layout=Layout(pipeline=4))
    stages = stages_at_once(piped, 8, 4000)
    per_batch = matrix_flop(piped, 8, 4000) / stages + 2 * piped.multiplied_params * 8 / 4
    assert 1 < stages < 4
    assert ceiling_requests_per_s(piped, 8, long.serving) == pytest.approx(8 * piped.rates.flop_per_s / per_batch)


def test_two_cards_read_their_halves_of_the_weights_at_once(book):
    workload = serve(book, LLAMA_8B)
    one, two = (one_replica(book, workload, A100, layout=Layout(tensor=n)) for n in (1, 2))
    assert shortest_step_s(two, 1, workload.serving) == pytest.approx(shortest_step_s(one, 1, workload.serving) / 2)


@settings(max_examples=300)
@given(
    model=st.sampled_from(["Qwen/Qwen2.5-0.5B-Instruct", LLAMA_8B]),
    engine=st.sampled_from(["vllm", "transformers"]),
    stages=st.sampled_from([1, 4]),
    sizes=st.tuples(st.integers(1, 64), st.integers(1, 6000), st.integers(1, 400)),
)
def test_the_busiest_resource_takes_most_of_a_whole_cycle(book, model, engine, stages, sizes):
    """An eager host launches while the card works: it counts where it takes longer than all that the card does."""
    batch, prompt, output = sizes
    workload = serve(book, model, "bf16", precision=Precision.BF16, prompt_tokens=prompt, output_tokens=output)
    one = one_replica(book, workload, "h100-sxm5-80", engine=engine, layout=Layout(pipeline=stages))
    step, read = decode_terms(one, batch, prompt + output / 2), prefill_terms(one, batch, prompt)
    at_once = stages_at_once(one, batch, prompt)
    taken = {bound: output * step[bound] + read[bound] / at_once for bound in step}
    on_card = sum(taken[bound] for bound in (Bound.BANDWIDTH, Bound.COMPUTE, Bound.CACHE_BANDWIDTH))
    hidden = one.eager and taken[Bound.HOST] < on_card
    counted = {bound: seconds for bound, seconds in taken.items() if bound is not Bound.HOST or not hidden}
    assert busiest(one, batch, workload.serving) is max(counted, key=counted.__getitem__)


def test_a_host_that_launches_longer_than_the_card_works_is_the_limit(book):
    """A model of half a billion weights in an eager engine: the card waits for the host."""
    tiny, large = (
        serve(book, model, "bf16", precision=Precision.BF16, prompt_tokens=10)
        for model in ("Qwen/Qwen2.5-0.5B-Instruct", LLAMA_8B)
    )
    small, big = (one_replica(book, work, "h100-sxm5-80", engine="transformers") for work in (tiny, large))
    assert small.eager
    assert busiest(small, 1, tiny.serving) is Bound.HOST
    crowded = serve(book, LLAMA_8B, "bf16", precision=Precision.BF16, prompt_tokens=4000)
    assert busiest(big, 64, crowded.serving) is not Bound.HOST


def test_ranges_are_half_as_wide_again_where_nothing_was_measured(book):
    """A kind of card on which the engine was never published, and arithmetic that is emulated."""
    assert UNMEASURED_WIDER == 1.5
    spread = SPREADS[Phase.SERVING]

    def width(found):
        return found.low and found.likely / found.low - 1

    for card, wider in ((A100, 1.0), ("mi300x-192", 1.0), ("t4", 1.5)):
        rate = speed(book, serve(book, LLAMA_8B, concurrency=64), card).serving.requests_per_s
        assert width(rate) == pytest.approx(spread * wider)
    emulated = serve(book, LLAMA_7B, "bf16", precision=Precision.BF16)
    assert width(speed(book, emulated, "v100-sxm2-32").serving.requests_per_s) == pytest.approx(spread * 1.5)


def test_a_16_bit_rate_that_equals_the_32_bit_one_is_not_emulated(book):
    """FP16 at the rate of FP32 halves what is read: it is done, not replaced."""
    workload = serve(book, LLAMA_7B)
    same = book.accelerators["a40"].facts["peak_fp32_flop_per_s"].value
    found = known(rates(with_fact(book.accelerators["a40"], "peak_fp16_flop_per_s", same), workload))
    assert (found.precision, found.emulated, found.flop_per_s) == (Precision.FP16, False, same)
    slower = known(rates(with_fact(book.accelerators["a40"], "peak_fp16_flop_per_s", same * 0.999), workload))
    assert (slower.precision, slower.emulated) == (Precision.FP32, True)


@pytest.mark.parametrize(("cards", "seconds", "rate"), [(2, 12e-6, 20e9), (4, 17e-6, 15e9), (8, 42e-6, 12e9)])
def test_collectives_over_pcie_4_are_as_published(book, cards, seconds, rate):
    """See the sources at ``PCIE``: latencies of small messages, round middles of the rates."""
    found = link(with_fact(book.accelerators["l40s"], "pcie_gen", 4.0), cards)
    assert (found.latency_s, found.bytes_per_s) == (seconds, rate)


def test_a_number_of_cards_between_those_measured_is_taken_as_the_next(book):
    card = with_fact(book.accelerators["l40s"], "pcie_gen", 4.0)
    assert [link(card, n) for n in (3, 5, 6, 16)] == [link(card, n) for n in (4, 8, 8, 8)]
