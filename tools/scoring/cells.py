"""Cells: one row of a table of measurements, read by type; an empty cell is not known."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path


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
        """The cell as a number; None when it is empty or none."""
        try:
            value = float(self.text(column).replace(",", ""))
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

    Raises:
        Unreadable: the file is not there, or is not a table.
    """
    csv.field_size_limit(2**30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return [
                {(name or "").strip(): value for name, value in cells.items() if name is not None and value is not None}
                for cells in csv.DictReader(lines)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as why:
        raise Unreadable(f"{path}: {why}; give a CSV file in UTF-8 with a line of column names") from why
