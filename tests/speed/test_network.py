"""Several machines: groups of cards over a network, and what the slower link costs."""

import math

import pytest
from tests.speed.build import LLAMA_7B, LLAMA_8B, LLAMA_70B, MIXTRAL, serve, speed, train

from rackrate.speed.communication import link
from rackrate.speed.network import (
    NETWORK_HOP_S,
    NETWORK_SHARE,
    Group,
    crossing_s,
    crossings,
    group_link,
    usual_network,
)
from rackrate.values import replace
from rackrate.workload.layout import Layout, Parallel
from rackrate.workload.network import network_of
from rackrate.workload.workload import Task

EIGHT_BY_TWO = Layout(data=16, nodes=2)


def by(workload, network, nodes=2):
    return replace(workload, parallel=Parallel(nodes=nodes, network=network_of(network)))


def step(book, workload, card, layout, engine="fsdp"):
    return speed(book, workload, card, engine, layout).training.step_s.likely


def test_a_group_inside_a_machine_has_the_machines_own_link(book):
    card, network = book.accelerators["h100-sxm5-80"], network_of("8 x 400 Gb/s")
    layout = Layout(tensor=8, pipeline=2, nodes=2)
    assert group_link(card, layout, Group(1, 8), network, early=False) == link(card, 8)


def test_a_group_across_machines_has_the_slower_of_both(book):
    card = book.accelerators["h100-sxm5-80"]
    inside = link(card, 8)
    slow = group_link(card, EIGHT_BY_TWO, Group(1, 16), network_of("100 Gb/s"), early=False)
    assert slow.bytes_per_s == NETWORK_SHARE * 12.5e9
    assert slow.latency_s == pytest.approx(inside.latency_s + 2 * NETWORK_HOP_S)
    fast = group_link(card, EIGHT_BY_TWO, Group(1, 16), network_of("8 x 800 Gb/s"), early=False)
    assert fast.bytes_per_s == inside.bytes_per_s


def test_groups_side_by_side_share_the_adapters(book):
    card, network = book.accelerators["h100-sxm5-80"], network_of("8 x 400 Gb/s")
    layout = Layout(tensor=8, data=2, nodes=2)  # each card's gradients leave the machine by themselves
    alone = group_link(card, layout, Group(8, 2), network, early=False)
    assert alone.bytes_per_s == pytest.approx(NETWORK_SHARE * network.bytes_per_s / 8)


def test_servers_usually_have_an_adapter_for_each_switched_card(book):
    cards = book.accelerators
    assert usual_network(cards["h100-sxm5-80"], 8).text == "8 x 400 Gb/s"
    assert usual_network(cards["a100-sxm4-80"], 8).text == "8 x 200 Gb/s"
    assert usual_network(cards["mi300x-192"], 8).text == "8 x 400 Gb/s"
    assert usual_network(cards["l40s"], 8).text == usual_network(cards["a40"], 2).text == "100 Gb/s"


def test_stages_cross_where_machines_end():
    assert crossings(Layout(tensor=8, pipeline=2, nodes=2)) == 1
    assert crossings(Layout(tensor=4, pipeline=4, nodes=2)) == 1
    assert crossings(Layout(tensor=16, pipeline=2, nodes=4)) == 1
    assert crossings(Layout(tensor=8, pipeline=2)) == crossings(Layout(data=16, nodes=2)) == 0
    layout, network = Layout(tensor=8, pipeline=2, nodes=2), network_of("100 Gb/s")
    assert crossing_s(layout, network, 1e9) == pytest.approx(NETWORK_HOP_S + 1e9 / (NETWORK_SHARE * 12.5e9))


