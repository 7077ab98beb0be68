"""A prefix that all requests share: held once, and read once, by engines that keep prefixes."""

import pytest
from tests.memory.build import card, likely, measure, serve, with_serving

from rackrate import api
from rackrate.facts import bundled
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings

BOOK = bundled.load()
LLAMA = "meta-llama/Meta-Llama-3.1-8B"
EACH = 2 * 32 * 8 * 128 * 2
"""Bytes of a token in the cache of Llama-3.1-8B in 16 bits."""


def asked(**said):
    return parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), BOOK)


def work(shared, concurrency=4):
    return with_serving(
        serve(BOOK, LLAMA, tokens=4096, output=96, concurrency=concurrency), shared_prefix_tokens=shared
    )


@pytest.mark.parametrize(("shared", "whole"), [(0, 0), (1024, 1024), (1000, 992), (15, 0)])
def test_whole_pages_of_the_prefix_are_held_once(shared, whole):
    """vLLM's pages have 16 tokens: what is left of the last one is each request's own."""
    found = measure(work(shared), card(80_000), BOOK.engine("vllm"))
    assert likely(found, "kv_cache") == EACH * (whole + 4 * (4096 - whole))


def test_more_requests_are_admitted():
    alone, shared = (measure(work(n, 4096), card(40_960), BOOK.engine("vllm")) for n in (0, 2048))
    room = alone.cache.room_bytes.likely / EACH
    assert alone.sequences_held == int(room // 4096)
    assert shared.sequences_held == int((room - 2048) // 2048)


def test_one_request_gains_nothing():
    assert (
        measure(work(2048, 1), card(40_960), BOOK.engine("vllm")).peak
        == measure(work(0, 1), card(40_960), BOOK.engine("vllm")).peak
    )


def test_the_prefix_is_not_read_again():
    job = {"model": LLAMA, "serving": {"prompt_tokens": 4000, "output_tokens": 16, "concurrency": 8}}
    job["limits"] = {"gpus": ["a100-sxm4-80"], "gpu_counts": [1]}
    plain = api.speed(job).cards[0].machines[0]
    job["serving"] = {**job["serving"], "shared_prefix_tokens": 3000}
    kept = api.speed(job).cards[0].machines[0]
    gain = kept.tokens_per_s.likely / plain.tokens_per_s.likely
    assert 2 < gain < 4.1  # a quarter of the tokens is read, each over the whole context


@pytest.mark.parametrize("engine", ["llama.cpp", "transformers", "vllm==0.7.2"])
def test_engines_that_keep_no_prefix_are_refused(engine):
    form = "bf16"
    parsed = asked(model=LLAMA, engine=engine, quantization=form, serving__shared_prefix_tokens=512)
    assert not isinstance(parsed, Parsed)
    assert any(f.subject == "--shared-prefix-tokens" and "sglang" in f.expected for f in parsed)


def test_a_prefix_is_shorter_than_its_prompt():
    (finding,) = asked(model=LLAMA, serving__prompt_tokens=512, serving__shared_prefix_tokens=512)
    assert finding.subject == "--shared-prefix-tokens"
    parsed = asked(model=LLAMA, serving__prompt_tokens=513, serving__shared_prefix_tokens=512)
    assert parsed.workload.serving.read_tokens == 1
    again = parse(request_from_flags(settings(parsed.workload)), BOOK).workload
    assert again.serving.shared_prefix_tokens == 512
