"""Cells: one row of a table of measurements, read by type; an empty cell is not known."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path


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
            return float(self.text(column))
        except ValueError:
            return None

    def whole(self, column: str, default: int = 0) -> int:
        """The cell as a whole number, or ``default``."""
        value = self.number(column)
        return default if value is None else int(value)

    def flag(self, column: str) -> bool:
        """Whether the cell says true."""
        return self.text(column).casefold() in {"true", "yes", "1"}


def read_rows(path: Path) -> list[Row]:
    """All rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [Row(cells) for cells in csv.DictReader(lines)]
