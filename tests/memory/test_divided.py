"""Divisions beyond the searched ones: uneven splits of layers, experts over cards, shards of experts."""

import pytest
from tests.memory.build import card, likely, measure, serve, train

from rackrate.memory.stages import stages
from rackrate.memory.weights import parameter_groups
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

A100_80 = card(81920)
LLAMA, MIXTRAL = "meta-llama/Llama-2-7b-hf", "mistralai/Mixtral-8x7B-v0.1"


@pytest.mark.parametrize(
    ("layers", "shares", "held"),
    [
        # src/llama-model.cpp: places 0 to n_layer, place i on the first card whose end is beyond i / (n_layer + 1)
        (32, (1.0, 1.0), [17, 15]),
        (32, (3.0, 1.0), [25, 7]),
        (32, (1.0, 0.0), [32]),
        (4, (1.0, 1.0, 1.0), [2, 2, 0]),  # the last card holds the output head alone
        (80, (1.0, 2.0, 1.0), [21, 40, 19]),
    ],
)
def test_layers_and_head_are_places_on_the_cards(layers, shares, held):
    found = stages(layers, Layout(pipeline=len(shares), layer_split=True, split=shares))
    assert [stage.layers for stage in found] == held
    assert [stage.first for stage in found] == [True] + [False] * (len(held) - 1)
    assert [stage.last for stage in found] == [False] * (len(held) - 1) + [True]


def test_the_fullest_card_of_an_uneven_split_decides(book):
    work, engine = serve(book, LLAMA, "gguf-q4_0", tokens=4096), book.engine("llama.cpp")
    even = measure(work, A100_80, engine, Layout(pipeline=2, layer_split=True))
    uneven = measure(work, A100_80, engine, Layout(pipeline=2, layer_split=True, split=(3.0, 1.0)))
    assert likely(uneven, "kv_cache") / likely(even, "kv_cache") == pytest.approx(25 / 16)
    assert uneven.peak.likely > 1.3 * even.peak.likely


def test_experts_over_replicas_in_serving(book):
    """A replica's cards hold an eighth of the experts each, and all of the rest: 8 cards that share experts."""
    work, engine = serve(book, MIXTRAL, "bf16"), book.engine("sglang")
    groups = parameter_groups(work.model)
    alone, shared = (measure(work, A100_80, engine, Layout(data=8, expert=expert)) for expert in (1, 8))
    saved = likely(alone, "weights") - likely(shared, "weights")
    assert saved == pytest.approx(2 * groups.experts * 7 / 8, rel=1e-6)


def test_experts_inside_a_tensor_group_change_no_bytes(book):
    work, engine = serve(book, MIXTRAL, "bf16"), book.engine("vllm")
    slices, whole = (measure(work, A100_80, engine, Layout(tensor=8, expert=expert)) for expert in (1, 8))
    assert likely(slices, "weights") == likely(whole, "weights")


def test_states_of_shared_experts_are_divided_among_those_that_hold_them(book):
    """With ZeRO, a card's part of all states is the same whether experts are shared or not."""
    work = train(book, MIXTRAL, Task.FULL_FINETUNE, checkpointing=Checkpointing.FULL, global_batch=8)
    engine = book.engine("megatron")
    alone, shared = (measure(work, A100_80, engine, Layout(data=8, zero_stage=1, expert=e)) for e in (1, 8))
    assert likely(shared, "optimizer_states") == pytest.approx(likely(alone, "optimizer_states"))
    assert likely(shared, "weights") < 0.2 * likely(alone, "weights")


def test_a_part_of_shared_experts_takes_a_part_of_the_states(book):
    """8 bytes a parameter of moments over 8 cards, experts on 2 cards each: one eighth of all parameters a card."""
    work = train(book, MIXTRAL, Task.FULL_FINETUNE, checkpointing=Checkpointing.FULL, global_batch=8)
    found = measure(work, A100_80, book.engine("megatron"), Layout(data=8, zero_stage=1, expert=4))
    assert likely(found, "optimizer_states") == pytest.approx(8 * work.model.params_total / 8, rel=1e-3)


@pytest.mark.parametrize("checkpointing", [Checkpointing.NONE, Checkpointing.FULL])
def test_the_fullest_card_of_shared_experts_may_get_more_tokens(book, checkpointing):
    """Up to a quarter more of what the experts keep, on the high side alone, and of one layer where layers run again."""
    work, engine = train(book, MIXTRAL, Task.FULL_FINETUNE, checkpointing=checkpointing), book.engine("megatron")
    alone, shared = (
        {each.name: each.bytes for each in measure(work, A100_80, engine, Layout(data=8, expert=e)).components}
        for e in (1, 8)
    )
    kept = "activations" if checkpointing is Checkpointing.NONE else "checkpoints"
    assert {name: shared[name].likely for name in (kept, "backward_layer")} == {
        name: alone[name].likely for name in (kept, "backward_layer")
    }
    assert 1.1 < shared["backward_layer"].high / alone["backward_layer"].high < 1.25
    assert (shared[kept].high > 1.1 * alone[kept].high) == (checkpointing is Checkpointing.NONE)
