"""Check the bundled facts and prices: ``python tools/check_facts.py [facts [prices]]`` prints every fault.

The exit code is 1 if there is one. Folders other than the bundled ones can be named.

A line names the file, the line and the column, what is wrong, what was expected and the next step.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rackrate.app.fact_files import check
from rackrate.facts import bundled
from rackrate.offers import catalog
from rackrate.problems import Finding


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
    facts = Path(arguments[0]) if arguments else bundled.DATA
    prices = Path(arguments[1]) if len(arguments) > 1 else catalog.DATA
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()  # somewhere on earth it is
    found = check(facts, prices, today=tomorrow)
    for finding in found.findings:
        print(line(finding))
    if not found.findings:
        rows, tables = sum(found.facts.values()), len(found.facts)
        print(f"facts: {rows} rows in {tables} tables and {found.engines} engines, {found.offers} offers, no fault")
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
