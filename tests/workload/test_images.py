"""Image generation: what is asked, what is taken where nothing is said, and what does not go with it."""

import pytest

from rackrate.problems import Code
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings
from rackrate.workload.workload import Task

SDXL = {"model": "stabilityai/sdxl", "task": "diffusion"}


def asked(book, said):
    parsed = parse(request_from_flags(said), book)
    assert isinstance(parsed, Parsed), parsed
    return parsed.workload


def test_what_is_not_said_is_the_pipelines_own(book):
    work = asked(book, SDXL)
    images = work.images
    assert (images.width, images.height, images.at_once, images.pipeline_offload) == (1024, 1024, 1, "none")
    assert not images.slicing
    assert not images.tiling
    assert work.training is None
    assert work.serving is None
    assert work.engine_id == "diffusers"


def test_the_disk_is_for_all_networks(book):
    work = asked(book, SDXL)
    assert work.model.params_total == 2_567_463_684 + 123_060_480 + 694_659_840 + 83_653_863
    assert work.use.disk_bytes == 64e9  # 50 GB and twice 16 bits of each, in whole GB


def test_a_key_of_images_tells_the_task(book):
    assert asked(book, {"model": SDXL["model"], "images.width": 640}).task is Task.DIFFUSION


def test_batch_is_images_at_once(book):
    assert asked(book, SDXL | {"batch": 3}).images.at_once == 3


def test_settings_give_the_workload_back(book):
    said = SDXL | {"images.width": 640, "batch": 2, "images.pipeline_offload": "model", "images.tiling": True}
    work = asked(book, said)
    again = parse(request_from_flags(settings(work)), book)
    assert isinstance(again, Parsed)
    assert again.workload.images == work.images
    assert again.workload.assumptions == ()


@pytest.mark.parametrize(
    ("said", "code", "subject"),
    [
        (SDXL | {"context": 4096}, Code.CONFLICT, "--context"),
        (SDXL | {"training.lora_rank": 8}, Code.CONFLICT, "--rank"),
        (SDXL | {"serving.requests": 8}, Code.CONFLICT, "--requests"),
        (SDXL | {"engine": "vllm"}, Code.CONFLICT, "--engine"),
        (SDXL | {"images.width": 20}, Code.OUT_OF_BOUNDS, "--width"),
        (SDXL | {"model": "meta-llama/Llama-2-7b-hf"}, Code.NOT_YET, "--model"),
        ({"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "images.width": 512}, Code.CONFLICT, "--width"),
    ],
)
def test_what_does_not_go_with_images_is_refused(book, said, code, subject):
    findings = parse(request_from_flags(said), book)
    assert isinstance(findings, tuple)
    assert (code, subject) in [(f.code, f.subject) for f in findings]


# ---------------------------------------------------------------- training on images


def test_a_diffusion_model_is_trained_on_images(book):
    work = asked(book, SDXL | {"task": "lora", "training.rows": 500, "training.epochs": 2, "images.width": 512})
    run = work.training
    assert work.engine_id == "diffusers"
    assert work.engine_task == "diffusion_lora"
    assert work.images is None
    assert (run.pictured.width, run.pictured.height, run.pictured.cached) == (512, 1024, "")
    assert run.sequence_tokens == 64 * 128
    assert run.tokens == 1000 * run.sequence_tokens
    assert run.lora_targets == ("q", "k", "v", "o")


def test_settings_give_a_run_on_images_back(book):
    work = asked(book, SDXL | {"task": "lora", "training.cached": "texts", "training.lora_targets": ["all"]})
    again = parse(request_from_flags(settings(work)), book)
    assert isinstance(again, Parsed)
    assert again.workload.training == work.training
    assert again.workload.assumptions == ()


@pytest.mark.parametrize(
    ("said", "code", "subject"),
    [
        (SDXL | {"task": "lora", "context": 4096}, Code.CONFLICT, "--context"),
        (SDXL | {"task": "lora", "training.packed": True}, Code.CONFLICT, "--packed"),
        (SDXL | {"task": "lora", "training.checkpointing": "selective"}, Code.NOT_YET, "--checkpointing"),
        (SDXL | {"task": "lora", "images.steps": 20}, Code.CONFLICT, "--steps"),
        (SDXL | {"task": "lora", "engine": "peft-trl"}, Code.CONFLICT, "--engine"),
        (SDXL | {"task": "pretrain"}, Code.NOT_YET, "--task"),
        ({"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training.cached": "all"}, Code.CONFLICT, "--cached"),
        ({"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "engine": "diffusers"}, Code.CONFLICT, "--engine"),
    ],
)
def test_what_does_not_go_with_training_on_images_is_refused(book, said, code, subject):
    findings = parse(request_from_flags(said), book)
    assert isinstance(findings, tuple)
    assert (code, subject) in [(f.code, f.subject) for f in findings]
