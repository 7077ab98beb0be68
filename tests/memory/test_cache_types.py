"""Types of the KV cache: bits as engines store them, what they unpack, and what they cannot keep."""

import pytest
from tests.memory.build import GIB, card, likely, measure, serve

from rackrate.facts import bundled
from rackrate.memory.fit import smallest_changes
from rackrate.memory.fit_candidates import Candidates
from rackrate.plan.filters import reads_cache
from rackrate.values import replace
from rackrate.workload.caches import cache_types, cached_as, why_not
from rackrate.workload.keys_of_serving import CACHE_CHOICES
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings

BOOK = bundled.load()
LLAMA, DEEPSEEK, GEMMA = "meta-llama/Meta-Llama-3.1-8B", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it"
HUGE = card(1_000_000)


def asked(**said):
    return parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), BOOK)


def in_type(engine, name, model=LLAMA, *, form="bf16", tokens=8192, concurrency=1):
    work = serve(BOOK, model, form, tokens=tokens, concurrency=concurrency)
    kind = cache_types(BOOK.engine(engine), work.model)[name]
    return replace(work, serving=cached_as(work.serving, work.model, kind))


@pytest.mark.parametrize(
    ("engine", "name", "bits"),
    [
        ("vllm", "fp8", 8),
        ("vllm", "int8", 8.25),  # an FP32 scale for each token and head of 128
        ("vllm", "int4", 4.25),
        ("vllm", "fp4", 4.5),  # an FP8 scale for 16 values
        ("sglang", "fp4", 4.5),
        ("tensorrt-llm", "int8", 8),
        ("llama.cpp", "q8_0", 8.5),
        ("llama.cpp", "q5_1", 6),
        ("llama.cpp", "q4_0", 4.5),
        ("transformers", "int4", 4.5),
        ("transformers", "int2", 2.5),
        ("exllamav2", "q6", 6.5),
    ],
)
def test_bits_of_a_value_with_its_scales(engine, name, bits):
    work = in_type(engine, name)
    assert work.serving.cache_bits == bits
    plain = measure(serve(BOOK, LLAMA, tokens=8192), HUGE, BOOK.engine(engine))
    found = measure(work, HUGE, BOOK.engine(engine))
    assert found.cache.bytes_per_token == pytest.approx(plain.cache.bytes_per_token * bits / 16)


@pytest.mark.parametrize("engine", BOOK.engine_ids)
def test_every_type_is_a_choice_of_the_key(engine):
    policy = BOOK.engine(engine).serving
    assert {kind.id for kind in policy.cache_types if policy} <= set(CACHE_CHOICES) if policy else True


@pytest.mark.parametrize("engine", [e for e in BOOK.engine_ids if "inference" in BOOK.engine(e).tasks])
@pytest.mark.parametrize("name", CACHE_CHOICES)
def test_a_type_that_an_engine_has_not_is_refused_with_what_it_has(engine, name):
    form = min(BOOK.engine(engine).weight_formats)
    parsed = asked(model=LLAMA, engine=engine, quantization=form, serving__cache_precision=name)
    able = cache_types(BOOK.engine(engine), BOOK.model(LLAMA))
    if name in able:
        assert isinstance(parsed, Parsed)
        assert parsed.workload.serving.cache.id == name
    else:
        (finding,) = parsed
        assert finding.subject == "--cache-precision"
        assert all(each in finding.expected for each in able)


def test_keys_and_values_of_llama_cpp_differ():
    said = {"model": LLAMA, "engine": "llama.cpp", "quantization": "gguf-q4_k_m", "serving__cache_precision": "q8_0"}
    work = asked(**said, serving__value_cache_precision="q4_0").workload
    assert work.serving.cache_bits == (8.5 + 4.5) / 2
    again = parse(request_from_flags(settings(work)), BOOK).workload
    assert again.serving.cache == work.serving.cache
    assert again.serving.value_cache == work.serving.value_cache


def test_other_engines_keep_both_in_one_type():
    (finding,) = asked(
        model=LLAMA, engine="vllm", serving__cache_precision="fp8", serving__value_cache_precision="bf16"
    )
    assert finding.subject == "--value-cache-precision"


