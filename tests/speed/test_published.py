"""Against published measurements: the median error of each task, and the physical limit in every row.

``published.csv`` carries one row for each source, engine, card, layout and band
of concurrency of the public tables that it names (the first of each, not the
best), and the LoRA profiles of QwenLM/Qwen, which set no efficiency of matrix products.
"""

import csv
from pathlib import Path
from statistics import median

import pytest
from tests.speed.build import one_replica, room, serve, train

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.speed.decode import decode_step_s
from rackrate.speed.estimate import estimate
from rackrate.speed.prefill import prefill_s
from rackrate.speed.serving import ceiling_requests_per_s
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

ROWS = list(csv.DictReader((Path(__file__).parent / "published.csv").read_text("utf-8").splitlines()))
TRAINING = {"pretrain", "full_finetune", "lora", "qlora"}
OPTIMISED = {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}


def kind(row):
    return "train" if row["task"] in TRAINING else row["task"]


def layout_of(row):
    split = row["engine"] == "llama.cpp" and int(row["pipeline"]) > 1
    return Layout(tensor=int(row["tensor"]), pipeline=int(row["pipeline"]), data=int(row["data"]), layer_split=split)


def engine_of(row):
    """The engine at the version in use when the row was seen; one publisher kept build 4753 of llama.cpp."""
    dated = {"vllm": {"2024": "0.5", "2025": "0.9"}, "llama.cpp": {"2024": "2900", "2025": "4753", "2026": "4753"}}
    version = dated.get(row["engine"], {}).get(row["seen_in"][:4])
    return f"{row['engine']}=={version}" if version else row["engine"]


def predicted(book, row):
    """The likely tokens/s of the row's metric."""
    return trained(book, row) if kind(row) == "train" else inferred(book, row)


def trained(book, row):
    job = train(
        book,
        row["model"],
        Task(row["task"]),
        row["weights"],
        sequence_tokens=int(row["sequence_tokens"]),
        micro_batch=int(row["micro_batch"]),
        global_batch=int(row["global_batch"]),
        packed=row["packed"] == "true",
        checkpointing=Checkpointing(row["checkpointing"]),
    )
    layout = replace(layout_of(row), zero_stage=3 if int(row["data"]) > 1 else 0)
    found = known(estimate(job, book.accelerators[row["accelerator"]], layout, book.engine(engine_of(row)), room()))
    return found.training.tokens_per_s.likely


def request(book, row):
    half = row["engine"] in {"llama.cpp", "transformers"} or row["weights"] == "fp16"
    return serve(
        book,
        row["model"],
        row["weights"],
        precision=Precision.FP16 if half else Precision.BF16,
        prompt_tokens=int(row["prompt_tokens"]),
        output_tokens=int(row["output_tokens"] or 1),
        concurrency=int(row["concurrency"]),
        cache_bits=int(row["cache_bits"]),
    )


def inferred(book, row):
    job, layout = request(book, row), layout_of(row)
    sizes, accelerator, engine = job.serving, book.accelerators[row["accelerator"]], book.engine(engine_of(row))
    one = one_replica(book, job, accelerator, engine_of(row), layout)
    if row["task"] == "prefill":
        return sizes.concurrency * sizes.prompt_tokens / prefill_s(one, sizes.concurrency, sizes.prompt_tokens)
    if row["task"] == "decode":
        context = sizes.prompt_tokens + sizes.output_tokens / 2
        return sizes.concurrency / decode_step_s(one, sizes.concurrency / layout.data, context)
    memory = estimate_memory(job, accelerator, layout, engine)
    found = estimate(job, accelerator, layout, engine, room() if isinstance(memory, Unknown) else memory)
    if isinstance(found, Unknown):  # it was measured, so that it fitted: at least one request at a time
        found = known(estimate(job, accelerator, layout, engine, room(1)))
    return found.serving.output_tokens_per_s.likely


def errors(book, chosen):
    return {i: abs(predicted(book, row) / float(row["tokens_per_s"]) - 1) for i, row in enumerate(ROWS) if chosen(row)}


@pytest.mark.parametrize(
    ("name", "at_least", "most"),
    [("decode", 70, 0.15), ("prefill", 70, 0.25), ("serve", 80, 0.25), ("train", 25, 0.25)],
)
def test_median_error_of_optimised_engines_and_training(book, name, at_least, most):
    found = errors(book, lambda row: kind(row) == name and (name == "train" or row["engine"] in OPTIMISED))
    assert len(found) >= at_least
    assert median(found.values()) <= most


def test_eager_decode_is_within_a_factor_of_two(book):
    """Launch time is the host's, which no row states: a middle is all that can be given."""
    found = errors(book, lambda row: row["task"] == "decode" and row["engine"] == "transformers")
    assert median(found.values()) <= 1.0


def test_vllm_of_today_is_within_15_per_cent(book):
    """One public harness, vLLM 0.22 to 0.27 on A10G, L4, A100, H100 and H200, 1 to 200 requests in flight."""
    found = errors(book, lambda row: row["engine"] == "vllm" and row["source"].startswith("SpareCores"))
    assert len(found) > 50
    assert median(found.values()) <= 0.15


@pytest.mark.parametrize("engine", ["vllm", "tensorrt-llm", "llama.cpp", "sglang"])
def test_no_published_row_is_above_the_ceiling(book, engine):
    for row in ROWS:
        if row["engine"] != engine or row["task"] not in {"serve", "decode"}:
            continue
        job, layout = request(book, row), layout_of(row)
        one = one_replica(book, job, row["accelerator"], engine_of(row), layout)
        sizes = job.serving if row["task"] == "serve" else replace(job.serving, prompt_tokens=1)
        limit = layout.data * ceiling_requests_per_s(one, sizes.concurrency / layout.data, sizes)
        assert float(row["tokens_per_s"]) <= limit * sizes.output_tokens * 1.02, row
