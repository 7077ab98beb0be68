import pytest
from tests.memory.build import GB, GIB, bare, card, likely, measure, serve, with_policy

from rackrate.evidence import Unknown
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Phase, Verdict
from rackrate.values import replace
from rackrate.workload.layout import Layout

LLAMA_7B, LLAMA_13B = "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-13b-hf"


@pytest.fixture(scope="session")
def a100_40(book):
    return book.accelerators["a100-sxm4-40"]


@pytest.fixture(scope="session")
def a100_80(book):
    return book.accelerators["a100-sxm4-80"]


@pytest.fixture(scope="session")
def vllm(book):
    return book.engine("vllm")


def test_13b_in_fp16_holds_3_full_sequences_on_40_gb_and_15_on_80(book, a100_40, a100_80, vllm):
    small = measure(serve(book, LLAMA_13B, concurrency=16), a100_40, vllm)
    large = measure(serve(book, LLAMA_13B, concurrency=16), a100_80, vllm)
    assert vllm.serving.memory_share == 0.92
    assert small.cache.bytes_per_token == 819_200
    assert (small.cache.full_sequences, large.cache.full_sequences) == (3, 15)
    assert small.cache.tokens.likely == pytest.approx(14_000, rel=0.05)
    assert (small.verdict, large.verdict) == (Verdict.FITS, Verdict.FITS)


def test_7b_in_fp16_holds_about_11_full_sequences_on_40_gb_and_queues_the_rest(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_7B, concurrency=16), a100_40, vllm)
    assert found.cache.full_sequences == 11
    assert (found.sequences_held, found.sequences_asked) == (11, 16)
    assert found.queues
    assert found.verdict is Verdict.FITS
    assert found.peak.likely == pytest.approx(found.usable_bytes)


def test_a_service_within_its_room_does_not_queue(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_7B, concurrency=4), a100_40, vllm)
    assert not found.queues
    assert likely(found, "kv_cache") == 4 * 4096 * 524_288
    assert found.headroom_bytes > 0


def test_the_budget_is_the_share_of_what_programs_see_plus_the_context(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_7B), a100_40, vllm)
    visible = 42_949_672_960 - 480 * 2**20
    assert found.usable_bytes == pytest.approx(0.92 * visible + likely(found, "cuda_context"))


def test_room_for_the_cache_is_what_the_share_leaves(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_13B), a100_40, vllm)
    visible = 42_949_672_960 - 480 * 2**20
    others = sum(
        likely(found, n) for n in ("weights", "rotary_tables", "activations", "graphs", "non_torch", "workspace")
    )
    assert found.cache.room_bytes.likely == pytest.approx(0.92 * visible - others)


def test_the_peak_is_the_sum_of_what_its_phase_holds(book, a100_80, vllm):
    found = measure(serve(book, LLAMA_7B), a100_80, vllm)
    held = [p for p in found.components if found.peak_phase in p.phases or Phase.ALWAYS in p.phases]
    assert sum(p.bytes.likely for p in held) == pytest.approx(found.peak.likely)
    assert found.peak.likely == max(peak.likely for _, peak in found.phases)


def test_one_full_sequence_must_fit(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_13B, tokens=20_000), a100_40, vllm)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.cache.full_sequences == found.sequences_held == 0
    assert found.headroom_bytes < 0


def test_weights_alone_can_be_too_much(book, a100_80, vllm):
    found = measure(serve(book, "meta-llama/Llama-2-70b-hf"), a100_80, vllm)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.cache.room_bytes.high == 0


def test_a_share_of_what_is_left_leaves_a_tenth(book, a100_80):
    engine = book.engine("tensorrt-llm")
    found = measure(serve(book, LLAMA_7B, concurrency=1000), a100_80, engine)
    visible = 85_899_345_920 - 480 * 2**20
    rest = found.peak.likely - likely(found, "kv_cache")
    assert likely(found, "kv_cache") == pytest.approx(0.9 * (visible - rest))


