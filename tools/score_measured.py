"""What one measurement is worth: ``python tools/score_measured.py FILE.csv...``.

Of each group of rows that one source measured with one engine on one card, a
row corrects the estimates of the others. Printed are absolute errors without
and with that, at the median and at 80 and 90 % of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from scoring.cells import read_rows
from scoring.printing import printed
from scoring.speed_neighbours import Neighbours, elsewhere, near, placed

from rackrate.facts.bundled import load

HEAD = (
    "| | rows | median error | 80 % within | 90 % within | once one was measured | 80 % within | 90 % within |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
)


def table(found: Iterable[Neighbours]) -> str:
    """A Markdown table."""
    return "\n".join((*HEAD, *map(_line, found)))


def _line(each: Neighbours) -> str:
    cells = " | ".join(f"{value:.1%}" for value in (*each.before, *each.after))
    return f"| {each.group.replace('-', ', ')} | {each.rows} | {cells} |"


def main(files: Iterable[str]) -> int:
    """Print both tables."""
    book = load()
    rows = placed((row for name in files for row in read_rows(Path(name))), book)
    tables = ("The same model, format and number of cards:", "", table(near(rows)), "")
    more = ("Another model, format or number of cards:", "", table(elsewhere(rows)))
    return printed("\n".join((*tables, *more)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
