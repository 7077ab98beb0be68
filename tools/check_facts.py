"""Check the bundled facts: ``python tools/check_facts.py [folder]`` prints every fault and exits 1 if there is one.

A line names the file, the line and the column, what is wrong, what was expected and the next step.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from pathlib import Path

from rackrate.facts import bundled
from rackrate.facts.validate import Tables, validate
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
    found = [*unreadable, *validate(tables, engines)]
    for finding in found:
        print(line(finding))
    if not found:
        count = sum(map(len, tables.values()))
        print(f"facts: {count} rows in {len(tables)} tables and {len(engines)} engines, no fault")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