def test_a_static_share_holds_weights_and_cache_alone(book, a100_80):
    engine = book.engine("sglang")
    found = measure(serve(book, LLAMA_7B, concurrency=1000), a100_80, engine)
    free = 85_899_345_920 - 480 * 2**20 - likely(found, "cuda_context") - likely(found, "non_torch")
    static = likely(found, "weights") + likely(found, "kv_cache")
    assert static == pytest.approx(engine.serving.memory_share * free)


def test_a_static_share_cannot_take_what_activations_need(book):
    engine = with_policy(book.engine("sglang"), memory_share=0.99)
    found = measure(serve(book, LLAMA_7B, concurrency=1000), card(24_564), engine)
    assert found.peak.likely <= found.usable_bytes * (1 + 1e-9)
    assert found.usable_bytes == pytest.approx(24_564 * 2**20 - 480 * 2**20)


def test_an_engine_that_cannot_queue_must_hold_every_sequence(book, a100_40):
    engine = book.engine("transformers")
    few, many = (measure(serve(book, LLAMA_7B, concurrency=n), a100_40, engine) for n in (4, 16))
    assert likely(many, "kv_cache") == 4 * likely(few, "kv_cache") == 16 * 4096 * 524_288
    assert (few.verdict, many.verdict) == (Verdict.FITS, Verdict.DOES_NOT_FIT)
    assert many.sequences_held == 16


def test_prompt_logits_dominate_a_small_model_with_a_long_prompt(book, a100_80):
    # transformers 4.38, Qwen2-0.5B, 30,720 tokens in: 27.61 GiB, of which 26.1 are logits.
    engine = with_policy(bare(book.engine("transformers")), full_prompt_logits=True)
    found = measure(serve(book, "Qwen/Qwen2-0.5B-Instruct", tokens=32_768, output=2048), a100_80, engine)
    assert found.peak_phase is Phase.PREFILL
    assert found.allocated.likely / GIB == pytest.approx(27.61, rel=0.03)


def test_tensor_parallelism_halves_weights_and_cache(book, a100_80, vllm):
    one, two = (measure(serve(book, LLAMA_13B), a100_80, vllm, Layout(tensor=t)) for t in (1, 2))
    assert likely(two, "weights") == likely(one, "weights") / 2
    assert two.cache.bytes_per_token == one.cache.bytes_per_token / 2


def test_replicas_share_the_requests(book, a100_80, vllm):
    found = measure(serve(book, LLAMA_7B, concurrency=8), a100_80, vllm, Layout(data=2))
    assert likely(found, "kv_cache") == 4 * 4096 * 524_288
    assert (found.sequences_held, found.sequences_asked) == (8, 8)


def test_a_layer_split_divides_layers_and_not_the_compute_buffer(book):
    engine = book.engine("llama.cpp")
    workload = serve(book, "meta-llama/Meta-Llama-3.1-70B", "gguf-q4_k_m", tokens=8192)
    one = measure(workload, card(49_140), engine)
    two = measure(workload, card(24_564), engine, Layout(pipeline=2, layer_split=True))
    assert likely(two, "kv_cache") == likely(one, "kv_cache") / 2
    assert likely(two, "weights") == pytest.approx(likely(one, "weights") / 2, rel=0.03)
    assert likely(two, "activations") == likely(one, "activations")
    assert two.verdict is Verdict.FITS


def test_a_four_bit_70b_does_not_fit_a_40_gb_card(book):
    workload = serve(book, "meta-llama/Meta-Llama-3.1-70B", "gguf-q4_k_m")
    assert measure(workload, card(40_960), book.engine("llama.cpp")).verdict is Verdict.DOES_NOT_FIT
    assert measure(workload, card(49_140), book.engine("llama.cpp")).verdict is Verdict.FITS


