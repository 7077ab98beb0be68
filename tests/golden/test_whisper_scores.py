"""Published peaks and times of Whisper, none of which was fitted: memory is met, speed is not, and the pages say so."""

import csv
import statistics
from pathlib import Path

import pytest

from rackrate.facts import bundled
from rackrate.memory.estimate import estimate as memory_of
from rackrate.speed.estimate import estimate as speed_of
from rackrate.workload.layout import Layout
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_flags

ROWS = list(csv.DictReader(Path(__file__).with_name("whisper-measured.csv").read_text("utf-8").splitlines()))
MIB = 2**20


@pytest.fixture(scope="module")
def found():
    book = bundled.load()
    return [(row, *both(book, row)) for row in ROWS]


def both(book, row):
    said = {"model": row["model"], "engine": row["engine"], "quantization": row["format"], "precision": "fp16"}
    said |= {"serving.beams": int(row["beams"]), "serving.concurrency": int(row["batch"])}
    work = parse(request_from_flags(said | {"serving.audio_seconds": float(row["audio_s"])}), book).workload
    card, engine = book.accelerators[row["gpu"]], book.engine(row["engine"])
    memory = memory_of(work, card, Layout(), engine)
    return memory, speed_of(work, card, Layout(), engine, memory)


def test_memory_is_within_13_per_cent(found):
    errors = [abs(memory.peak.likely / MIB / float(row["memory_mib"]) - 1) for row, memory, _ in found]
    assert statistics.median(errors) < 0.07
    assert max(errors) < 0.13


def test_times_are_too_short_by_a_factor_of_up_to_twelve(found):
    """The page of speed says that host work of a window and rules on time marks are not counted."""
    factors = [
        float(row["seconds"]) * speed.serving.audio_s_per_s.likely / float(row["audio_s"]) for row, _, speed in found
    ]
    assert all(1 < factor < 12 for factor in factors)
    assert 2 < statistics.median(factors) < 4
