"""What one cell of a fact file can have wrong, and what rows refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rackrate.facts import rows
from rackrate.facts.validate_baselines import Limits
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code, nearest
from rackrate.units import GIB, MIB, parse_day

Tables = Mapping[str, Sequence[Row]]
Check = Callable[[Row], Iterator[Fault]]


class Known:
    """What rows refer to, gathered from the other files."""

    def __init__(self, tables: Tables) -> None:
        self.cards = {row.get("id", ""): row for row in tables.get("accelerators.csv", ())}
        self.formats = {row.get("id", "") for row in tables.get("formats.csv", ())}
        self.vendors = {row.get("vendor", "") for row in tables.get("accelerators.csv", ())}
        self.providers = {row.get("id", "") for row in tables.get("providers.csv", ())}
        self.names = Counter(
            name
            for row in tables.get("providers.csv", ())
            for name in (row.get("id", ""), *filter(None, row.get("aliases", "").split("|")))
        )
        self.currencies = {row.get(c, "") for row in tables.get("exchange_rates.csv", ()) for c in ("base", "currency")}
        self.limits = Limits(tables.get("accelerator_facts.csv", ()), as_float)
        self.sold_mib = {name: as_float(row.get("memory_sold_gb")) * GIB / MIB for name, row in self.cards.items()}
        self.seen_mib = {
            row["accelerator"]: as_float(row.get("value"))
            for row in tables.get("accelerator_facts.csv", ())
            if row.get("quantity") == "memory_total" and not row.get("condition")
        }


def as_float(text: str | None) -> float:
    """The number in a cell, or 0 where there is none (which its own check reports)."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


# ---------------------------------------------------------------- cells


def number(row: Row, column: str, low: float, high: float) -> Iterator[Fault]:
    """The cell is a number within bounds."""
    try:
        value = float(row[column])
    except ValueError:
        yield Fault(Code.BAD_VALUE, column, row[column], "a number", "write it without unit or thousands separator")
        return
    if not low <= value <= high:
        yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"{low:g} to {high:g}", "check its unit")


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


def day(row: Row, column: str) -> Iterator[Fault]:
    """The cell is a date."""
    if not row[column]:
        yield Fault(Code.MISSING_VALUE, column, "", "a date", "write the day on which the source was seen")
    yield from parsed(row, column, parse_day, "a date such as 2026-11-30")
