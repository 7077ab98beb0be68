"""Rows of a user's own files: a header held against what the file may have, cells held against their header.

Only what is needed must be there: columns that are left out, and cells that
are left empty, hold their defaults. A column that is not known sinks its file,
for what its author meant by it is not known either; a row sinks nothing but
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rackrate.facts.validate_rows import Fault
from rackrate.problems import Code, Finding, nearest

OWN = "own"
"""What the source of an own row begins with."""

NOTHING: Mapping[str, str] = MappingProxyType({})


class OwnTable(NamedTuple):
    """A user's file as numbered lines of cells.

    ``name`` is the kind of file (``models.csv``), ``place`` what findings call
    this one, ``layer`` its folder's place in the order in which folders win.
    """

    name: str
    place: str
    layer: int
    lines: tuple[tuple[int, tuple[str, ...]], ...]


class OwnRow(NamedTuple):
    """One row with a cell for every column, and where it stands; ``filled`` are the columns left to their defaults."""

    place: str
    line: int
    layer: int
    cells: Mapping[str, str]
    filled: tuple[str, ...]


class Columns(NamedTuple):
    """What a file may have: all columns, those needed, what the others default to, and other spellings."""

    all: tuple[str, ...]
    needed: tuple[str, ...]
    defaults: Mapping[str, str] = NOTHING
    spellings: Mapping[str, str] = NOTHING


def told(row: OwnRow, fault: Fault) -> Finding:
    """A fault of a row as a finding that an editor can open: ``file:line column``."""
    return _finding(f"{row.place}:{row.line} {fault.column}", fault)


def read_rows(table: OwnTable, columns: Columns, found: list[Finding]) -> Iterator[OwnRow]:
    """The rows of ``table`` that can be read; what is wrong with the others is added to ``found``."""
    if not table.lines:
        found.append(_of_file(table, Fault(Code.MISSING_VALUE, "", "", ", ".join(columns.needed), _HEADER)))
        return
    header, *body = table.lines
    names = tuple(columns.spellings.get(cell.strip(), cell.strip()) for cell in header[1])
    faults = list(_header_faults(names, columns))
    found.extend(_of_file(table, fault, line=header[0]) for fault in faults)
    if not faults:
        for line, cells in body:
            row = _row(table, line, names, cells, columns)
            missing = list(_missing(row, cells, names, columns))
            found.extend(told(row, fault) for fault in missing)
            if not missing:
                yield row


_HEADER = "begin the file with a line that names its columns"


def _header_faults(names: tuple[str, ...], columns: Columns) -> Iterator[Fault]:
    for name in dict.fromkeys(names):
        if name not in columns.all:
            close = nearest(name, [*columns.all, *columns.spellings], limit=2)
            action = f"did you mean {' or '.join(close)}?" if close else "leave the column out"
            yield Fault(Code.UNKNOWN_KEY, name or "a column without name", name, f"one of {_some(columns.all)}", action)
        elif names.count(name) > 1:
            yield Fault(Code.DUPLICATE, name, "the column twice", "each column once", "leave one of them out")
    shown = {column: name for name, column in columns.spellings.items()}
    for name in columns.needed:
        if name not in names:
            expected = f"a column {shown.get(name, name)}"
            yield Fault(Code.MISSING_VALUE, shown.get(name, name), "", expected, "add the column; its cells are needed")


def _row(table: OwnTable, line: int, names: tuple[str, ...], cells: tuple[str, ...], columns: Columns) -> OwnRow:
    said = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if cell.strip()}
    filled = tuple(name for name in columns.defaults if name not in said)
    whole = {**dict.fromkeys(columns.all, ""), **columns.defaults, **said}
    return OwnRow(table.place, line, table.layer, whole, filled)


def _missing(row: OwnRow, cells: tuple[str, ...], names: tuple[str, ...], columns: Columns) -> Iterator[Fault]:
    if len(cells) > len(names):
        seen = f"{len(cells)} cells under {len(names)} columns"
        yield Fault(Code.BAD_SYNTAX, "row", seen, "a cell for each column", "put a text with commas in double quotes")
    for name in columns.needed:
        if not row.cells[name]:
            yield Fault(Code.MISSING_VALUE, name, "", "a value", "fill it in")


def _some(names: Iterable[str], at_most: int = 8) -> str:
    listed = list(names)
    return ", ".join(listed[:at_most]) + (f" and {len(listed) - at_most} more" if len(listed) > at_most else "")


def _of_file(table: OwnTable, fault: Fault, line: int = 1) -> Finding:
    return _finding(f"{table.place}:{line} {fault.column}".rstrip(), fault)


def _finding(subject: str, fault: Fault) -> Finding:
    return Finding(
        code=fault.code, subject=subject, observed=fault.observed, expected=fault.expected, action=fault.action
    )


def own_source(said: str) -> str:
    """The source of an own row: ``own``, and what its author says of it."""
    return f"{OWN}: {said}" if said else OWN


def is_own(source: str) -> bool:
    """Whether a source is a user's own file."""
    return source == OWN or source.startswith(f"{OWN}: ")
