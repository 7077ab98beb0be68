"""The simulation of serving: what goes in comes out, no budget is passed, and it agrees with the closed form."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.speed.build import LLAMA_8B, SINGLE, one_replica, room, serve

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.facts.scheduling import ONE_BATCH, Order
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.speed.decode import decode_step_s
from rackrate.speed.prefill import prefill_s
from rackrate.speed.serving import ceiling_requests_per_s, served
from rackrate.speed.simulation.draws import requests, uniforms
from rackrate.speed.simulation.highest import Holds, Loads, Targets, grows, highest
from rackrate.speed.simulation.records import Load, Speculation
from rackrate.speed.simulation.run import percentiles, server, simulate
from rackrate.speed.simulation.scheduler import Scheduler
from rackrate.speed.simulation.step_times import Piece, StepTimes
from rackrate.values import replace
from rackrate.workload.layout import Layout

A100 = "a100-sxm4-80"
ENGINES = ("vllm", "vllm==0.6", "sglang", "tensorrt-llm", "llama.cpp", "deepspeed-mii", "transformers")
LOAD = Load(prompt_tokens=1000, output_tokens=200)


def a_server(book, engine="vllm", card=A100, layout=SINGLE, *, held=None, concurrency=32, speculation=None):
    """A server of Llama 3 8B; with the memory room's own cache unless ``held`` sequences are given."""
    workload = serve(book, LLAMA_8B, "bf16", precision=Precision.BF16, concurrency=concurrency)
    one = one_replica(book, workload, card, engine, layout)
    chosen = book.engine(engine)
    accelerator = book.accelerators[card]
    memory = room(held) if held else known(estimate_memory(workload, accelerator, layout, chosen))
    return known(server(one, chosen, workload.serving, memory.cache, speculation))


def run_of(what, load, count):
    """The scheduler after all of ``count`` requests, and the requests."""
    drawn = requests(load, what.replicas, range(count), count, 1)
    run = Scheduler(what, drawn, StepTimes(what.replica, what.speculation), load, load.users)
    run.run(count)
    return run, drawn


# ---------------------------------------------------------------- steps


@given(st.integers(1, 300), st.integers(1, 8000))
@settings(max_examples=60, deadline=None)
def test_a_step_that_decodes_takes_what_the_roofline_says(book, sequences, context):
    for engine in ("vllm", "transformers", "llama.cpp"):
        one = a_server(book, engine).replica
        found = StepTimes(one).decode_s(sequences, context)
        assert found == pytest.approx(decode_step_s(one, sequences, context), rel=1e-9)


@given(st.integers(1, 8), st.integers(1, 4000))
@settings(max_examples=60, deadline=None)
def test_a_step_that_reads_prompts_alone_takes_what_prefill_says(book, prompts, tokens):
    one = a_server(book).replica
    found = StepTimes(one).mixed_s(0, 0.0, [Piece(begin=0, end=tokens)] * prompts)
    assert found == pytest.approx(prefill_s(one, prompts, tokens), rel=0.02)


def test_a_mixed_step_is_dearer_than_either_and_cheaper_than_both(book):
    times = StepTimes(a_server(book).replica)
    reading, decoding = times.mixed_s(0, 0.0, [Piece(begin=0, end=1000)]), times.decode_s(32, 1000)
    both = times.mixed_s(32, 1000, [Piece(begin=0, end=1000)])
    assert max(reading, decoding) < both < reading + decoding


def test_pieces_of_a_prompt_add_up_to_a_little_more_than_the_whole(book):
    times = StepTimes(a_server(book).replica)
    whole = times.mixed_s(0, 0.0, [Piece(begin=0, end=16_384)])
    cut = sum(times.mixed_s(0, 0.0, [Piece(begin=at, end=at + 2048)]) for at in range(0, 16_384, 2048))
    assert whole < cut < 1.25 * whole


# ---------------------------------------------------------------- conservation and budgets


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("load", [replace(LOAD, users=40, length_spread=1.0), replace(LOAD, requests_per_s=6.0)])
def test_every_request_ends_once_with_all_its_tokens(book, engine, load):
    run, drawn = run_of(a_server(book, engine, held=30), load, 300)
    course = run.course
    assert course.written == pytest.approx([each.output_tokens for each in drawn])
    for came, first, ended in zip(course.came, course.first, course.ended, strict=True):
        assert 0 <= came < first <= ended < math.inf
    assert (run.running, run.cache.requests) == (0, 0)
    assert run.cache.context == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_cache_never_holds_more_than_it_can(book, engine):
    for held in (3, 12):
        load = replace(LOAD, users=60, length_spread=0.5)
        assert run_of(a_server(book, engine, held=held), load, 200)[0].meter.most_cached <= held * 1200 * (1 + 1e-9)


