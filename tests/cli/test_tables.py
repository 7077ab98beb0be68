"""CSV, Markdown and the screen show the rows of the JSON document, in its order."""

import csv
import io
from decimal import Decimal

import pytest
from tests.cli.ask import CARDS, FITS, NO_FITS, NO_PLANS, NO_SPEEDS, PLANS, SPEEDS, answer, name_of

from rackrate.cli.layout import Table
from rackrate.cli.output import as_csv, as_markdown


def csv_rows(args):
    """The rows of the CSV form, by column."""
    rows = list(csv.reader(io.StringIO(answer(*args, "--csv").out), strict=True))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert len(set(rows[0])) == len(rows[0])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def cells(line):
    """The cells of a row of a Markdown table; an escaped bar is no border."""
    assert line.startswith("| ")
    assert line.endswith(" |")
    found, cell, escaped = [], "", False
    for character in line[2:]:
        if character == "|" and not escaped:
            found.append(cell.strip())
            cell = ""
        elif escaped or character != "\\":
            cell += character
        escaped = character == "\\" and not escaped
    return found


def markdown_rows(args):
    """The rows of the Markdown form, by column."""
    header, rule, *body = answer(*args, "--md").out.splitlines()
    titles = cells(header)
    assert set(cells(rule)) <= {"---", "---:"}
    assert len(cells(rule)) == len(titles)
    return [dict(zip(titles, cells(line), strict=True)) for line in body]


@pytest.mark.parametrize("args", [*PLANS, *NO_PLANS], ids=name_of)
def test_plans_are_the_same_in_all_forms(args):
    plans = answer(*args, "--json").document["plans"]
    rows = csv_rows(args)
    assert [row["offer_id"] for row in rows] == [plan["offer_id"] for plan in plans]
    assert markdown_rows(args) == rows
    screen = answer(*args).out
    for row, plan in zip(rows, plans, strict=True):
        assert row["accelerator"] == plan["accelerator"]
        assert int(row["gpus"]) == plan["gpus"]
        assert row["price_source"] == plan["price_source"]
        assert float(row["hours_likely"]) == pytest.approx(plan["hours"]["likely"], abs=0.006)
        assert [row["cost_low"], row["cost_likely"], row["cost_high"], row["currency"]] == [
            plan["cost"][key] for key in ("low", "likely", "high", "currency")
        ]
        cost = Decimal(plan["cost"]["likely"])
        shown = f"{cost:,.0f}" if cost >= 10_000 else f"{cost:,.2f}"
        assert [line for line in screen.splitlines() if line.startswith(plan["cards"][0]) and shown in line]


@pytest.mark.parametrize("args", [*FITS, *NO_FITS], ids=name_of)
def test_the_account_of_memory_is_the_same_in_all_forms(args):
    found = answer(*args, "--json").document
    rows = csv_rows(args)
    assert [(int(row["gpus"]), row["verdict"]) for row in rows] == [
        (count["gpus"], count["verdict"]) for count in found["counts"] for _ in count["components"]
    ]
    parts = [part for count in found["counts"] for part in count["components"]]
    assert [(row["component"], row["phase"]) for row in rows] == [(part["name"], part["phase"]) for part in parts]
    assert [float(row["likely_gib"]) for row in rows] == pytest.approx(
        [part["bytes"]["likely"] / 2**30 for part in parts], abs=0.0006
    )
    assert [list(row.values()) for row in markdown_rows(args)] == [list(row.values()) for row in rows]
    screen = answer(*args).out
    for part in found["components"]:
        assert f"\n{part['name'].replace('_', ' ')} " in screen


@pytest.mark.parametrize("args", [*SPEEDS, *NO_SPEEDS], ids=name_of)
def test_speeds_are_the_same_in_all_forms(args):
    machines = [
        (card["accelerator"], machine)
        for card in answer(*args, "--json").document["cards"]
        for machine in card["machines"]
    ]
    rows = csv_rows(args)
    assert [(row["accelerator"], int(row["gpus"])) for row in rows] == [(card, m["gpus"]) for card, m in machines]
    assert markdown_rows(args) == rows
    screen = answer(*args).out
    for row, (card, machine) in zip(rows, machines, strict=True):
        rate = machine["tokens_per_s"]
        assert card in screen
        assert row["reason"] == (machine["reason"] or "")
        if rate is None:
            assert row["tokens_per_s_likely"] == row["meets_targets"] == ""
            continue
        assert float(row["tokens_per_s_likely"]) == pytest.approx(rate["likely"], rel=1e-5)
        assert row["meets_targets"] == str(not machine["missed"]).lower()
        shown = f"{rate['likely']:,.0f}" if rate["likely"] >= 100 else f"{rate['likely']:.3g}"
        assert [line for line in screen.splitlines() if line.startswith(card) and f" {shown} " in line]


@pytest.mark.parametrize("args", [case for case in CARDS if len(case) != 2], ids=name_of)
def test_cards_are_the_same_in_all_forms(args):
    gpus = answer(*args, "--json").document["gpus"]
    rows = csv_rows(args)
    assert [row["id"] for row in rows] == [gpu["id"] for gpu in gpus]
    assert [row["id"] for row in markdown_rows(args)] == [row["id"] for row in rows]
    screen = answer(*args).out
    for row, gpu in zip(rows, gpus, strict=True):
        facts = {fact["quantity"]: fact["value"] for fact in gpu["facts"]}
        assert float(row["memory_total_bytes"]) == facts["memory_total_bytes"]
        assert row["per_gpu_hour"] == (gpu["prices"][0]["per_gpu_hour"] if gpu["prices"] else "")
        assert gpu["id"] in screen


@pytest.mark.parametrize("args", [case for case in CARDS if len(case) == 2], ids=name_of)
def test_the_facts_of_one_card_are_the_same_in_all_forms(args):
    (gpu,) = answer(*args, "--json").document["gpus"]
    rows = csv_rows(args)
    assert [(row["quantity"], float(row["value"]), row["source"]) for row in rows] == [
        (fact["quantity"], fact["value"], fact["source"]) for fact in gpu["facts"]
    ]
    assert markdown_rows(args) == rows


def test_awkward_cells_survive():
    row = ('a|b\\c, "d"', "two\nlines", "")
    table = Table(keys=("x", "y", "z"), titles=("X", "Y", "Z"), rows=(row,), right=frozenset({1}))
    assert list(csv.reader(io.StringIO(as_csv(table), newline="")))[1] == list(row)
    header, rule, line = as_markdown(table).splitlines()
    assert (header, rule) == ("| X | Y | Z |", "| --- | ---: | --- |")
    assert cells(line) == ['a|b\\c, "d"', "two lines", ""]
