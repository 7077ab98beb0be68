"""Speculative decoding: tokens of a round, its time, and the simulation beside the closed form."""

import pytest
from tests.speed.build import known

from rackrate import api
from rackrate.facts import bundled
from rackrate.speed.decode import cache_read_bytes, decode_step_s, decode_terms
from rackrate.speed.estimate_types import Bound
from rackrate.speed.guessing import checking_terms, least_bytes, least_flop, round_s, token_s
from rackrate.speed.replica import expected_tokens, replica
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_flags

BOOK = bundled.load()
LARGE, SMALL = "meta-llama/Meta-Llama-3.1-70B", "meta-llama/Llama-3.2-1B"


def helped(acceptance, tokens=4, engine="vllm", model=SMALL):
    said = {"model": LARGE, "engine": engine, "serving.draft_model": model, "serving.draft_tokens": tokens}
    work = parse(request_from_flags({**said, "serving.acceptance_rate": acceptance}), BOOK).workload
    return known(replica(work, BOOK.accelerators["h100-sxm5-80"], Layout(tensor=4), BOOK.engine(engine)))


@pytest.mark.parametrize(
    ("acceptance", "tokens", "expected"), [(0.0, 5, 1.0), (1.0, 5, 6.0), (0.8, 5, 3.68928), (0.5, 1, 1.5)]
)
def test_tokens_of_a_round(acceptance, tokens, expected):
    """The series 1 + a + a^2 + ... + a^k, worked out by hand."""
    assert expected_tokens(tokens, acceptance) == pytest.approx(expected)
    assert expected_tokens(tokens, acceptance) == pytest.approx(sum(acceptance**n for n in range(tokens + 1)))


def test_a_round_is_the_steps_of_the_draft_and_one_check():
    one = helped(0.7)
    check = round_s(one, 1, 1000) - 4 * decode_step_s(one.draft, 1, 1000)
    alone = decode_step_s(one, 1, 1000)
    assert alone <= check < 1.2 * alone  # the weights are read once, whatever the number of tokens
    assert token_s(one, 1, 1000) == round_s(one, 1, 1000) / expected_tokens(4, 0.7)


def test_checking_reads_each_cache_once():
    one = helped(0.7)
    single, check = decode_terms(one, 8, 2000), checking_terms(one, 8, 2000, 4)
    read = cache_read_bytes(one, 8, 2000) / (one.rates.bandwidth_bytes_per_s * one.cache_share)
    beside = [terms[Bound.CACHE_BANDWIDTH] - read for terms in (single, check)]
    assert beside[1] == pytest.approx(5 * beside[0])  # norms and residuals of all tokens
    assert check[Bound.COMPUTE] == pytest.approx(5 * single[Bound.COMPUTE])


def test_nothing_is_faster_than_its_bytes_and_flops():
    one = helped(1.0)
    for batch in (1, 32, 256):
        shortest = max(
            least_bytes(one, batch, 1000) / one.rates.bandwidth_bytes_per_s,
            least_flop(one, batch) / (one.rates.flop_per_s * 4),
        )
        assert shortest < round_s(one, batch, 1000)


def test_a_draft_helps_few_requests_and_hinders_many():
    gains = []
    for batch in (1, 512):
        one = helped(0.7)
        gains.append(decode_step_s(replace(one, draft=None), batch, 1000) / token_s(one, batch, 1000))
    assert gains[0] > 1.8
    assert gains[1] < gains[0] / 1.5


def test_wrong_guesses_cost_time():
    one = helped(0.0)
    assert token_s(one, 1, 1000) > decode_step_s(replace(one, draft=None), 1, 1000)


def test_the_draft_is_a_bound_of_its_own():
    """A draft as large as the model itself gains nothing, however often it is right."""
    one = helped(1.0, model=LARGE)
    assert token_s(one, 1, 1000) > 0.9 * decode_step_s(replace(one, draft=None), 1, 1000)


def test_the_speed_of_a_machine_follows():
    job = {"model": LARGE, "engine": "vllm", "serving": {"prompt_tokens": 500, "output_tokens": 500}}
    job["limits"] = {"gpus": ["h100-sxm5-80"], "gpu_counts": [4]}
    rates = []
    for beside in ({}, {"draft_model": SMALL, "acceptance_rate": 0.3}, {"draft_model": SMALL, "acceptance_rate": 0.8}):
        machine = api.speed({**job, "serving": {**job["serving"], **beside}}).cards[0].machines[0]
        rates.append(machine.per_user_tokens_per_s.likely)
    assert rates[0] < rates[1] < rates[2]
