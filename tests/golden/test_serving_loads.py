"""Published loads beside simulated ones: where the rows come from, and how far off the simulation may be."""

import csv
import statistics
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("serving-loads.csv")
MOST = {
    "first_token_s_p50": 0.40,
    "first_token_s_p99": 0.40,
    "s_per_output_token_p50": 0.20,
    "s_per_output_token_p99": 0.15,
}
"""Median absolute error of each figure; none of them was fitted to these rows."""


@pytest.fixture(scope="module")
def compared():
    from build_load_page import compared

    return compared()


def test_every_row_has_a_public_source_and_sizes():
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) >= 60
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["source"].strip()
        assert float(row["value"]) > 0
        assert bool(row["requests_per_s"]) != bool(row["users"])


@pytest.mark.parametrize("metric", MOST)
def test_simulated_latencies_are_near_published_ones(compared, metric):
    errors = [abs(each.error) for each in compared if each.row["metric"] == metric]
    assert len(errors) >= 10
    assert statistics.median(errors) <= MOST[metric]


def test_medians_of_engines_with_steps_of_one_are_nearer_still(compared):
    medians = [each for each in compared if each.row["metric"] == "first_token_s_p50"]
    plain = [abs(each.error) for each in medians if "ten steps" not in each.row["note"]]
    assert statistics.median(plain) <= 0.30