def test_72b_in_16_bits_on_four_40_gb_cards_leaves_no_room_at_0_9(book, a100_40, vllm):
    # QwenLM/Qwen#853: 33.8 GiB of weights a card, "no available memory for the cache blocks".
    engine = with_policy(vllm, memory_share=0.9)
    found = measure(serve(book, "Qwen/Qwen-72B", "bf16"), a100_40, engine, Layout(tensor=4))
    assert likely(found, "weights") / GIB == pytest.approx(33.8, rel=0.05)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.cache.tokens.likely < 1000


def test_671b_in_fp8_needs_96_gb_cards(book, vllm):
    # InternLM/lmdeploy#2960, deepseek-ai/DeepSeek-R1#276: not on 8 x 80 GB, works on 8 x 96 GB.
    workload = serve(book, "deepseek-ai/DeepSeek-V3", "fp8", tokens=16_384, concurrency=8)
    eight = Layout(tensor=8)
    assert measure(workload, book.accelerators["h100-sxm5-80"], vllm, eight).verdict is Verdict.DOES_NOT_FIT
    found = measure(workload, book.accelerators["h20-96"], vllm, eight)
    assert found.verdict is Verdict.FITS
    assert likely(found, "weights") / GIB == pytest.approx(79.41, rel=0.03)


def test_static_pool_of_sglang_holds_367404_tokens(book):
    # vllm-project/vllm#21348: Qwen3-235B in FP8 on 4 x H100, static share 0.93, 16.46 GiB of cache.
    engine = with_policy(book.engine("sglang"), memory_share=0.93)
    workload = serve(book, "Qwen/Qwen3-235B-A22B", "fp8", concurrency=1000)
    found = measure(workload, book.accelerators["h100-sxm5-80"], engine, Layout(tensor=4))
    assert found.cache.bytes_per_token * 367_404 / GIB == pytest.approx(16.46, abs=0.01)
    assert found.cache.room_bytes.likely / GIB == pytest.approx(16.46, rel=0.10)


def test_bert_large_in_16_bits_needs_under_one_gb_beside_the_context(book, a100_40):
    found = measure(
        serve(book, "google-bert/bert-large-uncased", tokens=512, output=0), a100_40, book.engine("transformers")
    )
    assert found.cache is None
    assert found.allocated.likely / GB < 1.0


def test_four_bit_7b_takes_about_4_gb(book, a100_40, vllm):
    found = measure(serve(book, LLAMA_7B, "awq-int4"), a100_40, vllm)
    assert 3.5 < likely(found, "weights") / GB < 4.5


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ("google/flan-t5-base", "encoder and a decoder, is not known"),
        ("stabilityai/stable-diffusion-xl-base-1.0", "not known"),
        ("deepseek-ai/DeepSeek-V4-Pro", "KV cache"),
    ],
)
def test_what_is_not_modelled_says_so(book, a100_80, vllm, model, word):
    found = estimate(serve(book, model), a100_80, Layout(), vllm)
    assert isinstance(found, Unknown)
    assert word in found.reason


@pytest.mark.parametrize("field", ["layers", "hidden_size", "moe_intermediate_size"])
def test_a_shape_that_is_not_known_is_no_answer(book, a100_80, vllm, field):
    workload = serve(book, "Qwen/Qwen3-30B-A3B")
    nameless = replace(workload, model=replace(workload.model, **{field: None}))
    found = estimate(nameless, a100_80, Layout(), vllm)
    assert isinstance(found, Unknown)
    assert "Qwen3-30B-A3B" in found.reason


def test_a_card_of_unknown_memory_is_no_answer(book, vllm):
    found = estimate(serve(book, LLAMA_7B), replace(card(1), facts={}), Layout(), vllm)
    assert isinstance(found, Unknown)
    assert "test-card" in found.reason


def test_a_training_engine_does_not_serve(book, a100_80):
    found = estimate(serve(book, LLAMA_7B), a100_80, Layout(), book.engine("torchtune"))
    assert isinstance(found, Unknown)
