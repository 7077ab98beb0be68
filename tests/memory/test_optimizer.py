import pytest

from rackrate.evidence import Unknown
from rackrate.memory.adapters import adapter_params
from rackrate.memory.optimizer import form, state_bytes, step_temporary_bytes

N, E = 7e9, 0.5e9


@pytest.mark.parametrize(
    ("optimizer", "moment_bytes", "expected"),
    [
        ("adamw", 4, 8 * (N + E)),
        ("adamw", 2, 4 * (N + E)),
        ("lion", 4, 4 * (N + E)),
        ("sgd", 4, 0),
        ("sgd-momentum", 4, 4 * (N + E)),
        ("adafactor", 4, 0),
        ("muon", 4, 4 * N + 8 * E),
        ("adamw-8bit", 4, 2 * (1 + 4 / 256) * N + 8 * E),
    ],
)
def test_bytes_of_states(optimizer, moment_bytes, expected):
    assert state_bytes(optimizer, N, E, moment_bytes).likely == pytest.approx(expected)


def test_fp32_moments_of_a_nominal_7b_are_56_gb():
    assert state_bytes("adamw", 7e9, 0, 4).likely == 56e9


def test_paged_states_need_no_room_most_of_the_time():
    found = state_bytes("paged-adamw", N, E, 4)
    assert found.likely == 0
    assert 0 < found.high < state_bytes("adamw", N, E, 4).likely / 5


def test_an_optimizer_that_is_not_known_is_not_free():
    found = state_bytes("shampoo", N, E, 4)
    assert isinstance(found, Unknown)
    assert "shampoo" in found.reason


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("adamw", 2 * N),
        ("adamw-fused", 0),
        ("adamw-loop", 2 * E),
        ("adamw-8bit", 0),
        ("paged-adamw", 0),
        ("lion", 0),
        ("sgd", 0),
        ("adafactor", 8 * E),
        ("muon", 6 * E),
    ],
)
def test_working_memory_of_the_step(optimizer, expected):
    assert step_temporary_bytes(optimizer, N, 2, E) == expected


def test_an_id_has_a_base_and_the_way_it_is_run():
    paged = form("paged-adamw-8bit")
    assert (paged.base, paged.eight_bit, paged.paged, paged.fused, paged.loop) == ("adamw", True, True, False, False)
    assert form("adamw-fused").fused
    assert form("adamw-loop").loop
    assert form("adafactor").base == "adafactor"


@pytest.mark.parametrize(
    ("model_id", "rank", "targets", "printed"),
    [
        # Printed by the sources: Lightning-AI/litgpt resource tables and huggingface/peft method comparison.
        ("meta-llama/Llama-2-7b-hf", 8, ("q", "v"), 4_194_304),
        ("microsoft/phi-1_5", 8, ("q", "v"), 1_572_864),
        ("meta-llama/Llama-3.2-3B", 32, ("q", "v"), 9_175_040),
    ],
)
def test_adapters_have_the_parameters_that_trainers_print(book, model_id, rank, targets, printed):
    assert adapter_params(book.model(model_id), rank, targets) == printed


def test_all_means_every_linear_layer(book):
    model = book.model("meta-llama/Llama-2-7b-hf")
    named = adapter_params(model, 8, ("q", "k", "v", "o", "gate", "up", "down"))
    assert adapter_params(model, 8, ("all",)) == adapter_params(model, 8, ()) == named
    assert named == 8 * 32 * (8 * 4096 + 3 * (4096 + 11_008))


def test_each_expert_gets_its_own_adapter(book):
    model = book.model("mistralai/Mixtral-8x7B-v0.1")
    assert adapter_params(model, 4, ("up",)) == 4 * 32 * 8 * (4096 + 14_336)
