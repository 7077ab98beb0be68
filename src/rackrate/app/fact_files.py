"""Bundled files read to be checked: as they stand, so that what is wrong with a line is a finding and no crash."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from rackrate.facts.validate import CHECKS, validate
from rackrate.facts.validate_rows import Row
from rackrate.offers.catalog import Record
from rackrate.offers.validate import Known, validate_offers
from rackrate.problems import Code, Finding
from rackrate.values import Value

REGIONS = "regions.csv"
_PLACE = ("provider", "region", "country", "groups")


class Checked(Value, frozen=True, kw_only=True):
    """What is wrong with two folders of files, and how many rows (of engines: files) each file has."""

    findings: tuple[Finding, ...]
    facts: Mapping[str, int]
    engines: int
    places: int
    offers: int


def check(facts: Path, prices: Path, *, today: date | None = None) -> Checked:
    """Hold the fact files below ``facts`` and the price lists below ``prices`` against their rules.

    Nothing can have been seen after ``today``; None leaves that open.
    """
    found: list[Finding] = []
    tables = {path.name: _table(path, found) for path in sorted(facts.glob("*.csv"))}
    tables = {name: rows for name, rows in tables.items() if name in CHECKS or _unknown(name, found)}
    engines = {
        f"engines/{path.name}": one for path in sorted(facts.glob("engines/*.toml")) for one in _toml(path, found)
    }
    lists = {path.name: _table(path, found) for path in sorted(prices.glob("offers-*.csv"))}
    places = _table(prices / REGIONS, found)
    found += _places(places)
    if not lists:
        found.append(_finding(Code.MISSING_VALUE, "offers-*.csv", "", "a price list", "restore the files"))
    found += validate(tables, engines, today=today)
    found += validate_offers(lists, _known(tables, places, today))
    return Checked(
        findings=tuple(found),
        facts={name: len(rows) for name, rows in tables.items()},
        engines=len(engines),
        places=len(places),
        offers=sum(map(len, lists.values())),
    )


def _unknown(name: str, found: list[Finding]) -> bool:
    expected = ", ".join(sorted(CHECKS))
    found.append(_finding(Code.UNKNOWN_NAME, name, name, expected, "give it a check, or move it elsewhere"))
    return False


def _known(tables: Mapping[str, Sequence[Row]], places: Sequence[Row], today: date | None) -> Known:
    """What price lists may refer to."""
    providers, rates = tables.get("providers.csv", ()), tables.get("exchange_rates.csv", ())
    names = {name for row in providers for name in (row.get("id", ""), *row.get("aliases", "").split("|"))}
    return Known(
        columns=Record._fields,
        providers=frozenset(names - {""}),
        currencies=frozenset(row.get(column, "") for row in rates for column in ("base", "currency")),
        places=frozenset((row.get("provider", ""), row.get("region", "")) for row in places),
        today=today,
    )


# ---------------------------------------------------------------- files to rows


def _table(path: Path, found: list[Finding]) -> list[dict[str, str]]:
    """The rows of a table, one a line; what is wrong with its form is added to ``found``.

    A line with cells too few or too many is told, and read as far as it goes.
    """
    try:
        text = path.read_bytes().decode("utf-8")
        header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (OSError, ValueError, csv.Error) as problem:
        seen = "no header" if str(problem).startswith("not enough values") else str(problem)
        found.append(_finding(Code.FILE_UNREADABLE, path.name, seen, "a table in UTF-8", "restore the file"))
        return []
    found += [
        _finding(Code.DUPLICATE, f"{path.name}:1 {column}", column, "each column once", "remove one")
        for column in dict.fromkeys(header)
        if header.count(column) > 1
    ]
    rows = []
    for number, cells in enumerate(lines, start=2):
        found += _form(f"{path.name}:{number}", header, cells)
        rows.append(dict(zip(header, [*cells, *[""] * len(header)], strict=False)))
    return rows


def _form(place: str, header: Sequence[str], cells: Sequence[str]) -> Iterator[Finding]:
    if len(cells) != len(header):
        expected, action = f"{len(header)} cells", "put a text with commas in double quotes; leave no line blank"
        yield _finding(Code.BAD_SYNTAX, f"{place} row", f"{len(cells)} cells", expected, action)
    for name, cell in zip(header, cells, strict=False):
        if "\n" in cell or "\r" in cell or "\0" in cell:
            yield _finding(Code.BAD_SYNTAX, f"{place} {name}", cell[:40], "text on one line", "write it on one line")


def _toml(path: Path, found: list[Finding]) -> Iterator[dict[str, object]]:
    try:
        yield tomllib.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        seen = str(problem) or "nested too deeply"
        found.append(_finding(Code.BAD_SYNTAX, f"engines/{path.name}", seen, "TOML in UTF-8", "correct it there"))


def _places(rows: Sequence[Row]) -> Iterator[Finding]:
    """Regions: their columns, one line each, a country of two letters."""
    if not rows:
        yield _finding(Code.MISSING_VALUE, REGIONS, "", "a table with rows", "restore the file")
        return
    if tuple(rows[0]) != _PLACE:
        yield _finding(Code.UNKNOWN_KEY, f"{REGIONS}:1", ", ".join(rows[0]), ", ".join(_PLACE), "restore the header")
        return
    seen: dict[tuple[str, str], int] = {}
    for line, row in enumerate(rows, start=2):
        for column in ("provider", "region"):
            if not row[column].strip():
                yield _finding(Code.MISSING_VALUE, f"{REGIONS}:{line} {column}", "", "a value", "fill it in")
        first = seen.setdefault((row["provider"], row["region"]), line)
        if first != line:
            expected = f"a row unlike line {first}"
            yield _finding(Code.DUPLICATE, f"{REGIONS}:{line} region", row["region"], expected, "remove one of them")


def _finding(code: Code, subject: str, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=code, subject=subject, observed=observed, expected=expected, action=action)
