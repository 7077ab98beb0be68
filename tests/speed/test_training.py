"""Training: step time, what is exposed and what padding and recomputation cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, LLAMA_13B, one_replica, speed, train

from rackrate.problems import Code
from rackrate.speed.estimate_types import Bound
from rackrate.speed.training import micro_batches, tokens_per_step, useful_share
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

A100 = "a100-sxm4-80"
EIGHT = Layout(data=8, zero_stage=3)


def tokens_per_s(book, workload, card=A100, engine="peft-trl", layout=Layout()):  # noqa: B008
    return speed(book, workload, card, engine, layout).training.tokens_per_s.likely


def test_hours_are_tokens_over_the_rate_and_steps_over_their_time(book):
    found = speed(book, train(book, LLAMA_7B), A100, "peft-trl")
    rate, step = found.training.tokens_per_s, found.training.step_s
    pauses = found.training.pauses_hours.likely
    assert found.work_hours.likely == pytest.approx(1e7 / rate.likely / 3600 + pauses)
    assert pauses == pytest.approx(2 * found.training.checkpoint_s.likely / 3600)  # 611 steps
    assert step.likely * rate.likely == pytest.approx(8 * 2048)
    assert found.training.model_flop_utilisation.likely == pytest.approx(rate.likely / found.ceiling_tokens_per_s)


@pytest.mark.parametrize(("sequence", "seconds"), [(512, 1.5), (1024, 2.8), (2048, 5.2), (4096, 10.1)])
def test_lora_of_qwen_7b_takes_about_what_its_authors_measured(book, sequence, seconds):
    """QwenLM/Qwen README: A100-SXM4-80G, batch 1, 8 accumulations, seconds an iteration."""
    found = speed(book, train(book, "Qwen/Qwen-7B", sequence_tokens=sequence), A100, "peft-trl").training
    assert found.step_s.likely == pytest.approx(seconds, rel=0.25)


def test_short_sequences_are_bound_by_the_host(book):
    found = speed(book, train(book, LLAMA_7B, sequence_tokens=256), A100, "peft-trl")
    assert found.limited_by is Bound.HOST
    assert speed(book, train(book, LLAMA_7B, sequence_tokens=4096), A100, "peft-trl").limited_by is Bound.COMPUTE


def test_full_checkpointing_costs_a_fifth_to_a_third(book):
    """Llama-3.2-3B on A100: 9,174 to 7,210 tokens/s (pytorch/torchtune README)."""
    plain, full = (
        tokens_per_s(book, train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=kind), engine="torchtune")
        for kind in (Checkpointing.NONE, Checkpointing.FULL)
    )
    assert 1 - full / plain == pytest.approx(1 - 7210 / 9174, abs=0.07)


def test_four_bit_base_weights_cost_a_step_and_less_so_with_more_tokens(book):
    """NF4 adds 80 ms to a short step of Llama-2-7B on A100 40 GB and 191 ms to 13B (litgpt tables, two expansions)."""
    added = {}
    for model in (LLAMA_7B, LLAMA_13B):
        plain, packed = (
            one_replica(book, train(book, model, task, form), "a100-sxm4-40", "peft-trl")
            for task, form in ((Task.LORA, "bf16"), (Task.QLORA, "nf4"))
        )
        assert plain.expansion_s > packed.expansion_s  # 16-bit weights would have more to read
        added[model] = 2 * packed.expansion_s
    assert added[LLAMA_7B] == pytest.approx(0.080, rel=0.2)
    assert added[LLAMA_13B] == pytest.approx(0.191, rel=0.25)
    ratios = [
        tokens_per_s(book, train(book, LLAMA_7B, Task.LORA, sequence_tokens=s))
        / tokens_per_s(book, train(book, LLAMA_7B, Task.QLORA, "nf4", sequence_tokens=s))
        for s in (1024, 2048, 8192)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1.02 < ratios[-1] < ratios[0] < 2.6


def test_rows_that_are_not_packed_lose_tokens_to_padding(book):
    packed, loose = (train(book, LLAMA_7B, micro_batch=4, packed=flag) for flag in (True, False))
    assert useful_share(packed.training) == 1
    assert useful_share(loose.training) == pytest.approx(1 / 1.59, abs=0.01)
    assert useful_share(train(book, LLAMA_7B, packed=False).training) == 1
    assert tokens_per_s(book, loose) == pytest.approx(tokens_per_s(book, packed) * useful_share(loose.training))


def test_sharding_over_pcie_loses_and_over_nvswitch_hides(book):
    job = train(book, LLAMA_7B, Task.FULL_FINETUNE, micro_batch=2, global_batch=64)
    switch, pcie = (tokens_per_s(book, job, card, "fsdp", EIGHT) for card in (A100, "a100-pcie-80"))
    assert pcie < 0.6 * switch
    assert speed(book, job, "a100-pcie-80", "fsdp", EIGHT).limited_by is Bound.COMMUNICATION
    assert speed(book, job, A100, "fsdp", EIGHT).limited_by is Bound.COMPUTE


def test_a_bigger_global_batch_hides_the_gradients_of_plain_data_parallel(book):
    plain = Layout(data=8)
    few, many = (
        tokens_per_s(book, train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=size), "a100-pcie-80", "fsdp", plain)
        for size in (8, 256)
    )
    assert many > 1.3 * few


def test_a_pipeline_has_a_bubble_that_more_micro_batches_fill(book):
    staged = Layout(pipeline=4)
    few, many = (
        tokens_per_s(book, train(book, LLAMA_7B, Task.FULL_FINETUNE, global_batch=size), A100, "deepspeed", staged)
        for size in (4, 64)
    )
    assert few < 0.65 * many


def test_global_batch_is_rounded_up_to_whole_micro_batches_on_all_replicas(book):
    job = train(book, LLAMA_7B, micro_batch=3, global_batch=20)
    one = one_replica(book, job, A100, "peft-trl", Layout(data=2))
    assert micro_batches(one, job.training) == 4
    assert tokens_per_step(one, job.training) == 4 * 3 * 2 * 2048


@given(
    st.sampled_from(["a40", A100, "h100-sxm5-80", "l4", "rtx4090", "mi300x-192"]),
    st.sampled_from([task for task in Task if task.trains]),
    st.integers(1, 16),
    st.tuples(st.sampled_from([128, 1024, 8192]), st.sampled_from([1, 2, 8])),
)
def test_training_never_exceeds_the_peak(book, card, task, micro, sizes):
    sequence, cards = sizes
    form = "nf4" if task is Task.QLORA else "bf16"
    job = train(book, LLAMA_7B, task, form, micro_batch=micro, global_batch=64, sequence_tokens=sequence)
    layout = Layout(data=cards, zero_stage=3 if cards > 1 else 0)
    found = speed(book, job, card, "fsdp", layout)
    assert found.training.tokens_per_s.high <= found.ceiling_tokens_per_s * (1 + 1e-9)
    assert 0 < found.training.model_flop_utilisation.low <= found.training.model_flop_utilisation.high <= 1 + 1e-9


@pytest.mark.parametrize("offload", ["none", "activations", "optimizer", "parameters"])
def test_a_step_on_the_host_is_said_not_to_be_timed(book, offload):
    found = speed(book, train(book, LLAMA_7B, Task.FULL_FINETUNE, offload=offload), "a100-sxm4-80", "deepspeed")
    warned = {Code.OFFLOAD_NOT_TIMED} if offload in {"optimizer", "parameters"} else set()
    assert {each.code for each in found.findings} == warned
