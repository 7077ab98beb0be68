"""Encoder-decoders: two sides of one model, and windows of sound."""

import pytest
from tests.memory.test_encoder_decoder import BART, FLAN, LARGE, TURBO, work

from rackrate.evidence import Unknown
from rackrate.facts import bundled
from rackrate.memory.estimate import estimate as memory_of
from rackrate.problems import Code
from rackrate.speed.decode import cache_read_bytes, decode_step_s, host_s, reordered_bytes, sequences_in_pass
from rackrate.speed.estimate import estimate
from rackrate.speed.prefill import attention_flop, matrix_flop, prefill_s
from rackrate.speed.replica import replica
from rackrate.speed.roofs import roofs
from rackrate.speed.serving import reading_s, steps_of
from rackrate.speed.simulation.run import server
from rackrate.workload.layout import Layout

SINGLE = Layout()


@pytest.fixture(scope="module")
def book():
    return bundled.load()


@pytest.fixture(scope="module")
def card(book):
    return book.accelerators["a100-sxm4-80"]


def one(book, card, workload):
    found = replica(workload, card, SINGLE, book.engine(workload.engine_id))
    assert not isinstance(found, Unknown)
    return found


def speed(book, card, workload):
    engine = book.engine(workload.engine_id)
    found = estimate(workload, card, SINGLE, engine, memory_of(workload, card, SINGLE, engine))
    assert not isinstance(found, Unknown)
    return found


@pytest.mark.parametrize("model", [LARGE, TURBO, FLAN, BART])
def test_both_sides_together_are_the_matrices_of_the_model(book, card, model):
    """All but embeddings, positions, norms and biases; a tied head is counted with the decoder."""
    made = one(book, card, work(book, model, engine="transformers"))
    whole = made.multiplied_params + made.encoder.multiplied_params
    total = book.model(model).params_total
    untied = 0 if book.model(model).tie_embeddings else book.model(model).vocab_size * book.model(model).hidden_size
    assert 0.99 < whole / (total - untied) <= 1.001


def test_the_encoder_sees_all_positions_and_has_no_head(book, card):
    made = one(book, card, work(book, LARGE))
    assert attention_flop(made, 1500) == 32 * 4 * 1280 * 1500
    assert matrix_flop(made, 1, 1500) == 2 * 1500 * made.encoder.multiplied_params


def test_turbo_reads_as_fast_and_writes_several_times_as_fast(book, card):
    large, turbo = (one(book, card, work(book, name)) for name in (LARGE, TURBO))
    assert prefill_s(turbo, 1, 1500) == pytest.approx(prefill_s(large, 1, 1500), rel=0.15)
    assert decode_step_s(large, 1, 1564) > 4 * decode_step_s(turbo, 1, 1564)


def test_a_step_reads_what_was_written_and_what_the_encoder_made(book, card):
    made = one(book, card, work(book, LARGE))
    assert cache_read_bytes(made, 2, 1500 + 64) == 2 * 32 * 2 * 1280 * 2 * 1564


def test_beams_are_sequences_of_their_own_that_may_share_a_source(book, card):
    shared, apart = (
        one(book, card, work(book, LARGE, engine=name, beams=5)) for name in ("faster-whisper", "transformers")
    )
    assert sequences_in_pass(shared, 2) == sequences_in_pass(apart, 2) == 10
    each = 32 * 2 * 1280 * 2
    assert cache_read_bytes(apart, 10, 1564) == pytest.approx(10 * each * 1564)
    assert cache_read_bytes(shared, 10, 1564) == pytest.approx(each * (10 * 64 + 2 * 1500))


@pytest.mark.parametrize(
    ("engine", "concurrency", "windows"),
    [("faster-whisper", 1, 134), ("faster-whisper", 8, 120), ("transformers", 8, 180)],
)
def test_windows_of_an_hour_overlap_as_the_engine_makes_them(book, engine, concurrency, windows):
    """One by one each starts where the last whole segment ended; chunks of a pipeline overlap by a sixth on either side."""
    found = work(book, LARGE, engine=engine, audio_seconds=3600, concurrency=concurrency).serving
    assert found.windows == windows