def test_a_full_cache_throws_out_only_where_no_output_is_reserved(book):
    load = replace(LOAD, prompt_tokens=100, output_tokens=1000, users=60)
    thrown = {engine: known(simulate(a_server(book, engine, held=20), load, 300)).preempted for engine in ENGINES}
    assert thrown["vllm"] > 0.05
    assert thrown["vllm==0.6"] > 0.05
    assert thrown["tensorrt-llm"] == thrown["llama.cpp"] == thrown["transformers"] == 0


LOADS = st.builds(
    Load,
    prompt_tokens=st.integers(1, 6000),
    output_tokens=st.integers(1, 600),
    users=st.integers(1, 100),
    length_spread=st.floats(0, 1.5),
)


@given(st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp"]), LOADS)
@settings(max_examples=40, deadline=None)
def test_nothing_is_served_above_the_physical_limit(book, engine, load):
    what = a_server(book, engine)
    found = simulate(what, load, 200)
    if isinstance(found, Unknown):
        assert load.prompt_tokens + load.output_tokens > what.cache_tokens
        return
    half = max(1, load.prompt_tokens // 2)  # a quarter of the attention: lengths differ
    serving = serve(book, LLAMA_8B, prompt_tokens=half, output_tokens=load.output_tokens).serving
    batch = min(load.users, what.most_sequences)
    assert found.requests_per_s <= 1.3 * ceiling_requests_per_s(what.replica, batch, serving)
    assert 0 <= found.cache_use <= found.cache_use_most * (1 + 1e-9) <= 1 + 1e-9
    assert found.first_token_s.p50 <= found.first_token_s.p90 <= found.first_token_s.p99
    assert found.first_token_s.p99 <= found.request_s.p99


def test_nothing_alike_is_served_above_the_ceiling_of_its_batch(book):
    for users in (1, 8, 64, 256):
        what, load = a_server(book, concurrency=users), replace(LOAD, users=users)
        serving = serve(book, LLAMA_8B).serving
        assert known(simulate(what, load, 400)).requests_per_s < ceiling_requests_per_s(what.replica, users, serving)


# ---------------------------------------------------------------- against the closed form


@pytest.mark.parametrize("engine", ["vllm", "vllm==0.6", "sglang", "tensorrt-llm", "llama.cpp"])
@pytest.mark.parametrize("users", [1, 8, 32, 128])
def test_a_closed_loop_below_the_cache_agrees_with_the_closed_form(book, engine, users):
    """Throughput within 6 %: the closed form reads weights once more for prompts than mixed steps do."""
    what = a_server(book, engine, held=400, concurrency=users)
    found = known(simulate(what, replace(LOAD, users=users)))
    closed = served(what.replica, users, 400, serve(book, LLAMA_8B).serving)
    assert closed.requests_per_s.likely == pytest.approx(found.requests_per_s, rel=0.06)
    assert 1 / closed.per_user_tokens_per_s.likely == pytest.approx(found.s_per_output_token.p50, rel=0.06)


def test_users_beyond_the_cache_wait_by_littles_law(book):
    found = known(simulate(a_server(book, "tensorrt-llm", held=10, concurrency=40), replace(LOAD, users=40)))
    assert found.first_token_s.p50 == pytest.approx(30 / found.requests_per_s, rel=0.15)
    assert found.in_flight + found.waiting == pytest.approx(40, rel=0.02)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_requests_in_the_system_are_rate_times_time(book, engine):
    found = known(simulate(a_server(book, engine), replace(LOAD, requests_per_s=4.0), 2000))
    seconds = found.request_s.p50 - 0.01
    assert found.in_flight + found.waiting == pytest.approx(4.0 * seconds, rel=0.15)


# ---------------------------------------------------------------- load


def test_the_same_seed_says_the_same_and_another_nearly(book):
    what, load = a_server(book), replace(LOAD, requests_per_s=4.0, length_spread=1.0)
    first, again, other = simulate(what, load), simulate(what, load), simulate(what, load, seed=2)
    assert first == again != other
    assert known(other).first_token_s.p50 == pytest.approx(known(first).first_token_s.p50, rel=0.2)


@pytest.mark.parametrize("engine", ["vllm", "vllm==0.6", "sglang", "tensorrt-llm", "llama.cpp"])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_latency_never_falls_with_load(book, engine, spread):
    loads = Loads(a_server(book, engine), replace(LOAD, users=1, length_spread=spread), 500)
    capacity = loads.capacity().requests_per_s
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        loads.at(share * capacity)
    assert all(grows(loads.curve, percentile) for percentile in (50, 90))


def test_more_replicas_never_serve_less(book):
    rates = [
        known(simulate(a_server(book, layout=Layout(data=n), held=50), replace(LOAD, users=100), 400)).requests_per_s
        for n in (1, 2, 4)
    ]
    assert rates == sorted(rates)


def test_a_load_above_the_capacity_is_told(book):
    loads = Loads(a_server(book, held=20), LOAD, 600)
    capacity = loads.capacity().requests_per_s
    assert loads.at(0.8 * capacity).stable
    over = loads.at(1.5 * capacity)
    assert not over.stable
    assert over.requests_per_s == pytest.approx(capacity, rel=0.1)


def test_the_highest_load_meets_the_targets_and_a_step_more_misses_them(book):
    loads = Loads(a_server(book), LOAD, 500)
    capacity = loads.capacity().requests_per_s
    for percentile, targets in itertools.product((50, 90, 99), [(0.5, 0.05), (0.3, None), (None, 0.03)]):
        wanted = Targets(percentile=percentile, first_token_s=targets[0], s_per_output_token=targets[1])
        found = highest(loads, wanted, capacity)
        assert 0 < found.requests_per_s < capacity
        assert wanted.missed(loads.at(found.requests_per_s)) is None
        if found.ended_by is not Holds.CAPACITY:
            assert wanted.missed(loads.at(found.requests_per_s + found.step_requests_per_s)) is not None


def test_a_target_that_a_request_alone_misses_is_met_at_no_load(book):
    loads = Loads(a_server(book, card="l4"), LOAD, 200)
    found = highest(loads, Targets(s_per_output_token=0.01), loads.capacity().requests_per_s)
    assert (found.requests_per_s, found.ended_by) == (0, Holds.OUTPUT_TOKEN)


def test_stricter_targets_and_higher_percentiles_never_allow_more(book):
    loads = Loads(a_server(book), replace(LOAD, length_spread=0.5), 500)
    capacity = loads.capacity().requests_per_s
    limits = (0.2, 0.4, 0.8)
    by_limit = [highest(loads, Targets(percentile=90, first_token_s=s), capacity).requests_per_s for s in limits]
    by_share = [highest(loads, Targets(percentile=p, first_token_s=0.5), capacity).requests_per_s for p in (99, 90, 50)]
    assert by_limit == sorted(by_limit)
    assert by_share == sorted(by_share)


# ---------------------------------------------------------------- prefixes, guesses, batches


def test_a_shared_prefix_is_read_once_and_held_once(book):
    plain = replace(LOAD, prompt_tokens=2000, users=16)
    shared = replace(plain, shared_prefix_tokens=1600)
    what = a_server(book, held=20)
    found, with_prefix = known(simulate(what, plain, 300)), known(simulate(what, shared, 300))
    assert with_prefix.requests_per_s > 1.2 * found.requests_per_s
    assert with_prefix.cache_use < found.cache_use
    old = a_server(book, "vllm==0.6", held=20)
    assert simulate(old, plain, 300) == replace(known(simulate(old, shared, 300)), load=plain)


def test_prompts_known_from_earlier_turns_are_hardly_read(book):
    plain = replace(LOAD, prompt_tokens=4000, requests_per_s=1.0)
    firsts = [
        known(simulate(a_server(book), replace(plain, cached_share=share), 200)).first_token_s.p50
        for share in (0.0, 0.5, 1.0)
    ]
    assert firsts[0] > 1.5 * firsts[1] > 2 * firsts[2]


def test_guesses_help_one_user_and_not_a_full_batch(book):
    good = Speculation(draft_tokens=4, acceptance_rate=0.8)
    assert good.tokens_per_step == pytest.approx((1 - 0.8**5) / 0.2)
    gains = {}
    for users in (1, 256):
        load = replace(LOAD, users=users)
        plain = known(simulate(a_server(book, held=400, concurrency=users), load, 600))
        guessed = known(simulate(a_server(book, held=400, concurrency=users, speculation=good), load, 600))
        gains[users] = guessed.requests_per_s / plain.requests_per_s
    assert gains[1] > 1.8
    assert gains[256] < gains[1]


def test_a_draft_model_takes_its_time(book):
    draft = one_replica(book, serve(book, LLAMA_8B, "bf16", precision=Precision.BF16), A100)
    rates = [
        known(simulate(a_server(book, speculation=guess), replace(LOAD, users=4), 200)).requests_per_s
        for guess in (None, Speculation(draft_tokens=4, acceptance_rate=0.8, draft=draft))
    ]
    assert rates[1] < rates[0]  # the model itself as its draft: nothing is gained


def test_a_batch_engine_makes_requests_wait_for_the_batch(book):
    what = a_server(book, "transformers")
    assert what.scheduling == ONE_BATCH
    alone, busy = (known(simulate(what, replace(LOAD, requests_per_s=rate), 300)) for rate in (0.01, 1.0))
    assert busy.first_token_s.p50 > 20 * alone.first_token_s.p50


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "deepspeed-mii"])
def test_engines_say_how_they_schedule(book, name):
    policy = book.engine(name).scheduling
    assert policy.order in (Order.MIXED, Order.PREFILL_FIRST)
    assert policy.source


