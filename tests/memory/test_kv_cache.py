import pytest
from tests.memory.build import GIB

from rackrate.evidence import Unknown, known
from rackrate.memory.kv_cache import cache_shape, layer_bytes_per_token
from rackrate.memory.stages import stages
from rackrate.units import MIB
from rackrate.values import replace
from rackrate.workload.layout import Layout


def shape(book, model_id, engine="transformers", *, tensor=1, bits=16, **policy):
    model = book.model(model_id)
    rules = replace(book.engine(engine).serving, **policy)
    return cache_shape(model, stages(model.layers, Layout(tensor=tensor))[0], tensor, bits, rules)


def per_token(book, model_id, *args, **kwargs):
    return known(shape(book, model_id, *args, **kwargs)).bytes_per_token(1000)


@pytest.mark.parametrize(
    ("model_id", "expected", "source"),
    [
        ("meta-llama/Llama-2-7b-hf", 524_288, "2 x 32 layers x 32 heads x 128 x 2 B"),
        ("meta-llama/Llama-2-13b-hf", 819_200, "2 x 40 x 40 x 128 x 2: 0.82 MB a token"),
        ("meta-llama/Meta-Llama-3-8B", 131_072, "8 KV heads"),
        ("tiiuae/falcon-7b", 8_192, "multi-query: one KV head of 64 in 32 layers"),
        ("deepseek-ai/DeepSeek-V3", 70_272, "61 x (512 + 64) x 2: ggml-org/llama.cpp#11446"),
        ("openai/gpt-oss-120b", 73_728, "all 36 layers inside the window: alvarobartt/hf-mem#60"),
    ],
)
def test_bytes_per_token(book, model_id, expected, source):
    assert known(shape(book, model_id)).bytes_per_token(100) == expected


def test_qwen3_30b_grows_by_2880_mib_over_30719_tokens(book):
    # Qwen speed benchmark tables: memory at 30,720 + 1 against 1 token.
    grown = known(shape(book, "Qwen/Qwen3-30B-A3B"))
    assert grown.sequence_bytes(30_719).likely / MIB == pytest.approx(2880, abs=0.5)


def test_a_72b_without_grouped_queries_needs_20_gib_for_8k_tokens_and_a_70b_with_them_2_5(book):
    # ggml-org/llama.cpp#6032
    assert known(shape(book, "Qwen/Qwen-72B")).sequence_bytes(8192).likely / GIB == pytest.approx(20.0)
    assert known(shape(book, "meta-llama/Llama-2-70b-hf")).sequence_bytes(8192).likely / GIB == pytest.approx(2.5)


def test_compressed_latent_of_32k_tokens_is_2196_mib_in_a_layer_split_engine(book):
    # ikawrakow/ik_llama.cpp#235: 1,952 MiB latent + 244 MiB rotary part.
    cache = known(shape(book, "deepseek-ai/DeepSeek-V3", "llama.cpp"))
    assert cache.sequence_bytes(32_768).likely / MIB == 2196


def test_llama_3_1_405b_keeps_504_kib_a_token_over_eight_cards(book):
    # vllm-project/vllm#6746
    assert 8 * per_token(book, "meta-llama/Meta-Llama-3.1-405B", tensor=8) == 504 * 1024


def test_a_padded_latent_takes_34560_bytes_in_v2_lite(book):
    # vLLM 0.7 padded 576 values to a multiple of 128, 640: 27 layers x 640 x 2 B.
    assert per_token(book, "deepseek-ai/DeepSeek-V2-Lite", mla_cache_padding=128) == 34_560


def test_sparse_attention_keeps_indexer_keys_as_well(book):
    dense, sparse = (per_token(book, f"deepseek-ai/DeepSeek-V3{suffix}") for suffix in ("", ".2"))
    assert sparse - dense == 61 * 132


def test_more_cards_than_kv_heads_keep_copies(book):
    llama = book.model("meta-llama/Meta-Llama-3-8B")
    assert layer_bytes_per_token(llama, 16, 8, 1) == layer_bytes_per_token(llama, 16, 16, 1)


def test_latents_are_not_divided_by_tensor_parallelism(book):
    model = "deepseek-ai/DeepSeek-V3"
    assert per_token(book, model, tensor=8) == per_token(book, model)


def test_eight_bit_cache_is_half(book):
    model = "meta-llama/Llama-2-7b-hf"
    assert per_token(book, model, bits=8) == per_token(book, model) / 2


def test_windowed_layers_stop_growing_where_the_engine_frees_them(book):
    saves = known(shape(book, "google/gemma-3-27b-it", window_saves=True))
    charges = known(shape(book, "google/gemma-3-27b-it", window_saves=False))
    assert saves.sequence_bytes(512).likely == charges.sequence_bytes(512).likely
    assert saves.bytes_per_token(8192) / charges.bytes_per_token(8192) == pytest.approx(10 / 62)
    assert saves.sequence_bytes(8192).likely < 0.35 * charges.sequence_bytes(8192).likely


def test_tokens_come_in_whole_pages(book):
    cache = known(shape(book, "meta-llama/Llama-2-7b-hf", "vllm"))
    assert cache.sequence_bytes(1).likely == cache.sequence_bytes(16).likely == 16 * 524_288
    assert cache.sequence_bytes(17).likely == 32 * 524_288


def test_linear_layers_keep_a_state_that_no_token_adds_to(book):
    cache = known(shape(book, "Qwen/Qwen3-Next-80B-A3B-Instruct"))
    assert cache.bytes_per_token(100) == 12 * 2 * 2 * 256 * 2
    state = cache.sequence_bytes(1)
    assert state.low < state.likely < state.high
    assert cache.sequence_bytes(1001).likely - state.likely == 1000 * cache.bytes_per_token(1)


def test_a_cache_that_no_formula_describes_is_unknown(book):
    found = shape(book, "deepseek-ai/DeepSeek-V4-Pro")
    assert isinstance(found, Unknown)
    assert "DeepSeek-V4-Pro" in found.reason


def test_heads_that_are_not_known_are_not_zero(book):
    nameless = replace(book.model("meta-llama/Llama-2-7b-hf"), kv_heads=None)
    found = cache_shape(nameless, stages(32, Layout())[0], 1, 16, book.engine("vllm").serving)
    assert isinstance(found, Unknown)