def test_one_machine_is_estimated_as_ever(book):
    work = train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=16)
    one = speed(book, work, "h100-sxm5-80", "fsdp", Layout(data=8, zero_stage=3))
    named = speed(book, by(work, "10 Gb/s", 1), "h100-sxm5-80", "fsdp", Layout(data=8, zero_stage=3))
    assert one == named


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_slower_networks_are_never_faster(book, stage):
    work = train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=16)
    layout = replace(EIGHT_BY_TWO, zero_stage=stage)
    times = [
        step(book, by(work, f"{rate} Gb/s"), "a100-sxm4-80", layout) for rate in (10_000, 3200, 400, 100, 25, 10, 1)
    ]
    assert times == sorted(times)
    assert times[-1] > 5 * times[0]


def test_a_fast_network_keeps_most_of_two_machines_and_a_slow_one_is_worse_than_one(book):
    work = train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=64)
    one = step(book, work, "a100-sxm4-80", Layout(data=8, zero_stage=3))
    fast = step(book, by(work, "8 x 200 Gb/s"), "a100-sxm4-80", replace(EIGHT_BY_TWO, zero_stage=3))
    slow = step(book, by(work, "10 Gb/s"), "a100-sxm4-80", replace(EIGHT_BY_TWO, zero_stage=3))
    assert 1.7 < one / fast <= 2.0
    assert slow > one


def test_tensor_parallel_across_machines_is_slower_than_stages(book):
    """What vLLM's documentation says to do: tensors inside a machine, stages over machines."""
    work = by(serve(book, LLAMA_70B, "bf16", concurrency=32), "100 Gb/s")
    tensor, stages = (
        speed(book, work, "l40s", "vllm", layout).serving.output_tokens_per_s.likely
        for layout in (Layout(tensor=16, nodes=2), Layout(tensor=8, pipeline=2, nodes=2))
    )
    assert tensor < stages


def test_experts_over_a_slow_network_are_slower(book):
    work = train(book, MIXTRAL, Task.FULL_FINETUNE, global_batch=64, pure_16bit=False)
    layout = Layout(tensor=2, data=8, expert=8, zero_stage=1, nodes=2)
    fast, slow = (step(book, by(work, net), "h100-sxm5-80", layout, "megatron") for net in ("8 x 400 Gb/s", "25 Gb/s"))
    assert slow > 1.5 * fast


def test_ranges_are_wider_where_no_published_row_is(book):
    work = serve(book, LLAMA_7B, concurrency=8)
    one, two = (
        speed(book, work, "h100-sxm5-80", "vllm", layout).serving.output_tokens_per_s
        for layout in (Layout(tensor=8), Layout(tensor=8, data=2, nodes=2))
    )
    assert two.high / two.likely > one.high / one.likely


def test_zero_3_over_ten_gigabits_takes_twenty_times_as_long(book):
    """LoRA of an 8B in batches of 1 x 2: 90 s a step on two machines of A800 by 10 Gb/s, 4 on one (LlamaFactory#5014).

    Plain data parallel training has no such trouble there.
    """
    work = train(book, LLAMA_8B, Task.LORA, global_batch=32, packed=False)
    sharded = step(book, by(work, "10 Gb/s"), "a100-sxm4-80", replace(EIGHT_BY_TWO, zero_stage=3), "deepspeed")
    assert 45 < sharded < 135
    copies = step(book, by(work, "10 Gb/s"), "a100-sxm4-80", EIGHT_BY_TWO, "deepspeed")
    alone = step(book, replace(work, training=replace(work.training, global_batch=16)), "a100-sxm4-80", Layout(data=8))
    assert copies < 2 * alone


def test_no_layout_or_network_gives_a_time_that_is_no_number(book):
    work = train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=64)
    for layout in (
        Layout(data=2, nodes=2), Layout(tensor=16, nodes=2), Layout(tensor=2, pipeline=4, data=2, nodes=4),
        Layout(data=6, nodes=3), Layout(tensor=2, data=2, nodes=4), Layout(context=4, data=2, nodes=2),
    ):  # fmt: skip
        for network in ("0.1 Gb/s", "64 x 10000 Gb/s"):
            found = step(book, by(work, network, layout.nodes), "a40", layout, "megatron")
            assert math.isfinite(found)
            assert found > 0
