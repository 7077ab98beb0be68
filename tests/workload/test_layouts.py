"""Layouts: valid divisors only, few of them, least communication first."""

import pytest

from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import divides_tensors, layouts
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_flags

LLAMA, LLAMA70, QWEN = "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-70b-hf", "Qwen/Qwen2.5-7B-Instruct"


def labels(book, gpus, /, **said):
    work = parse(request_from_flags({path.replace("__", "."): v for path, v in said.items()}), book).workload
    return [layout.label for layout in layouts(work.model, work, book.engine(work.engine_id), gpus)]


@pytest.mark.parametrize("task", ["inference", "lora", "qlora", "full_finetune", "pretrain"])
def test_one_card_has_one_layout(book, task):
    assert labels(book, 1, model=LLAMA, task=task) == ["single"]


def test_no_cards_no_layout(book):
    assert labels(book, 0, model=LLAMA) == []


def test_serving_divides_into_replicas(book):
    assert labels(book, 4, model=LLAMA70) == ["dp4", "tp2 dp2", "pp4", "tp4"]
    assert labels(book, 8, model=LLAMA70) == ["dp8", "tp2 dp4", "tp4 dp2", "pp8", "tp8"]


def test_heads_that_do_not_divide_are_not_divided(book):
    """Qwen2.5-7B has 28 heads and 4 KV heads: 4 works, 8 does not; 7 heads a card would leave KV heads cut."""
    assert labels(book, 8, model=QWEN) == ["dp8", "tp2 dp4", "tp4 dp2", "pp8"]
    assert not divides_tensors(book.model(QWEN), 7)


@pytest.mark.parametrize(
    ("changes", "tensor", "fits"),
    [
        ({}, 2, True),
        ({}, 3, False),  # 64 heads
        ({}, 16, True),  # 8 KV heads, each on two cards
        ({"kv_heads": 6}, 4, False),  # neither divides the other
        ({"kv_heads": 6, "mla_kv_lora_rank": 512}, 4, True),  # one latent, replicated
        ({"intermediate_size": 28673}, 2, False),
        ({"moe_intermediate_size": 1407}, 2, False),
        ({"vocab_size": 32001}, 2, True),  # padded to 32064
        (
            {"attention_heads": 63, "kv_heads": 63, "hidden_size": 63 * 128, "intermediate_size": 63},
            3,
            False,
        ),  # vocabulary
        ({"attention_heads": None}, 2, False),
    ],
)
def test_what_divides_by_tensors(book, changes, tensor, fits):
    assert divides_tensors(replace(book.model(LLAMA70), **changes), tensor) is fits


def test_a_layer_split_works_through_the_cards_one_after_the_other(book):
    assert labels(book, 4, model=LLAMA, engine="llama.cpp") == ["dp4", "split2 dp2", "split4"]


def test_adapters_are_replicated_or_sharded_whole(book):
    assert labels(book, 4, model=LLAMA, task="lora") == ["dp4", "dp4 zero3"]


def test_full_training_is_sharded(book):
    assert labels(book, 4, model=LLAMA, task="full_finetune") == ["dp4 zero2", "dp4 zero3", "tp2 dp2 zero3", "tp4"]


def test_an_engine_that_cannot_shard_replicates_or_splits_layers(book):
    assert labels(book, 2, model=LLAMA, task="full_finetune", engine="trainer") == ["dp2", "split2"]


def test_every_replica_gets_whole_micro_batches(book):
    said = {"model": LLAMA, "task": "lora", "batch": 4, "training.global_batch": 12}
    work = parse(request_from_flags(said), book).workload
    found = layouts(work.model, work, book.engine("peft-trl"), 8)
    assert {layout.gpus for layout in found} == {3}  # 12 sequences are three micro batches: five cards stay idle


def test_an_engine_for_one_card_uses_one_card(book):
    work = parse(request_from_flags({"model": LLAMA, "task": "lora"}), book).workload
    alone = replace(book.engine("peft-trl"), parallel=frozenset())
    assert layouts(work.model, work, alone, 8) == (Layout(),)


def test_a_pipeline_is_no_longer_than_the_model(book):
    short = replace(book.model(LLAMA70), layers=4)
    work = parse(request_from_flags({"model": LLAMA70}), book).workload
    assert "pp8" not in [layout.label for layout in layouts(short, work, book.engine("vllm"), 8)]


@pytest.mark.parametrize(
    ("layout", "label"),
    [
        (Layout(), "single"),
        (Layout(tensor=2, data=4, zero_stage=3), "tp2 dp4 zero3"),
        (Layout(pipeline=4, layer_split=True), "split4"),
        (Layout(pipeline=2, data=3, layer_split=True), "split2 dp3"),
    ],
)
def test_labels(layout, label):
    assert layout.label == label