def test_large_cards_have_larger_steps(book):
    assert a_server(book, card="h100-sxm5-80").step_tokens == 8192
    assert a_server(book, card=A100).step_tokens == a_server(book, card="l4").step_tokens == 2048


# ---------------------------------------------------------------- hostile input


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"requests_per_s": 0.0}, "above 0"),
        ({"requests_per_s": -1.0}, "above 0"),
        ({"requests_per_s": math.inf}, "above 0"),
        ({"users": 0}, "1 or more"),
        ({}, "one of the two"),
        ({"users": 1, "requests_per_s": 1.0}, "one of the two"),
        ({"users": 1, "prompt_tokens": 10**9}, "larger than the cache"),
        ({"users": 1, "output_tokens": 0}, "no time per token"),
    ],
)
def test_what_cannot_be_served_has_a_reason(book, sizes, said):
    found = simulate(a_server(book), Load(**{"prompt_tokens": 1000, "output_tokens": 200, **sizes}), 10)
    assert isinstance(found, Unknown)
    assert said in found.reason


HOSTILE = st.builds(
    Load,
    prompt_tokens=st.integers(0, 60_000),
    output_tokens=st.integers(1, 3000),
    requests_per_s=st.floats(1e-4, 1e5),
    length_spread=st.floats(0, 5),
    shared_prefix_tokens=st.integers(0, 40_000),
)


