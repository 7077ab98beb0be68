"""Published peaks against the estimate: the likely value within a tolerance, and under-estimates named."""

import csv
from pathlib import Path

import pytest
from tests.memory.build import GIB, bare, card, measure, serve, train, with_policy

from rackrate.facts.accelerator import Precision
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

with (Path(__file__).parent / "measured.csv").open(encoding="utf-8") as lines:
    ROWS = list(csv.DictReader(lines))


def workload_of(book, row):
    precision, task = Precision(row["precision"]), Task(row["task"])
    tokens, batch = int(row["tokens"]), int(row["batch"])
    if task is Task.INFERENCE:
        output = int(row["output"])
        return serve(book, row["model"], row["form"], tokens=tokens, output=output, precision=precision)
    return train(
        book,
        row["model"],
        task,
        tokens=tokens,
        batch=batch,
        form=row["form"],
        precision=precision,
        checkpointing=Checkpointing(row["checkpointing"]),
        pure_16bit=row["pure_16bit"] == "true",
        global_batch=batch * int(row["gpus"]),
        lora_rank=32 if task is Task.LORA else 0,
        lora_targets=("q", "v"),
    )


def engine_of(book, row):
    engine = book.engine(row["engine"])
    key, _, value = row["policy"].partition("=")
    if key:
        engine = with_policy(engine, **{key: True if value == "true" else value})
    return bare(engine) if row["task"] == "inference" else engine


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_published_peak(book, row):
    layout = Layout(data=int(row["gpus"]), zero_stage=int(row["zero"]))
    found = measure(workload_of(book, row), card(143_771, (9, 0)), engine_of(book, row), layout)
    predicted = {"allocated": found.allocated, "reserved": found.reserved}[row["metric"]]
    assert predicted.likely / GIB == pytest.approx(float(row["gib"]), rel=float(row["tolerance"]))


def test_every_row_has_a_public_source():
    assert all(row["source"] and "shared" not in row["source"] for row in ROWS)
