"""Published runs on several machines, to none of which a number is fitted; what they say that no network explains."""

import csv
import statistics
from pathlib import Path

import pytest
from scoring.cells import read_rows
from scoring.speed_rows import layout_of

ROWS = Path(__file__).with_name("nodes-measured.csv")


def factors():
    """How much longer an iteration on two machines of two cards took than on one card, by its length."""
    rows = list(csv.DictReader(ROWS.read_text("utf-8").splitlines()))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return {int(one["seq_len"]): 4 * float(one["norm_value"]) / float(two["norm_value"]) for one, two in pairs}


def test_an_iteration_took_1_8_times_as_long_whatever_its_length():
    found = factors()
    assert statistics.median(found.values()) == pytest.approx(1.8, abs=0.05)
    assert found[8192] == pytest.approx(found[256], rel=0.05)  # 16 s more against 0.9 s: adapters' gradients are alike


def test_rows_on_machines_get_their_layout():
    nodes = [layout_of(row).nodes for row in read_rows(ROWS)]
    assert nodes == [1, 2] * 6
