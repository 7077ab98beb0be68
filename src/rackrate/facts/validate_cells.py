"""What one cell of a fact file can have wrong, and what rows refer to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

from rackrate.facts import rows
from rackrate.facts.cells import is_number, is_whole
from rackrate.facts.validate_baselines import Limits
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code, nearest
from rackrate.units import GIB, MIB, parse_day

Tables = Mapping[str, Sequence[Row]]
Check = Callable[[Row], Iterator[Fault]]

FIRST_DAY = date(2000, 1, 1)
"""No source is older: a year before it is a slip of the pen."""


class Known:
    """What rows refer to, gathered from the other files."""

    def __init__(self, tables: Tables, today: date | None = None) -> None:
        self.today = today
        self.cards = {row.get("id", ""): row for row in tables.get("accelerators.csv", ())}
        self.models = {row.get("id", "") for row in tables.get("models.csv", ())}
        self.denoisers = {row.get("id", "") for row in tables.get("denoisers.csv", ())}
        self.formats = {row.get("id", "") for row in tables.get("formats.csv", ())}
        self.vendors = {row.get("vendor", "") for row in tables.get("accelerators.csv", ())}
        self.providers = {row.get("id", "") for row in tables.get("providers.csv", ())}
        self.names = Counter(
            name
            for row in tables.get("providers.csv", ())
            for name in (row.get("id", ""), *filter(None, row.get("aliases", "").split("|")))
        )
        self.own_currencies = {row.get("currency", "") for row in tables.get("providers.csv", ())}
        self.currencies = {row.get(c, "") for row in tables.get("exchange_rates.csv", ()) for c in ("base", "currency")}
        self.limits = Limits(tables.get("accelerator_facts.csv", ()), as_float)
        self.sold_mib = {name: as_float(row.get("memory_sold_gb")) * GIB / MIB for name, row in self.cards.items()}
        self.seen_mib = {
            row.get("accelerator", ""): as_float(row.get("value"))
            for row in tables.get("accelerator_facts.csv", ())
            if row.get("quantity") == "memory_total" and not row.get("condition")
        }


def as_float(text: str | None) -> float:
    """The number in a cell, or 0 where there is none (which its own check reports)."""
    value = float(text) if text and is_number(text) else 0.0
    return value if math.isfinite(value) else 0.0


# ---------------------------------------------------------------- cells

LEAST = 1e-9
"""What is nearer to 0 is 0 or a slip, in every unit that there is."""


def missing(row: Row, *columns: str) -> Iterator[Fault]:
    """The cells that are empty and may not be."""
    for column in columns:
        if not row[column].strip():
            yield Fault(Code.MISSING_VALUE, column, "", "a value", "fill it in from the source")


def number(row: Row, column: str, low: float, high: float) -> Iterator[Fault]:
    """The cell is a number within bounds."""
    if not is_number(row[column]):
        yield Fault(Code.BAD_VALUE, column, row[column], "a number", "write it without unit or thousands separator")
    elif not low <= float(row[column]) <= high or 0 < abs(float(row[column])) < LEAST:
        yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"{low:g} to {high:g}", "check its unit")


def whole(row: Row, column: str, low: int, high: int) -> Iterator[Fault]:
    """The cell is empty, or a whole number within bounds."""
    if row[column] and not is_whole(row[column]):
        yield Fault(Code.BAD_VALUE, column, row[column], "a whole number", "write a whole number in digits alone")
    elif row[column] and not low <= int(row[column]) <= high:
        yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"{low:,} to {high:,}", "read it again")


def member(row: Row, column: str, known: Iterable[str], where: str) -> Iterator[Fault]:
    """The cell is one of the known words."""
    if row[column] not in known:
        close = nearest(row[column], known)
        action = f"did you mean {' or '.join(close)}?" if close else f"add it to {where} or mend the spelling"
        yield Fault(Code.UNKNOWN_NAME, column, row[column], f"one of {where}", action)


def parsed(row: Row, column: str, parse: Callable[[str], object], expected: str) -> Iterator[Fault]:
    """The cell is empty or can be read."""
    try:
        rows.maybe(row[column], parse)
    except (ValueError, ArithmeticError):
        yield Fault(Code.BAD_VALUE, column, row[column], expected, f"write {expected}")


def day(row: Row, column: str, today: date | None = None) -> Iterator[Fault]:
    """The cell is a date, and none after ``today``, where that is known."""
    if not row[column]:
        yield Fault(Code.MISSING_VALUE, column, "", "a date", "write the day on which the source was seen")
        return
    faults = list(parsed(row, column, parse_day, "a date such as 2026-11-30"))
    yield from faults
    if not faults and not FIRST_DAY <= date.fromisoformat(row[column]) <= (today or date.max):
        expected = f"a day from {FIRST_DAY}" + (f" to {today}" if today else "")
        yield Fault(Code.OUT_OF_BOUNDS, column, row[column], expected, "nothing was seen before it was there")
