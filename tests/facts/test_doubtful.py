"""Values that were in doubt: each is settled, kept beside the value that wins, marked, or not carried at all.

``doubtful.csv`` lists them. ``resolved``: the right value is what is loaded, and the wrong one is nowhere.
``kept``: the wrong value stays in the file as a row that loses, with a word on why. ``marked``: no value
is surely right; the one that is loaded, if any, says so. ``absent``: no row was written.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest

from rackrate.facts import rows

DOUBTS = list(csv.DictReader((Path(__file__).parent / "doubtful.csv").read_text("utf-8").splitlines()))
BASELINES = "baselines.csv"
FACTS = "accelerator_facts.csv"


def of(file):
    return [pytest.param(doubt, id=doubt["doubt"]) for doubt in DOUBTS if file == doubt["file"]]


def facts_of(tables, doubt):
    """The rows of one card and quantity: those of the winner first."""
    found = [r for r in tables[FACTS] if (r["accelerator"], r["quantity"]) == (doubt["subject"], doubt["column"])]
    return sorted(found, key=lambda r: rows.rank([r[c] for c in rows.FACT_COLUMNS]))


@pytest.mark.parametrize("doubt", of(FACTS))
def test_doubtful_numbers_of_cards(tables, book, doubt):
    found = facts_of(tables, doubt)
    name, factor = rows.QUANTITIES[doubt["column"]][1], rows.QUANTITIES[doubt["column"]][3]
    loaded = book.accelerators[doubt["subject"]].facts.get(name)
    assert (loaded is None) == (not doubt["right"])
    if loaded is not None:
        assert loaded.value == pytest.approx(float(doubt["right"]) * factor)
    if doubt["done"] == "kept":
        (lost,) = [r for r in found if float(r["value"]) == float(doubt["wrong"])]
        assert lost["condition"]
        assert doubt["says"] in " ".join(lost.values())
        return
    assert not doubt["wrong"] or float(doubt["wrong"]) not in [float(r["value"]) for r in found]
    if loaded is not None:
        assert doubt["says"] in " ".join(found[0].values())
    if doubt["done"] == "marked" and loaded is not None:
        assert found[0]["note"] or found[0]["condition"] or found[0]["kind"] in {"assumed", "derived"}


@pytest.mark.parametrize("doubt", [*of("accelerators.csv"), *of("models.csv")])
def test_doubtful_cells_of_cards_and_models(tables, doubt):
    found = [row for row in tables[doubt["file"]] if row["id"] == doubt["subject"]]
    if doubt["done"] == "absent":
        assert found == []
        return
    (row,) = found
    assert row[doubt["column"]] == doubt["right"] != doubt["wrong"]
    assert doubt["says"] in f"{row['notes']} {row['source']}"


@pytest.mark.parametrize("doubt", of("mig_profiles.csv"))
def test_doubtful_slices(tables, doubt):
    (row,) = [
        r for r in tables["mig_profiles.csv"] if (r["label"], r["profile"]) == (doubt["subject"], doubt["column"])
    ]
    assert doubt["says"] in row["notes"]


@pytest.mark.parametrize("doubt", of(BASELINES))
def test_doubtful_measurements_are_marked(tables, doubt):
    found = [
        row
        for row in tables[BASELINES]
        if (row["label"], row["quantity"]) == (doubt["subject"], doubt["column"])
        and float(row["value"]) == float(doubt["wrong"])
    ]
    assert [row["mark"] for row in found] == ["suspect"]
    assert doubt["says"] in found[0]["note"]


def test_every_doubt_is_dealt_with():
    done = Counter(doubt["done"] for doubt in DOUBTS)
    assert set(done) == {"resolved", "kept", "marked", "absent"}
    assert {doubt["file"] for doubt in DOUBTS} == {
        FACTS,
        BASELINES,
        "accelerators.csv",
        "models.csv",
        "mig_profiles.csv",
    }
    assert len({doubt["doubt"] for doubt in DOUBTS}) == len(DOUBTS) >= 95
