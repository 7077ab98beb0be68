"""Pauses: checkpoints and evaluations count in the hours, by what is written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, speed, train

from rackrate.facts.bundled import load
from rackrate.speed.pauses import WRITE_BYTES_PER_S, checkpoint_bytes, pauses
from rackrate.workload.workload import Checkpointing, Task

A100 = "a100-sxm4-80"


def full(book, **sizes):
    return train(book, LLAMA_7B, Task.FULL_FINETUNE, **({"pure_16bit": False} | sizes))


@pytest.mark.parametrize(
    ("sizes", "each"),
    [
        ({}, 12),
        ({"pure_16bit": True}, 6),
        ({"optimizer": "sgd"}, 4),
        ({"optimizer": "lion"}, 8),
        ({"optimizer": "adamw-8bit"}, 4 + 2 * (1 + 4 / 256)),
    ],
)
def test_a_checkpoint_holds_weights_and_moments(sizes, each):
    book = load()
    work = full(book, **sizes)
    assert checkpoint_bytes(work, work.training) == pytest.approx(each * work.model.params_total)


def test_adapters_save_adapters_alone():
    book = load()
    work = train(book, LLAMA_7B)
    whole = full(book)
    assert checkpoint_bytes(work, work.training) < 0.01 * checkpoint_bytes(whole, whole.training)


def test_a_7b_checkpoint_takes_what_is_published():
    """PyTorch's blog on asynchronous checkpoints: 7B in 148.8 s."""
    book = load()
    work = full(book)
    found = pauses(work, work.training, 1).checkpoint_s
    assert found.low < 148.8 < found.high
    assert found.likely == pytest.approx(148.8, rel=0.15)


@given(steps=st.floats(1, 1e6), every=st.integers(0, 10**6))
def test_the_end_is_always_saved_and_more_often_is_never_less(steps, every):
    book = load()
    work = full(book, checkpoint_every=every)
    found = pauses(work, work.training, steps)
    assert found.checkpoints >= 1
    assert found.checkpoints >= (steps / every if every else 1) - 1e-6
    assert found.checkpoint_s.low > 0
    assert found.evaluations == 0


def test_evaluation_costs_a_forward_pass_of_its_tokens():
    book = load()
    plain = speed(book, full(book, checkpointing=Checkpointing.NONE), A100, "fsdp")
    tested = full(book, checkpointing=Checkpointing.NONE, evaluate_every=61, eval_tokens=3e5)
    found = speed(book, tested, A100, "fsdp")
    more = found.work_hours.likely - plain.work_hours.likely
    assert more == pytest.approx(10 * 1e5 / found.training.tokens_per_s.likely / 3600)
    assert found.training.tokens_per_s == plain.training.tokens_per_s


def test_rates_of_writing_are_ordered():
    assert WRITE_BYTES_PER_S.low < WRITE_BYTES_PER_S.likely < WRITE_BYTES_PER_S.high
