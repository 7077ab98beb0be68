"""Cells: one row of a table of measurements, read by type; an empty cell is not known."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL = re.compile(r"[+-]?\d+,\d+")
"""A number as it is written where columns are parted by semicolons."""


class Unreadable(Exception):
    """Why a file cannot be read as a table."""


class Row:
    """One measurement; ``text`` of a column that is not there is empty."""

    def __init__(self, cells: Mapping[str, str]) -> None:
        self.cells = cells

    def text(self, column: str) -> str:
        """The cell, without blanks around it."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str) -> float | None:
        """The cell as a number; None when it is empty or none. Commas part thousands and nothing else."""
        said = self.text(column)
        if "," in said and not _THOUSANDS.fullmatch(said):
            return None
        try:
            value = float(said.replace(",", ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def whole(self, column: str, default: int = 0) -> int:
        """The cell as a whole number, or ``default``."""
        value = self.number(column)
        return default if value is None else int(value)

    def flag(self, column: str) -> bool:
        """Whether the cell says true."""
        return self.text(column).casefold() in {"true", "yes", "1"}


def read_rows(path: Path) -> list[Row]:
    """All rows of a CSV file."""
    return [Row(cells) for cells in read_cells(path)]


def read_cells(path: Path) -> list[dict[str, str]]:
    """The cells of a CSV file by column; cells beyond the last column, or missing before it, are empty.

    Columns may be parted by semicolons or tabs, as spreadsheets of other
    countries write them; beside semicolons a comma is the decimal point.

    Raises:
        Unreadable: the file is not there, or is not a table.
    """
    csv.field_size_limit(2**30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            head = next((line for line in lines if line.strip()), "")
            if not head:
                raise Unreadable(f"{path}: empty; give a CSV file with a line of column names")
            parted = _parted_by(head)
            lines.seek(0)
            return [_cells(cells, parted) for cells in csv.DictReader(lines, delimiter=parted)]
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        raise Unreadable(f"{path}: {why}; give a CSV file in UTF-8 with a line of column names") from why


def _parted_by(head: str) -> str:
    """What parts the columns of a table with this first line."""
    return max(",;\t", key=head.count)


def _cells(cells: Mapping[str | None, str | None], parted: str) -> dict[str, str]:
    named = {name.strip(): value for name, value in cells.items() if name is not None and value is not None}
    if parted != ";":
        return named
    return {
        name: value.replace(",", ".") if _DECIMAL.fullmatch(value.strip()) else value for name, value in named.items()
    }


def require(path: Path, rows: Iterable[Row], columns: Iterable[str]) -> None:
    """See that a table has the columns without which none of its rows says anything.

    Raises:
        Unreadable: it has not; the text names them.
    """
    found = {name for row in rows for name in row.cells}
    missing = [name for name in columns if found and name not in found]
    if missing:
        raise Unreadable(f"{path}: no column {', '.join(missing)}; give a table in the columns of docs/speed.md")
