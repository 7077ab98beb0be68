"""Copies on one card: shared bandwidth and arithmetic, repeated weights, and gaps that others fill."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_8B, one_replica, serve

from rackrate.facts.accelerator import Precision
from rackrate.speed.copies import copies_speed, residence_s
from rackrate.speed.serving import ceiling_requests_per_s, served

A100, SMALL = "a100-sxm4-80", "Qwen/Qwen3-0.6B"


def replica_of(book, model=LLAMA_8B, engine="vllm"):
    return one_replica(book, serve(book, model, "bf16", precision=Precision.BF16), A100, engine)


@given(st.floats(1e-4, 10), st.floats(0, 10), st.integers(1, 50))
def test_a_shared_station_is_between_no_sharing_and_full_waiting(card, elsewhere, copies):
    found = residence_s(card, elsewhere, copies)
    assert card <= found * (1 + 1e-9)
    assert found <= card * copies * (1 + 1e-9)
    rate = copies / (found + elsewhere)
    assert rate <= min(1 / card, copies / (card + elsewhere)) * (1 + 1e-9)


def test_without_time_elsewhere_copies_only_wait_for_each_other():
    assert residence_s(2.0, 0.0, 5) == pytest.approx(10.0)
    assert residence_s(2.0, 1e9, 5) == pytest.approx(2.0, rel=1e-6)


def test_one_copy_is_the_closed_form(book):
    one, serving = replica_of(book), serve(book, LLAMA_8B).serving
    found, closed = copies_speed(one, 1, 16, serving), served(one, 16, 400, serving)
    assert found.requests_per_s == pytest.approx(closed.requests_per_s.likely)
    assert 1 / found.s_per_output_token == pytest.approx(closed.per_user_tokens_per_s.likely)


@pytest.mark.parametrize("users", [8, 32, 128])
def test_weights_read_again_cost_a_large_model_more_than_gaps_give(book, users):
    one, serving = replica_of(book), serve(book, LLAMA_8B).serving
    rates = [copies_speed(one, copies, users / copies, serving).requests_per_s for copies in (1, 2, 4)]
    assert rates[0] > rates[1] > rates[2]


def test_copies_fill_the_gaps_of_a_small_model(book):
    one, serving = replica_of(book, SMALL), serve(book, SMALL, concurrency=4).serving
    alone, pair = copies_speed(one, 1, 1, serving), copies_speed(one, 2, 1, serving)
    assert 1.2 * alone.requests_per_s < pair.requests_per_s < 2 * alone.requests_per_s
    assert alone.busy < pair.busy < 1


@given(st.integers(1, 8), st.floats(1, 64))
def test_copies_are_never_above_the_ceiling_of_one_batch(book, copies, batch):
    one, serving = replica_of(book), serve(book, LLAMA_8B).serving
    found = copies_speed(one, copies, batch, serving)
    assert found.requests_per_s < ceiling_requests_per_s(one, copies * batch, serving)
    assert found.busy <= 1 + 1e-9
