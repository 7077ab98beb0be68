"""Published speeds of image and video models against the estimates: the scores reached must not get worse."""

import csv
from functools import cache
from pathlib import Path

import fit_rates
import pytest
import score
from scoring import speed, speed_diffusion
from scoring.cells import Row, read_rows
from scoring.memory_rows import NotScored

from rackrate.facts.bundled import load

HERE = Path(__file__).parent
ROWS = HERE / "speed-diffusion.csv"
KNOWN = fit_rates.numbers("diffusion")


@cache
def scored():
    return speed.score(read_rows(ROWS), score.book_with(None))


def test_errors_intervals_and_order_of_cards():
    found = scored()
    assert found["scored"] == found["score_yes"] == 113
    assert found["median_abs_error"] <= 0.12
    assert found["p90_abs_error"] <= 0.40
    assert 0.75 <= found["coverage_80"] <= 0.90
    assert found["interval_score"] <= 0.80
    assert found["pair_order"] >= 0.95


def test_no_source_is_far_off():
    for name, each in scored()["by_source"].items():
        assert each["median_abs_error"] <= 0.22, name


def test_every_row_says_where_it_was_published():
    with ROWS.open(encoding="utf-8") as lines:
        assert all(row["source"] and row["source_path"] for row in csv.DictReader(lines))


@pytest.mark.parametrize("number", KNOWN, ids=lambda number: number.id)
def test_the_room_uses_the_listed_value(number):
    assert fit_rates.used(number) == pytest.approx(number.value)
    assert number.low <= number.value <= number.high


@pytest.mark.parametrize(
    ("name", "row", "other"),
    [
        ("diffusion_attention", "s2d01434", 0.7),
        ("diffusion_elementwise", "s2d01282", 200.0),
        ("diffusion_host", "s2d01404", 2e-3),
    ],
)
def test_each_number_moves_its_rows_and_is_put_back(name, row, other):
    found = fit_rates.targets([each for each in read_rows(ROWS) if each.text("id") == row], "diffusion")
    values = {number.id: number.value for number in KNOWN}
    before = fit_rates.errors(found, values, KNOWN)
    assert fit_rates.errors(found, {**values, name: other}, KNOWN) != before
    assert fit_rates.errors(found, values, KNOWN) == before


def test_rows_that_cannot_be_scored_say_why():
    known = next(row.cells for row in read_rows(ROWS) if row.text("id") == "s2d01282")
    for change, why in (
        ({"model_id": "nobody/none"}, "model"),
        ({"gpu_id": "x"}, "card"),
        ({"norm_metric": "y"}, "metric"),
    ):
        with pytest.raises(NotScored, match=why):
            speed_diffusion.predicted(Row({**known, **change}), load())