@given(st.sampled_from(ENGINES), HOSTILE)
@settings(max_examples=60, deadline=None)
def test_any_open_load_ends(book, engine, load):
    found = simulate(a_server(book, engine, card="l4"), load, 40)
    assert isinstance(found, Unknown) or (found.counted == 40 and found.requests_per_s > 0)


# ---------------------------------------------------------------- draws


def test_draws_are_even_and_independent():
    drawn = list(itertools.islice(uniforms(1), 20_000))
    assert all(0 < value < 1 for value in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(0.5, abs=0.01)
    products = [left * right for left, right in itertools.pairwise(drawn)]
    assert sum(products) / len(products) == pytest.approx(0.25, abs=0.01)


def test_arrivals_are_poisson_at_exactly_the_rate_and_lengths_have_their_spread():
    load = Load(prompt_tokens=1000, output_tokens=200, requests_per_s=5.0, length_spread=1.0)
    drawn = requests(load, 1, range(1000, 5000), 5000, 1)
    gaps = [later.at_s - sooner.at_s for sooner, later in itertools.pairwise(drawn[1000:])]
    assert drawn[4999].at_s - drawn[999].at_s == pytest.approx(4000 / 5.0)
    mean = sum(gaps) / len(gaps)
    assert math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean == pytest.approx(1.0, abs=0.06)
    prompts = [each.prompt_tokens for each in drawn[1000:]]
    assert sum(prompts) / len(prompts) == pytest.approx(1000, rel=0.01)
    spread = math.sqrt(sum((length - 1000) ** 2 for length in prompts) / len(prompts)) / 1000
    assert spread == pytest.approx(1.0, abs=0.15)


def test_percentiles_and_their_errors():
    found = percentiles([float(n % 100) for n in range(1600)])
    assert (found.p50, found.p90, found.p99) == pytest.approx((49.5, 89.5, 98.5), abs=0.7)
    assert found.error_p50 == pytest.approx(0, abs=1e-9)
    assert percentiles([1.0]).error_p50 == math.inf