def test_an_hour_of_sound_is_its_windows(book, card):
    window, hour = (speed(book, card, work(book, LARGE, audio_seconds=n)).serving for n in (30, 3600))
    assert hour.requests_per_s.likely == pytest.approx(window.requests_per_s.likely / 120)
    assert hour.audio_s_per_s.likely == pytest.approx(window.audio_s_per_s.likely)
    assert hour.output_tokens_per_s.likely == pytest.approx(window.output_tokens_per_s.likely)
    started = speed(book, card, work(book, LARGE, audio_seconds=31)).serving
    assert started.audio_s_per_s.likely == pytest.approx(window.audio_s_per_s.likely * 31 / 60)


def test_a_short_sound_says_less(book):
    assert work(book, LARGE, audio_seconds=30).serving.output_tokens == 128
    assert work(book, LARGE, audio_seconds=10).serving.output_tokens == 43


def test_beams_put_what_they_keep_apart_in_order(book, card):
    shared, apart, lone = (
        one(book, card, work(book, LARGE, engine=name, beams=beams))
        for name, beams in (("faster-whisper", 5), ("transformers", 5), ("transformers", 1))
    )
    each = 2 * 5 * 32 * 2 * 1280 * 2
    assert reordered_bytes(shared, 5, 1564) == each * 64
    assert reordered_bytes(apart, 5, 1564) == each * 1564
    assert reordered_bytes(lone, 1, 1564) == 0


def test_a_layer_with_cross_attention_launches_more_and_a_search_too(book, card):
    graphs = one(book, card, work(book, LARGE, engine="faster-whisper"))
    assert graphs.launches.layer == 1.6
    assert graphs.encoder.launches.layer == 1
    eager, searching = (one(book, card, work(book, LARGE, engine="transformers", beams=n)) for n in (1, 5))
    assert eager.encoder.launches.layer < eager.launches.layer < searching.launches.layer < 1
    assert host_s(searching, 5) - host_s(eager, 1) > 2 * (searching.launches.outside - eager.launches.outside) * 3.3e-4
    flan = one(book, card, work(book, FLAN, engine="transformers"))
    assert flan.launches.layer > 1


def test_a_static_batch_of_windows_waits_for_the_longest(book, card):
    static, refilled = (one(book, card, work(book, LARGE, engine=name)) for name in ("faster-whisper", "vllm"))
    serving = work(book, LARGE).serving
    assert steps_of(static, 1, serving) == steps_of(refilled, 8, serving) == 128
    assert steps_of(static, 8, serving) == pytest.approx(128 * 1.408, rel=1e-3)


def test_sound_is_decoded_on_the_host(book, card):
    made, serving = one(book, card, work(book, LARGE)), work(book, LARGE).serving
    assert reading_s(made, 2, serving) - prefill_s(made, 2, 1500) == pytest.approx(2 * 30 * 0.003)


def test_ranges_are_wide_and_no_text_model_transcribes(book, card):
    found = speed(book, card, work(book, LARGE)).serving
    assert found.requests_per_s.likely / found.requests_per_s.low == pytest.approx(2.5)
    assert speed(book, card, work(book, FLAN, engine="transformers")).serving.audio_s_per_s is None


def test_what_no_measured_speed_stands_behind_is_said(book, card):
    for model, name in ((LARGE, "vllm"), (FLAN, "transformers")):
        assert [each.code for each in speed(book, card, work(book, model, engine=name)).findings] == [
            Code.NOT_CALIBRATED
        ]
    assert not speed(book, card, work(book, "meta-llama/Llama-2-7b-hf")).findings


def test_no_part_is_above_its_ceiling(book, card):
    for model, name in ((LARGE, "vllm"), (LARGE, "faster-whisper"), (FLAN, "transformers")):
        workload = work(book, model, engine=name, concurrency=4)
        found = roofs(workload, card, SINGLE, book.engine(name), speed(book, card, workload))
        assert not isinstance(found, Unknown)
        assert all(part.tokens_per_s.likely <= part.ceiling_tokens_per_s for part in found.parts)


def test_steps_are_not_simulated(book, card):
    workload = work(book, LARGE)
    engine = book.engine(workload.engine_id)
    room = memory_of(workload, card, SINGLE, engine).cache
    assert isinstance(server(one(book, card, workload), engine, workload.serving, room), Unknown)
