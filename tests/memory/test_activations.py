import pytest

from rackrate.facts.accelerator import Precision
from rackrate.memory.activations import (
    checkpoint_bytes_per_token,
    saved_bytes_per_token,
    selective_bytes_per_token,
)
from rackrate.memory.inference_activations import inference_bytes_per_token
from rackrate.memory.layer_pass import Pass, element_bytes
from rackrate.memory.logits import Loss, loss_bytes
from rackrate.values import replace

PLAIN = Pass(
    element_bytes=2,
    tensor=1,
    flash=True,
    adapters=(),
    adapter_bytes=2,
    tokens_per_sequence=2048,
    tokens=2048,
)


@pytest.mark.parametrize(
    "model_id",
    ["meta-llama/Llama-2-7b-hf", "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.2-1B", "Qwen/Qwen2.5-7B-Instruct"],
)
def test_gated_decoder_keeps_h_20_8f_4g_bytes_and_4_a_head(book, model_id):
    model = book.model(model_id)
    h, f, g = model.hidden_size, model.intermediate_size / model.hidden_size, model.kv_heads / model.attention_heads
    expected = h * (20 + 8 * f + 4 * g) + 4 * model.attention_heads
    assert saved_bytes_per_token(model, PLAIN) == pytest.approx(expected)


def test_adapters_in_fp32_on_q_and_v_keep_h_20_6f_4g(book):
    # Slope of a two-step simulation of transformers 5.24 with PEFT, Llama-2-7B: 20 h + 6 f h + 4 g h.
    model = book.model("meta-llama/Llama-2-7b-hf")
    how = replace(PLAIN, adapters=("q", "v"), adapter_bytes=4)
    h, f = model.hidden_size, model.intermediate_size / model.hidden_size
    assert saved_bytes_per_token(model, how) == pytest.approx(h * (20 + 6 * f + 4) + 4 * 32)


def test_adapters_in_the_compute_type_share_their_input(book):
    model = book.model("meta-llama/Llama-2-7b-hf")
    one = saved_bytes_per_token(model, replace(PLAIN, adapters=("q",)))
    three = saved_bytes_per_token(model, replace(PLAIN, adapters=("q", "k", "v")))
    assert one == three
    assert saved_bytes_per_token(model, replace(PLAIN, adapters=("q", "up"))) == one + 2 * model.hidden_size


def test_bert_in_16_bits_with_stored_scores_is_the_34_sbh_formula_with_an_fp32_softmax(book):
    # arXiv 2205.05198: 34 h + 5 a s with a 16-bit softmax; two more bytes a pair for one in FP32 and its cast.
    model = book.model("google-bert/bert-large-uncased")
    how = replace(PLAIN, flash=False, tokens_per_sequence=512)
    h, heads, s = model.hidden_size, model.attention_heads, 512
    assert saved_bytes_per_token(model, how) == pytest.approx(34 * h + (5 + 4) * heads * s)


def test_selective_checkpointing_keeps_h_8_2f_2g(book):
    model = book.model("meta-llama/Meta-Llama-3-8B")
    h, f, g = 4096, 14_336 / 4096, 8 / 32
    assert selective_bytes_per_token(model, PLAIN) == pytest.approx(h * (8 + 2 * f + 2 * g))


def test_selective_checkpointing_of_stored_scores_drops_the_scores_alone(book):
    model = book.model("google-bert/bert-large-uncased")
    how = replace(PLAIN, flash=False, tokens_per_sequence=512)
    assert selective_bytes_per_token(model, how) == pytest.approx(34 * model.hidden_size)


def test_full_checkpointing_keeps_the_input(book):
    assert checkpoint_bytes_per_token(book.model("meta-llama/Llama-2-7b-hf"), PLAIN) == 2 * 4096


def test_tensor_parallelism_divides_all_but_the_norms(book):
    model = book.model("meta-llama/Llama-2-7b-hf")
    one, two = (saved_bytes_per_token(model, replace(PLAIN, tensor=t)) for t in (1, 2))
    kept_whole = 16 * model.hidden_size
    assert two - kept_whole == pytest.approx((one - kept_whole) / 2)


def test_a_mixture_keeps_its_experts_share_and_copies_of_the_token(book):
    model = book.model("Qwen/Qwen3-30B-A3B")
    without = replace(model, experts=0, intermediate_size=8 * model.moe_intermediate_size)
    copies = 2 * 2 * 8 * model.hidden_size
    assert saved_bytes_per_token(model, PLAIN) == pytest.approx(saved_bytes_per_token(without, PLAIN) + copies)


def test_vllm_profile_of_llama_3_8b_is_about_one_gib_at_8192_tokens(book):
    # vllm-project/vllm#10511 logs 1.26 GiB, which its sampler sets; the layer itself needs 0.8.
    size = 8192 * inference_bytes_per_token(book.model("meta-llama/Meta-Llama-3-8B"), 1, 2)
    assert 0.7 < size / 2**30 < 1.26


def test_plain_cross_entropy_of_4096_tokens_and_151936_words_peaks_near_7_gib():
    # NVIDIA-NeMo/Automodel#2336: 2.32 GiB a copy, 6.54 GiB asked for at the crash.
    kept, peak = loss_bytes(Loss(kind="full", chunked_bytes=2.25), 4096, 151_936, 2048)
    assert kept / 2**30 == pytest.approx(2.32, abs=0.01)
    assert 6.0 < peak / 2**30 < 7.1


def test_chunked_and_fused_losses_are_smaller():
    peaks = [
        loss_bytes(Loss(kind=kind, chunked_bytes=2.25), 4096, 128_256, 4096)[1] for kind in ("full", "chunked", "fused")
    ]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.parametrize(
    ("precision", "size"), [(Precision.BF16, 2), (Precision.FP8, 2), (Precision.FP32, 4), (Precision.TF32, 4)]
)
def test_element_bytes(precision, size):
    assert element_bytes(precision) == size
