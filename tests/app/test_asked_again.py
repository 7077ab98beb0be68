"""What ``fit`` offers and what it says fits, asked again as a user would ask it."""

import json

import pytest

from rackrate import api

CHANGED = (
    {"model": "mistralai/Ministral-3-8B-Base-2512", "task": "inference", "serving": {"concurrency": 200}, "limits": {"gpus": ["gtx1080ti"]}},
    {"model": "mistralai/Ministral-3-8B-Base-2512", "task": "inference", "serving": {"concurrency": 200, "cache_precision": "int4"}, "limits": {"gpus": ["gtx1080ti"]}},
    {"model": "mistralai/Mixtral-8x22B-v0.1", "task": "inference", "serving": {"shared_prefix_tokens": 200}, "limits": {"gpus": ["v100-sxm3-32"], "gpu_counts": [8]}},
    {"model": "huggyllama/llama-30b", "task": "lora", "training": {"micro_batch": 3}, "limits": {"gpus": ["l20"], "gpu_counts": [2]}},
    {"model": "allenai/OLMo-7B-hf", "task": "pretrain", "training": {"micro_batch": 1, "loss": "chunked"}, "limits": {"gpus": ["a4000"], "gpu_counts": [8]}},
    {"model": "tiiuae/falcon-40b", "task": "full_finetune", "training": {"checkpointing": "none", "step_in_backward": True, "global_batch": 32}, "limits": {"gpus": ["mi300a-128"], "gpu_counts": [4]}},
    {"model": "Qwen/Qwen2.5-14B-Instruct", "task": "pretrain", "training": {"sequence_tokens": 128, "micro_batch": 8}, "limits": {"gpus": ["ascend-910b-64"]}},
    {"model": "google/flan-t5-large", "task": "full_finetune", "training": {"sequence_tokens": 4096, "micro_batch": 2}, "limits": {"gpus": ["a16"]}},
    {"model": "Qwen/Qwen2.5-14B-Instruct", "task": "pretrain", "training": {"sequence_tokens": 8192, "attention": "eager", "global_batch": 8}, "limits": {"gpus": ["dgx-spark-gb10"], "gpu_counts": [2]}, "parallel": {"tensor": 2, "zero_stage": 2}},
    {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"micro_batch": 12, "global_batch": 24}, "limits": {"gpus": ["rtx4090"]}},
)  # fmt: skip
"""Questions whose answers once offered a change that was refused or that did not fit."""

UNKNOWN_SPEED = (
    {"model": "tiiuae/falcon-40b", "task": "full_finetune", "training": {"checkpointing": "none", "step_in_backward": True, "global_batch": 32, "optimizer": "adamw-8bit"}, "limits": {"gpus": ["mi300a-128"], "gpu_counts": [4]}},
    {"model": "CohereForAI/c4ai-command-r-v01", "task": "inference", "quantization": "fp8", "limits": {"gpus": ["tpu-v5e"], "gpu_counts": [8]}},
)  # fmt: skip

BATCHES = (
    {"model": "Qwen/Qwen2.5-32B-Instruct", "task": "lora", "training": {"sequence_tokens": 512, "checkpointing": "full"}, "limits": {"gpus": ["quadro-rtx8000"], "gpu_counts": [8]}},
    {"model": "EleutherAI/pythia-1.4b", "task": "lora", "training": {"micro_batch": 4, "global_batch": 32}, "limits": {"gpus": ["quadro-rtx8000"]}},
    {"model": "gpt2", "task": "pretrain", "training": {"sequence_tokens": 128, "global_batch": 32}, "limits": {"gpus": ["a40"]}},
)  # fmt: skip


def name_of(question):
    cache = question.get("serving", {}).get("cache_precision", "")
    return "-".join(filter(None, (question["model"].rpartition("/")[2], *question["limits"]["gpus"], cache)))


def with_key(question, path, value):
    changed = json.loads(json.dumps(question))
    section, _, key = path.rpartition(".")
    (changed.setdefault(section, {}) if section else changed)[key] = value
    return changed


def with_change(question, change):
    """The question with a change as it is written on the screen."""
    if change.knob == "task":
        return {**question, "task": "qlora", "quantization": change.after.removeprefix("qlora (").rstrip(")")}
    if change.knob == "limits.gpu_counts":
        return with_key(question, change.knob, [int(change.after)])
    value = int(change.after) if change.after.isdigit() else {"true": True, "false": False}.get(change.after)
    return with_key(question, change.knob, change.after if value is None else value)


@pytest.mark.parametrize("question", CHANGED, ids=name_of)
def test_every_change_that_is_offered_helps_when_it_is_asked_for(question):
    found = api.fit(question)
    assert found.verdict != "fits"
    for change in found.changes:
        again = api.fit(with_change(question, change))
        assert again.verdict != "does_not_fit", change
        assert again.verdict == "fits" or change.peak_bytes.high > again.usable_bytes, change


@pytest.mark.parametrize("question", UNKNOWN_SPEED, ids=name_of)
def test_what_fits_in_one_layout_fits_though_its_speed_is_not_known(question):
    assert api.fit(question).verdict == "fits"


@pytest.mark.parametrize("question", BATCHES, ids=name_of)
def test_the_largest_micro_batch_fits_in_the_step_that_it_takes(question):
    (size,) = [each for each in api.fit(question).largest if each.knob == "training.micro_batch"]
    larger = with_key(question, size.knob, size.value)
    if size.global_batch is not None:
        larger = with_key(larger, "training.global_batch", size.global_batch)
    assert api.fit(larger).verdict == "fits"


def test_a_micro_batch_that_the_step_holds_takes_no_other_step():
    found = api.fit(
        {"model": "gpt2", "task": "pretrain", "training": {"global_batch": 2**20}, "limits": {"gpus": ["a40"]}}
    )
    (size,) = [each for each in found.largest if each.knob == "training.micro_batch"]
    assert (size.global_batch is None) == (2**20 % size.value == 0)
