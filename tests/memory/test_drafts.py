"""Speculative decoding: what a draft model holds, its cache, and which engines decode with one."""

import pytest
from tests.memory.build import card, likely, measure, serve, with_serving

from rackrate import api
from rackrate.evidence import Unknown
from rackrate.facts import bundled
from rackrate.memory.estimate import estimate
from rackrate.memory.fit import smallest_changes
from rackrate.memory.fit_candidates import Candidates
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings
from rackrate.workload.workload import DraftModel

BOOK = bundled.load()
LLAMA, SMALL = "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.2-1B"
EACH, OWN = 2 * 32 * 8 * 128 * 2, 2 * 16 * 8 * 64 * 2
"""Bytes of a token in the caches of Llama-3.1-8B and of Llama-3.2-1B in 16 bits."""

PARAMS = 1_235_814_400
"""Parameters of Llama-3.2-1B, whose embedding is its head."""


def draft(tokens=5, acceptance=None, model=SMALL):
    return DraftModel(model=BOOK.model(model), weights=BOOK.formats["bf16"], tokens=tokens, acceptance_rate=acceptance)


def work(guess, concurrency=4, form="bf16"):
    plain = serve(BOOK, LLAMA, form, tokens=4096, output=96, concurrency=concurrency)
    return with_serving(plain, draft=guess)


def asked(**said):
    return parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), BOOK)


