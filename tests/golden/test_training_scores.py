"""Published training speeds against the estimates: the scores reached must not get worse.

The bounds are what is asked of the estimates, not what they reach; rows are
those of public tables that state enough to be estimated.
"""

import csv
from functools import cache
from pathlib import Path

import fit_rates
import pytest
import score
from scoring import speed
from scoring.cells import read_rows

HERE = Path(__file__).parent
ROWS = HERE / "speed-training.csv"
KNOWN = fit_rates.numbers("training")


@cache
def scored():
    return speed.score(read_rows(ROWS), score.book_with(None))


def test_errors_intervals_and_order_of_cards():
    found = scored()
    assert found["scored"] == found["score_yes"] == 378
    assert found["median_abs_error"] <= 0.08
    assert found["p90_abs_error"] <= 0.30
    assert found["median_of_sources"] <= 0.12
    assert abs(found["bias"]) <= 0.05
    assert 0.75 <= found["coverage_80"] <= 0.90
    assert found["interval_score"] <= 0.65
    assert found["pair_order"] >= 0.95


@pytest.mark.parametrize(("group", "most"), [("by_task", 0.16), ("by_gpu", 0.26), ("by_source", 0.26)])
def test_no_task_card_or_source_is_far_off(group, most):
    for name, each in scored()[group].items():
        assert each["median_abs_error"] <= most, name


def test_every_row_says_where_it_was_published():
    with ROWS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert all(row["source"] and row["source_path"] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)


def test_fitted_numbers_are_few_and_each_says_its_mechanism_evidence_and_source():
    with fit_rates.NUMBERS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert 0 < sum(row["subject"] == "training" for row in rows) <= 10
    assert all(row[key].strip() for row in rows for key in ("mechanism", "evidence", "source"))


@pytest.mark.parametrize("number", KNOWN, ids=lambda number: number.id)
def test_the_room_uses_the_listed_value(number):
    assert fit_rates.used(number) == pytest.approx(number.value)
    assert number.low <= number.value <= number.high


@pytest.mark.parametrize(
    ("name", "row", "other"),
    [
        ("sustained", "sm00001", 0.8),
        ("attention", "sm00035", 0.3),
        ("elementwise", "sm00138", 300.0),
        ("grouped", "sm01002", 0.6),
        ("scores", "sm01415", 20.0),
        ("hop", "sm00001", 0.0),
    ],
)
def test_each_number_moves_its_rows_and_is_put_back(name, row, other):
    found = fit_rates.targets([each for each in read_rows(ROWS) if each.text("id") == row], "training")
    values = {number.id: number.value for number in KNOWN}
    before = fit_rates.errors(found, values, KNOWN)
    assert fit_rates.errors(found, {**values, name: other}, KNOWN) != before
    assert fit_rates.errors(found, values, KNOWN) == before


def test_the_fit_leaves_a_number_without_evidence_alone():
    found = fit_rates.targets([each for each in read_rows(ROWS) if each.text("id") == "sm01415"], "training")
    fitted = fit_rates.fitted(found, KNOWN)
    assert fitted["grouped"] == next(n.value for n in KNOWN if n.id == "grouped")
    assert abs(fit_rates.errors(found, fitted, KNOWN)[0]) < abs(
        fit_rates.errors(found, {n.id: n.value for n in KNOWN}, KNOWN)[0]
    )