@pytest.mark.parametrize(
    ("engine", "model", "name", "why"),
    [
        ("vllm", DEEPSEEK, "int8", "latent attention"),
        ("transformers", GEMMA, "int4", "layers with a window"),
        ("llama.cpp", "microsoft/phi-2", "q8_0", "heads of 80"),
    ],
)
def test_what_a_type_cannot_keep(engine, model, name, why):
    kinds = {kind.id: kind for kind in BOOK.engine(engine).serving.cache_types}
    assert why in why_not(kinds[name], BOOK.model(model))
    assert name not in cache_types(BOOK.engine(engine), BOOK.model(model))


def test_latents_in_8_bits_are_a_byte_a_value():
    kind = cache_types(BOOK.engine("vllm"), BOOK.model(DEEPSEEK))["fp8"]
    found = in_type("vllm", kind.id, DEEPSEEK, form="fp8")
    assert measure(found, HUGE, BOOK.engine("vllm")).cache.bytes_per_token == 61 * 576


def test_one_layer_is_unpacked_at_a_time():
    """ExLlamaV2: keys and values of one of 32 layers in 16 bits, over the whole cache."""
    plain = measure(serve(BOOK, LLAMA, tokens=8192), HUGE, BOOK.engine("exllamav2"))
    found = measure(in_type("exllamav2", "q4"), HUGE, BOOK.engine("exllamav2"))
    assert likely(found, "cache_copy") == pytest.approx(likely(plain, "kv_cache") / 32)
    assert likely(found, "kv_cache") == pytest.approx(likely(plain, "kv_cache") * 4.5 / 16)


def test_the_last_tokens_stay_in_16_bits():
    """transformers: 8,064 tokens in 2.5 bits and 128 in 16; the copies are two layers in 16 bits."""
    plain = measure(serve(BOOK, LLAMA, tokens=8192), HUGE, BOOK.engine("transformers"))
    found = measure(in_type("transformers", "int2"), HUGE, BOOK.engine("transformers"))
    each = likely(plain, "kv_cache") / 8192
    assert likely(found, "kv_cache") == pytest.approx(each * (8064 * 2.5 / 16 + 128))
    assert likely(found, "cache_copy") == pytest.approx(2 * likely(plain, "kv_cache") / 32)


def narrower(engine, mib, capability):
    """The change of the cache's type that makes 131,072 tokens fit, if any does."""
    work, on = serve(BOOK, LLAMA, tokens=131_072), card(mib, capability)
    changes = smallest_changes(work, on, Layout(), BOOK.engine(engine), Candidates())
    found = [change for change in changes if change.knob == "serving.cache_precision"]
    for change in found:
        assert change.before == "16 bits"
        assert measure(change.case.workload, on, BOOK.engine(engine)).verdict is change.verdict
    return [change.after for change in found]


def test_a_narrower_cache_is_searched_among_what_the_engine_has():
    assert narrower("vllm", 32_000, (9, 0)) == ["fp8"]
    assert narrower("vllm", 25_500, (9, 0)) == ["int4"]


def test_a_narrower_cache_is_searched_among_what_the_card_reads():
    assert narrower("sglang", 29_000, (10, 0)) == ["fp4"]
    assert narrower("sglang", 29_000, (9, 0)) == []


def test_cards_that_read_no_such_cache_are_left_out():
    work = asked(model=LLAMA, engine="vllm", serving__cache_precision="fp4").workload
    cards = BOOK.accelerators
    assert not reads_cache(work, cards["h100-sxm5-80"])
    assert reads_cache(work, cards["b200-180"])
    assert reads_cache(
        asked(model=LLAMA, engine="vllm", serving__cache_precision="fp8").workload, cards["a100-sxm4-80"]
    )


def test_a_long_context_in_4_bits(book):
    """Llama-3.1-8B at 131,072 tokens: 16 GiB of cache in 16 bits (2 x 32 x 8 x 128 x 2 x 131,072)."""
    plain, narrow = (in_type("llama.cpp", name, tokens=131_072) for name in ("fp16", "q4_0"))
    assert likely(measure(plain, HUGE, BOOK.engine("llama.cpp")), "kv_cache") == 16 * GIB
    assert likely(measure(narrow, HUGE, BOOK.engine("llama.cpp")), "kv_cache") == 4.5 * GIB
