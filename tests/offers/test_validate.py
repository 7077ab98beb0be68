"""Price lists are checked before release: each planted fault is told with its file, line and column."""

import csv

import pytest

from rackrate.offers.catalog import DATA, Record
from rackrate.offers.validate import Known, validate_offers

KNOWN = Known(
    columns=Record._fields,
    providers=frozenset({"runpod", "verda"}),
    currencies=frozenset({"USD", "CNY"}),
    places=frozenset({("verda", "FIN-03")}),
)


@pytest.fixture
def row():
    with (DATA / "offers-clouds.csv").open(encoding="utf-8", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["provider"] == "verda")


def test_a_good_row_has_no_fault(row):
    assert validate_offers({"offers-x.csv": [row]}, KNOWN) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("source", ""),
        ("source", "shared/research/prices.md"),
        ("provider", "runpood"),
        ("name", " "),
        ("price", "0"),
        ("price", "-1"),
        ("price", "nan"),
        ("price", "abc"),
        ("currency", "usd"),
        ("currency", "XAU"),
        ("term", "fortnight"),
        ("hours_in_term", "0"),
        ("market", "on_demnd"),
        ("prepaid", "maybe"),
        ("observed_on", ""),
        ("observed_on", "2026-13-01"),
        ("observed_how", "guessed"),
        ("excludes", "gpu"),
        ("flags", "spotty"),
        ("doubts", "odd"),
        ("gpus", "0"),
        ("minimum_terms", "0"),
        ("validity_days", "-1"),
        ("includes_disk_gb", "nan"),
        ("share", "2"),
        ("memory_gb", "many"),
        ("region", "nowhere-1"),
    ],
)
def test_a_planted_fault_is_told_with_its_place(row, column, value):
    found = validate_offers({"offers-x.csv": [row | {column: value}]}, KNOWN)
    assert f"offers-x.csv:2 {column}" in {fault.subject for fault in found}
    assert all(fault.expected and fault.action for fault in found)


def test_an_observation_is_made_once(row):
    assert [fault.code for fault in validate_offers({"offers-x.csv": [row, row]}, KNOWN)] == ["duplicate"]


def test_other_columns_are_refused(row):
    row = {name: value for name, value in row.items() if name != "source"}
    assert [fault.subject for fault in validate_offers({"offers-x.csv": [row]}, KNOWN)] == ["offers-x.csv:1"]
