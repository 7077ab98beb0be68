"""The fitted numbers of inference speed: few, listed with evidence, and the ones that the room uses."""

import ast
import csv
from pathlib import Path

import fit_speed
import numpy as np
import pytest
from scoring.cells import read_rows
from scoring.speed_metrics import predicted
from scoring.speed_quick import likely
from scoring.speed_rows import case_of

import rackrate.speed
from rackrate.facts.bundled import load

HERE = Path(__file__).parent
KNOWN = fit_speed.numbers()
MOST = 36


def some_targets(*ids):
    from score import book_with
    from scoring.speed_metrics import prepared

    rows = [
        row
        for name in ("speed-measured.csv", "speed-measured-2.csv", "speed-measured-3.csv")
        for row in read_rows(HERE / name)
    ]
    book = book_with(None)
    return [
        fit_speed.Target(row=row, case=prepared(row, book), measured=row.number("norm_value"))
        for row in rows
        if row.text("id") in ids
    ]


def test_there_are_few_and_each_says_its_mechanism_and_evidence():
    with fit_speed.NUMBERS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert 0 < len(rows) <= MOST
    assert all(row[key].strip() for row in rows for key in ("mechanism", "source", "rows", "sources"))


@pytest.mark.parametrize("number", KNOWN, ids=lambda number: number.id)
def test_the_room_uses_the_listed_value(number):
    assert fit_speed.used(number, load().engine) == pytest.approx(
        [number.value] * len(number.engines or ("",)), rel=1e-3
    )
    assert number.low <= number.value <= number.high


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("dense_reading", "sm00539"),
        ("server_host", "sm00611"),
        ("flop_llama_cpp", "sm00142"),
        ("launch_plugins", "sm00751"),
        ("unpack_llama_cpp", "s2d00412"),
    ],
)
def test_each_number_moves_its_rows_and_is_put_back(name, row):
    found, values = some_targets(row), np.array([number.value for number in KNOWN])
    before = fit_speed.residuals(found, KNOWN, values)
    moved = values * np.array([0.8 if number.id == name else 1.0 for number in KNOWN])
    assert fit_speed.residuals(found, KNOWN, moved) != pytest.approx(before)
    assert fit_speed.residuals(found, KNOWN, values) == pytest.approx(before)


@pytest.mark.parametrize("row", ["sm00539", "sm00142", "sm00751", "s2d00567"])
def test_refits_see_the_same_speed_as_the_estimate(row):
    target = some_targets(row)[0]
    book = __import__("score").book_with(None)
    assert likely(target.row, target.case) == pytest.approx(predicted(target.row, case_of(target.row, book)).likely)


ROOM = Path(rackrate.speed.__file__).parent
CONSTANTS = Path(fit_speed.__file__).with_name("speed_constants.csv")
RATES = Path(fit_speed.__file__).with_name("rate_numbers.csv")
MOST_OF_ALL = 60


def constants_of(path):
    """Public constants of a module that hold a number."""
    for node in ast.parse(path.read_text("utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id.isupper() and not target.id.startswith("_"):
            held = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
            if any(isinstance(value, int | float) and not isinstance(value, bool) for value in held):
                yield f"{path.stem}:{target.id}"


def listed():
    with CONSTANTS.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_every_constant_of_the_room_is_listed_with_its_kind_and_source():
    """The simulation's own settings (steps, seeds) are no estimates of speed."""
    found = {name for path in ROOM.glob("*.py") for name in constants_of(path)}
    rows = {row["place"]: row for row in listed()}
    assert found == {place for place in rows if not place.startswith("engines/")}
    assert {row["kind"] for row in rows.values()} == {"fitted", "hand", "read", "derived", "width"}
    assert all(row["what"] and row["source"] for row in rows.values())


def test_numbers_fitted_and_set_by_hand_are_sixty_at_most():
    """What was read off a publication, counted from code, or only widens a range is listed beside them."""
    with RATES.open(encoding="utf-8") as lines:
        rates = len(list(csv.DictReader(lines)))
    beside = sum(int(row["numbers"]) for row in listed() if row["kind"] in {"fitted", "hand"})
    assert len(KNOWN) + rates + beside <= MOST_OF_ALL