@pytest.mark.parametrize(("engine", "page"), [("vllm", 16), ("sglang", 1), ("tensorrt-llm", 32)])
def test_weights_and_cache_of_both_models_are_held(engine, page):
    found = measure(work(draft(tokens=5)), card(80_000), BOOK.engine(engine))
    tokens = -(-(4096 + 5) // page) * page
    assert likely(found, "draft_weights") == 2 * PARAMS
    assert likely(found, "kv_cache") == pytest.approx(4 * tokens * EACH)
    assert likely(found, "draft_cache") == pytest.approx(4 * tokens * OWN)
    assert found.cache.bytes_per_token == EACH + OWN


def test_fewer_requests_are_admitted():
    alone, helped = (measure(work(guess, 4096), card(40_960), BOOK.engine("vllm")) for guess in (None, draft()))
    room = helped.cache.room_bytes.likely
    assert room < alone.cache.room_bytes.likely - 2 * PARAMS
    assert helped.sequences_held == room // ((EACH + OWN) * 4112) < alone.sequences_held


def test_every_card_of_a_tensor_group_holds_its_part():
    one, four = (measure(work(draft()), card(80_000), BOOK.engine("vllm"), Layout(tensor=n)) for n in (1, 4))
    assert likely(four, "draft_weights") == likely(one, "draft_weights") / 4
    assert likely(four, "draft_cache") == likely(one, "draft_cache") / 4


def test_a_pipeline_holds_it_at_the_end_and_a_layer_split_everywhere():
    last = measure(work(draft()), card(80_000), BOOK.engine("vllm"), Layout(pipeline=2))
    assert likely(last, "draft_weights") == 2 * PARAMS
    split = measure(work(draft()), card(80_000), BOOK.engine("llama.cpp"), Layout(pipeline=2, layer_split=True))
    assert PARAMS < likely(split, "draft_weights") < 2 * PARAMS
    unknown = estimate(work(draft()), card(80_000), Layout(pipeline=2), BOOK.engine("sglang"))
    assert isinstance(unknown, Unknown)
    assert "draft model" in unknown.reason


def test_llama_cpp_keeps_the_cache_of_a_draft_in_16_bits():
    parsed = asked(
        model=LLAMA,
        engine="llama.cpp",
        quantization="gguf-q4_k_m",
        serving__draft_model=SMALL,
        serving__cache_precision="q8_0",
        serving__prompt_tokens=3996,
        serving__output_tokens=100,
    )
    found = measure(parsed.workload, card(24_576), BOOK.engine("llama.cpp"))
    tokens = 4352  # 4,096 and 3 guesses, in pages of 256
    assert likely(found, "kv_cache") == pytest.approx(tokens * EACH * 8.5 / 16)
    assert likely(found, "draft_cache") == pytest.approx(tokens * OWN)
    assert parsed.workload.serving.draft.weights.id == "gguf-q4_k_m"
    assert likely(found, "draft_activations") > 0


def test_guesses_make_more_logits_where_the_start_did_not_try_as_many():
    few, many = (measure(work(draft(), n), card(80_000), BOOK.engine("vllm")) for n in (4, 200))
    assert likely(few, "checked_logits") == 0
    assert likely(many, "checked_logits") == pytest.approx(14.5 * 128_256 * (200 * 6 - 256))


def test_what_would_make_it_fit():
    """Without the draft it fits; engines that decode without one are not proposed."""
    engines = tuple(BOOK.engine(name) for name in ("transformers", "sglang"))
    found = smallest_changes(work(draft(), 1), card(21_504), Layout(), BOOK.engine("vllm"), Candidates(engines=engines))
    by_knob = {each.knob: each for each in found}
    assert (by_knob["serving.draft_model"].before, by_knob["serving.draft_model"].after) == (SMALL, "none")
    assert "engine" not in by_knob or by_knob["engine"].after == "sglang"


@pytest.mark.parametrize("engine", ["transformers", "litgpt", "deepspeed-mii", "vllm==0.13"])
def test_engines_without_drafts_refuse(engine):
    parsed = asked(model=LLAMA, engine=engine, serving__draft_model=SMALL)
    assert not isinstance(parsed, Parsed)
    assert any(f.subject == "--draft-model" and "sglang" in f.expected for f in parsed)


def test_vocabularies_must_be_alike():
    """Qwen2.5 pads its vocabulary to 152,064 from 7B on and to 151,936 below: 128 tokens apart."""
    said = {"model": "Qwen/Qwen2.5-7B-Instruct", "serving__draft_model": "Qwen/Qwen2.5-0.5B-Instruct"}
    (finding,) = asked(engine="vllm", **said)
    assert "151936" in finding.observed
    assert isinstance(asked(engine="llama.cpp", **said), Parsed)


def test_a_draft_with_too_few_heads_is_not_split():
    model = BOOK.model("Qwen/Qwen2.5-72B-Instruct")
    small = replace(BOOK.model("Qwen/Qwen2.5-0.5B-Instruct"), vocab_size=model.vocab_size)  # 14 heads
    guess = replace(draft(), model=small)
    plain = serve(BOOK, "Qwen/Qwen2.5-72B-Instruct", "bf16")
    sizes = [
        {each.tensor for each in layouts(model, with_serving(plain, draft=d), BOOK.engine("vllm"), 8)}
        for d in (None, guess)
    ]
    assert 8 in sizes[0]
    assert sizes[1] == {1, 2}


@pytest.mark.parametrize("key", ["draft_tokens", "acceptance_rate", "draft_quantization"])
def test_keys_of_a_draft_mean_nothing_without_one(key):
    value = {"draft_tokens": 4, "acceptance_rate": 0.5, "draft_quantization": "bf16"}[key]
    (finding,) = asked(model=LLAMA, engine="vllm", **{f"serving__{key}": value})
    assert "--draft-model" in finding.action


def test_what_was_decided_reads_back():
    parsed = asked(model=LLAMA, engine="vllm", serving__draft_model=SMALL, serving__acceptance_rate=0.6)
    assert parsed.workload.serving.draft == draft(tokens=5, acceptance=0.6)
    again = parse(request_from_flags(settings(parsed.workload)), BOOK)
    assert again.workload.serving == parsed.workload.serving
    assert {"serving.draft_tokens", "serving.draft_quantization"} <= {a.key for a in parsed.workload.assumptions}


def test_without_an_acceptance_rate_the_speed_is_not_known():
    job = {"model": LLAMA, "engine": "vllm", "serving": {"draft_model": SMALL}}
    job["limits"] = {"gpus": ["a100-sxm4-80"], "gpu_counts": [1]}
    assert api.fit(job).verdict == "fits"
    machine = api.speed(job).cards[0].machines[0]
    assert "acceptance_rate" in str(machine)
