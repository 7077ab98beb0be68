"""Every collected row is in the project's files, or listed with the reason why not."""

import csv
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT.parent / "shared" / "reference"
PAGE = (ROOT / "docs" / "collected.md").read_text("utf-8")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("compare_reference", ROOT / "tools" / "compare_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder():
    if not (FOLDER / "gpus.csv").exists():
        pytest.skip("the collected tables are not on this machine")
    return FOLDER


def test_every_reason_is_given_in_words():
    rows = list(csv.DictReader((ROOT / "tools" / "reference_changes.csv").read_text("utf-8").splitlines()))
    assert all(row["reason"] and row["table"] in PAGE and row["reason"] in PAGE for row in rows)


def test_every_row_is_accounted_for(tool, folder):
    found, reasons = tool.fates(folder)
    assert len(found) == 2226
    assert [fate for fate in found if fate.fate == tool.UNACCOUNTED] == []
    assert reasons.unused == []
    assert tool.unlisted(folder) == []


def test_the_page_says_what_the_comparison_finds(tool, folder):
    assert tool.page(folder) == PAGE


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        ("gpus.csv", "tdp_w", "301"),
        ("gpus.csv", "cooling", "liquid"),
        ("gpus.csv", "notes", "nobody carried this"),
        ("models.csv", "layers", "33"),
        ("models.csv", "notes", "nobody carried this"),
        ("mig-profiles.csv", "max_instances", "6"),
        ("gpu-baselines.csv", "value", "1.5"),
        ("offers-seed.csv", "market", "spot"),
        ("billing-rules.csv", "value", "61"),
    ],
)
def test_a_row_that_was_not_carried_is_seen(tool, folder, file, column, value):
    rows = tool.read(folder / file)
    rows[5] = rows[5] | {column: value}
    fates = list(tool.TABLES[file](rows, tool.Reasons()))
    assert [fate.number for fate in fates if fate.fate == tool.UNACCOUNTED] == [7]


def test_what_is_known_of_access_was_looked_for_somewhere():
    from rackrate.facts import bundled

    rows = list(csv.DictReader((ROOT / "tools" / "access_looked_for.csv").read_text("utf-8").splitlines()))
    looked = {row["provider"] for row in rows}
    assert {fact.provider for fact in bundled.access()} <= looked
    assert looked <= {provider.id for provider in bundled.providers()}
    assert all(row["where"] for row in rows)
