"""The fitted numbers of the memory room: few, listed with evidence, and the ones that the room uses."""

import csv
from pathlib import Path

import fit_memory
import pytest
from scoring.cells import read_rows

from rackrate.facts.bundled import load

HERE = Path(__file__).parent
KNOWN = fit_memory.numbers()


def some_targets(*ids):
    rows = [row for row in read_rows(HERE / "memory-measured.csv") if row.text("id") in ids]
    return fit_memory.targets(rows, HERE / "memory-models.csv")


def test_there_are_few_and_each_says_its_mechanism_evidence_and_source():
    with fit_memory.NUMBERS.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert 0 < len(rows) <= 25
    assert all(row[key].strip() for row in rows for key in ("mechanism", "evidence", "source"))


@pytest.mark.parametrize("number", KNOWN, ids=lambda number: number.id)
def test_the_room_uses_the_listed_value(number):
    assert fit_memory.used(number, load().engine) == pytest.approx(number.value)
    assert number.low <= number.value <= number.high


@pytest.mark.parametrize(
    ("name", "row", "other"),
    [
        ("fsdp_reserved", "D237", 1.2),
        ("eager_reserved", "D112", 1.1),
        ("compiled_loss", "D083", 0.0),
        ("whole_blocks", "D203", 0.01),
    ],
)
def test_each_number_moves_its_rows_and_is_put_back(name, row, other):
    found, values = some_targets(row), {number.id: number.value for number in KNOWN}
    before = fit_memory.errors(found, values, KNOWN)
    assert fit_memory.errors(found, {**values, name: other}, KNOWN) != before
    assert fit_memory.errors(found, values, KNOWN) == before


def test_a_number_without_evidence_takes_its_prior():
    values = fit_memory.fitted(some_targets("D203"), KNOWN)
    assert values["fsdp_reserved"] == next(n.prior for n in KNOWN if n.id == "fsdp_reserved")
