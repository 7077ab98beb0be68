import pytest
from tests.memory.build import GB, GIB

from rackrate.facts.model import Model
from rackrate.memory.stages import stages
from rackrate.memory.weights import parameter_groups, params_on, weight_bytes
from rackrate.workload.layout import Layout

LLAMA = "meta-llama/Llama-2-7b-hf"


def whole(model):
    return stages(model.layers, Layout())[0]


def weights(book, model_id, form, *, ties=True):
    model = book.model(model_id)
    return weight_bytes(model, parameter_groups(model), whole(model), book.formats[form], ties=ties)


def test_llama_2_7b_in_16_bits_takes_13_48_gb(book):
    assert weights(book, LLAMA, "fp16") == 2 * 6_738_415_616
    assert weights(book, LLAMA, "fp16") / GB == pytest.approx(13.48, abs=0.005)
    assert weights(book, LLAMA, "fp16") / GIB == pytest.approx(12.55, abs=0.005)


def test_groups_of_llama_2_7b_are_its_matrices(book):
    groups = parameter_groups(book.model(LLAMA))
    assert groups.embedding == groups.head == 32_000 * 4096
    assert groups.attention == 32 * 4 * 4096 * 4096
    assert groups.mlp == 32 * 3 * 4096 * 11_008
    assert groups.norms == 65 * 4096
    assert (groups.experts, groups.other) == (0, 0)


@pytest.mark.parametrize(
    "model_id",
    [LLAMA, "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3", "mistralai/Mixtral-8x7B-v0.1", "microsoft/phi-2"],
)
def test_closed_formulas_name_nearly_every_parameter(book, model_id):
    model = book.model(model_id)
    groups = parameter_groups(model)
    assert groups.other / model.params_total < 0.005
    assert groups.attention > 0


def test_groups_add_up_to_the_total_for_every_bundled_model(book):
    for model in map(book.model, book.model_ids):
        groups = parameter_groups(model)
        parts = groups.embedding + groups.head + groups.norms + groups.layer_matrices
        if model.hidden_size and model.layers:
            assert parts == model.params_total, model.id


def test_experts_hold_most_of_a_mixture(book):
    model = book.model("mistralai/Mixtral-8x7B-v0.1")
    assert parameter_groups(model).experts / model.params_total == pytest.approx(0.966, abs=0.002)


def test_four_bit_70b_file_is_42_5_gb_and_not_35(book):
    # RunPod docs and two publishers of Llama-3.1-70B Q4_K_M: 42.52 GB (runpod/docs#839).
    assert weights(book, "meta-llama/Meta-Llama-3.1-70B", "gguf-q4_k_m") / GB == pytest.approx(42.52, rel=0.01)


def test_embedding_and_head_stay_in_16_bits(book):
    model = book.model(LLAMA)
    groups = parameter_groups(model)
    expected = groups.layer_matrices * 4.5 / 8 + 2 * (groups.norms + groups.embedding + groups.head)
    assert weights(book, LLAMA, "nf4") == expected
    assert weights(book, LLAMA, "nf4") / GB == pytest.approx(4.17, abs=0.01)


def test_double_quantisation_saves_0_37_bits_a_weight(book):
    # litgpt resource tables: 4.57 to 4.26 GB for Llama-2-7B, 0.30 GB predicted by QLoRA's arithmetic.
    saved = weights(book, LLAMA, "nf4") - weights(book, LLAMA, "nf4-dq")
    assert saved / GB == pytest.approx(0.30, abs=0.01)


def test_an_engine_that_does_not_tie_holds_the_matrix_twice(book):
    model = book.model("meta-llama/Llama-3.2-1B")
    assert model.tie_embeddings
    extra = weights(book, model.id, "bf16", ties=False) - weights(book, model.id, "bf16")
    assert extra == 2 * model.vocab_size * model.hidden_size


def test_a_tied_head_on_another_card_is_a_second_copy(book):
    model = book.model("meta-llama/Llama-3.2-1B")
    groups = parameter_groups(model)
    first, last = stages(model.layers, Layout(pipeline=2))
    both = sum(params_on(model, groups, stage, ties=True) for stage in (first, last))
    assert both == model.params_total + model.vocab_size * model.hidden_size


def test_encoders_have_no_head(book):
    model = book.model("google-bert/bert-large-uncased")
    assert parameter_groups(model).head == 0
    assert weights(book, model.id, "fp32") / GIB == pytest.approx(1.25, abs=0.005)


def test_a_model_without_dimensions_still_has_its_weights():
    bare = Model(
        id="x", family="x", params_total=1000, params_active=1000, hidden_size=None, layers=None, attention_heads=None,
        kv_heads=None, head_dim=None, intermediate_size=None, vocab_size=None, tie_embeddings=None, max_context=None,
        attention="full", layers_full=None, layers_windowed=None, window=None, layers_linear=None,
    )  # fmt: skip
    assert parameter_groups(bare).layer_matrices == 1000
