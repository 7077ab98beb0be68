"""Training of encoder-decoders: FLOPs as PyTorch counts them, and a step that is both sides, one after the other."""

import pytest
from tests.memory.build import SINGLE
from tests.memory.test_two_sided_training import CONFIGS, asked

from rackrate.evidence import Unknown
from rackrate.facts.architecture.read import model_of
from rackrate.memory.estimate import estimate as memory_of
from rackrate.speed.estimate import estimate
from rackrate.speed.flops import model_flop_per_token
from rackrate.speed.replica import replica
from rackrate.speed.training import micro_step_terms, step_s, tokens_per_step, useful_share
from rackrate.values import replace

SMALL = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 256, "encoder_attention_heads": 4, "encoder_ffn_dim": 1024,
         "vocab_size": 52000, "num_mel_bins": 128, "max_target_positions": 448}  # fmt: skip


@pytest.fixture(scope="module")
def card(book):
    return book.accelerators["a100-sxm4-80"]


def one(book, card, workload):
    found = replica(workload, card, SINGLE, book.engine(workload.engine_id))
    assert not isinstance(found, Unknown)
    return found


def speed(book, card, workload):
    engine = book.engine(workload.engine_id)
    return estimate(workload, card, SINGLE, engine, memory_of(workload, card, SINGLE, engine))


@pytest.mark.parametrize(("kind", "counted"), [("bart", 160.73e9), ("m2m_100", 518.21e9), ("t5", 502.31e9)])
def test_flops_are_those_that_pytorch_counts(book, kind, counted):
    """Forward and backward of 512 tokens in and 128 out (torch.utils.flop_counter, transformers 5.24, stored scores).

    There the decoder's scores are made in full, here half of them are needed.
    """
    workload = asked(book, kind, "full_finetune", sequence_tokens=512, target_tokens=128)
    found = 512 * model_flop_per_token(workload, workload.training)
    assert found == pytest.approx(counted, rel=0.002)


def test_flops_of_a_window_of_sound_are_those_that_pytorch_counts(book, monkeypatch):
    """The first convolution gets no gradient of its input there, 1 % of so small a model."""
    monkeypatch.setitem(CONFIGS, "whisper", SMALL)
    workload = asked(book, "whisper", "full_finetune", sequence_tokens=128)
    assert model_of({"model_type": "whisper", **SMALL}, id="x").hidden_size == 256
    found = 128 * model_flop_per_token(workload, workload.training)
    assert found == pytest.approx(46.2e9, rel=0.02)


def test_adapters_leave_out_a_third_and_checkpoints_read_again(book, card):
    full, lora = (asked(book, "bart", task, checkpointing="none") for task in ("full_finetune", "lora"))
    needed = [model_flop_per_token(work, work.training) for work in (full, lora)]
    assert 0.66 < needed[1] / needed[0] < 0.76
    again = asked(book, "bart", "full_finetune", checkpointing="full")
    seconds = [step_s(one(book, card, work), work, work.training) for work in (full, again)]
    assert 1.2 < seconds[1] / seconds[0] < 1.34


def test_a_step_is_both_sides_and_what_one_asks_of_the_other(book, card):
    workload = asked(book, "bart", "full_finetune", sequence_tokens=512, target_tokens=128)
    run, made = workload.training, one(book, card, workload)
    whole = sum(micro_step_terms(made, workload, run).values())
    less = replace(run, target_tokens=64)
    assert sum(micro_step_terms(made, workload, less).values()) < whole
    assert sum(micro_step_terms(made, workload, replace(run, sequence_tokens=256)).values()) < whole


@pytest.mark.parametrize(("kind", "task"), [("bart", "lora"), ("t5", "full_finetune"), ("whisper", "lora"), ("m2m_100", "full_finetune")])  # fmt: skip
def test_speeds_are_known_within_a_factor_of_two_and_below_the_ceiling(book, card, kind, task):
    found = speed(book, card, asked(book, kind, task))
    assert not isinstance(found, Unknown)
    pace = found.training.tokens_per_s
    assert pace.likely / pace.low == pytest.approx(2)
    assert pace.high <= found.ceiling_tokens_per_s
    assert ["no published one was found" in finding.observed for finding in found.findings] == [True]


def test_windows_of_sound_are_rows_of_one_length(book, card):
    workload = asked(book, "whisper", "lora", rows=1000, epochs=2, micro_batch=4, global_batch=16)
    run, made = workload.training, one(book, card, workload)
    assert run.tokens == 2000 * run.sequence_tokens
    assert useful_share(run) == 1
    assert run.tokens / tokens_per_step(made, run) == 2000 / 16
