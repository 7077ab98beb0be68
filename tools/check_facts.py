"""Check the bundled facts and prices: ``python tools/check_facts.py [facts [prices]]`` prints every fault.

The exit code is 1 if there is one. Folders other than the bundled ones can be named.

A line names the file, the line and the column, what is wrong, what was expected and the next step.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from pathlib import Path

from rackrate.facts import bundled
from rackrate.facts.validate import validate
from rackrate.facts.validate_cells import Tables
from rackrate.offers import catalog
from rackrate.offers.catalog import Record
from rackrate.offers.validate import Known, validate_offers
from rackrate.problems import Code, Finding


def read(data: Path) -> tuple[Tables, dict[str, dict[str, object]], list[Finding]]:
    """Tables and engine documents below ``data`` by file name, and the files that cannot be read at all."""
    tables, engines, unreadable = {}, {}, []
    for path in sorted(data.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            tables[path.name] = list(csv.DictReader(lines, restval=""))
    for path in sorted(data.glob("engines/*.toml")):
        try:
            engines[f"engines/{path.name}"] = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as problem:
            unreadable.append(Finding(code=Code.BAD_SYNTAX, subject=f"engines/{path.name}", observed=str(problem)))
    return tables, engines, unreadable


def offer_faults(data: Path, tables: Tables) -> tuple[list[Finding], int]:
    """The faults of the price lists below ``data``, and how many rows there are."""
    files = catalog.listed(data)
    rows = tables["providers.csv"]
    rates = tables["exchange_rates.csv"]
    known = Known(
        columns=Record._fields,
        providers=frozenset(name for row in rows for name in (row["id"], *row["aliases"].split("|"))) - {""},
        currencies=frozenset({*(row["currency"] for row in rates), *(row["base"] for row in rates)}),
        places=catalog.places(data),
    )
    return validate_offers(files, known), sum(map(len, files.values()))


def line(finding: Finding) -> str:
    """One finding as a line for people."""
    parts = [f"{finding.subject}: {finding.code}"]
    if finding.observed:
        parts.append(f"found {finding.observed!r}")
    if finding.expected:
        parts.append(f"expected {finding.expected}")
    if finding.action:
        parts.append(f"next: {finding.action}")
    return "; ".join(parts)


def main(arguments: list[str]) -> int:
    """Print the faults; 1 if there are any."""
    data = Path(arguments[0]) if arguments else bundled.DATA
    tables, engines, unreadable = read(data)
    offers, priced = offer_faults(Path(arguments[1]) if len(arguments) > 1 else catalog.DATA, tables)
    found = [*unreadable, *validate(tables, engines), *offers]
    for finding in found:
        print(line(finding))
    if not found:
        count = sum(map(len, tables.values()))
        print(f"facts: {count} rows in {len(tables)} tables and {len(engines)} engines, {priced} offers, no fault")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
