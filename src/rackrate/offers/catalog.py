"""The door to the bundled price list: CSV in, an offer table and its findings out.

The files and their columns are described in ``data/README.md``. Only what the
columns need is read at once; an exact record is made when it is asked for.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook
from rackrate.offers.arrays import Place
from rackrate.offers.offer import Offer
from rackrate.offers.price_list import Reader, Record, ids_of, offer_of
from rackrate.offers.rows import OfferRow, table_of
from rackrate.offers.table import OfferTable
from rackrate.problems import Code, Finding
from rackrate.units import parse_day
from rackrate.values import Value, replace

if TYPE_CHECKING:
    from rackrate.offers.own import OwnLine, OwnPrices
    from rackrate.offers.own_standing import Standing
    from rackrate.offers.texts import Texts

__all__ = ["DATA", "Catalog", "Record", "listed", "lists", "load", "places", "texts"]

DATA = Path(__file__).parent / "data"


class Catalog(Value, frozen=True, kw_only=True):
    """A price list: the table, the lines that could not be read, and the SHA-256 of the files in hex.

    ``own`` says what became of each of a user's own prices.
    """

    table: OfferTable
    findings: tuple[Finding, ...]
    digest: str
    own: tuple[Standing, ...] = ()


MORE = "more cells"
"""The column of what stands beyond the last one."""

Progress = Callable[[int, int], None]
"""Told how many bytes of how many are read."""

_OBSERVED_ON = -4
_PLACE_CELLS = 4
_BATCH = 20_000  # lines whose columns are coded at once


def load(book: FactBook, *, at: date | None = None, data: Path = DATA, own: OwnPrices | None = None) -> Catalog:
    """The price lists in ``data``, with cards and billing rules of ``book``, and a user's ``own`` prices over them.

    ``at`` is the day whose billing rules count and after which nothing was seen
    yet (None: the latest of each). A line that cannot be read becomes a finding
    and never sinks the rest.
    """
    findings: list[Finding] = []
    reader = Reader(book.accelerators, _places(data, findings, own))
    last = (at or date.max).toordinal()
    digest = hashlib.sha256(_regions(data).read_bytes())
    lines: list[list[str]] = []
    rows: list[OfferRow] = []
    for path in lists(data):
        content = path.read_bytes()
        digest.update(content)
        for number, line in _lines(path.name, content, findings):
            try:
                row = reader.row(line)
            except (ValueError, ArithmeticError) as problem:
                findings.append(_unreadable(f"{path.name}:{number}", problem))
                continue
            if row.day <= last:  # else nobody had seen it on the day of the question
                rows.append(row)
                lines.append(line)
    ours = (
        [line for line in _own_lines(own, book, lines) if reader.day(line.cells[_OBSERVED_ON]) <= last] if own else []
    )
    rows.extend(reader.row(line.cells) for line in ours)
    lines.extend(line.cells for line in ours)
    make = partial(_offer, lines, rows, ids_of(lines), book.accelerators)
    table = table_of(rows, make, book.rules_of, at=at)
    found = Catalog(table=table, findings=tuple(findings), digest=digest.hexdigest())
    return _with_own(found, ours, rows) if ours else found


def texts(
    data: Path = DATA, *, at: date | None = None, progress: Progress | None = None
) -> tuple[Texts, Mapping[tuple[str, str], Place], tuple[Finding, ...]]:
    """The price lists in ``data`` by the column, as a ``column_file`` is written from, and where regions lie.

    What was seen after ``at`` is left out, and what is no line of a price list, which becomes a finding.
    """
    findings: list[Finding] = []
    places = _places(data, findings)
    columns = _Columns()
    paths = lists(data)
    total, done = sum(path.stat().st_size for path in paths), 0
    for path in paths:
        content = path.read_bytes()
        done += len(content)
        for number, line in _lines(path.name, content, findings):
            if len(line) != len(Record._fields):
                problem = ValueError(f"{len(line)} cells instead of {len(Record._fields)}")
                findings.append(_unreadable(f"{path.name}:{number}", problem))
            elif at is None or _seen_by(line[_OBSERVED_ON], at):
                columns.add(line)
            if progress is not None and number % _BATCH == 0:
                progress(min(done, total), total)
    return columns.texts(), places, tuple(findings)


def _seen_by(text: str, at: date) -> bool:
    """Whether a price was seen by the day ``at``; what is no day is told later, with its line."""
    try:
        return parse_day(text) <= at
    except ValueError:
        return True


class _Columns:
    """Columns as vocabularies and codes, filled by the line: a long list repeats its words."""

    def __init__(self) -> None:
        self._lines: list[list[str]] = []
        self._words: list[dict[str, int]] = [{} for _ in Record._fields]
        self._codes: list[list[NDArray[np.int32]]] = [[] for _ in Record._fields]

    def add(self, line: list[str]) -> None:
        self._lines.append(line)
        if len(self._lines) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        for words, codes, column in zip(self._words, self._codes, zip(*self._lines, strict=True), strict=False):
            codes.append(np.array([words.setdefault(word, len(words)) for word in column], dtype=np.int32))
        self._lines.clear()

    def texts(self) -> Texts:
        from rackrate.offers.columns import Coded  # a long list is written once

        self._flush()
        empty = np.zeros(0, dtype=np.int32)
        return {
            field: Coded(tuple(words), np.concatenate([empty, *codes]))
            for field, words, codes in zip(Record._fields, self._words, self._codes, strict=True)
        }


def listed(data: Path = DATA) -> dict[str, list[dict[str, str]]]:
    """Every row of each price list by its columns, as text, by the name of the file."""
    files = {}
    for path in lists(data):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            files[path.name] = list(csv.DictReader(lines, restkey=MORE, restval=""))
    return files


def lists(data: Path) -> list[Path]:
    """The price lists that ``data`` holds, in the order in which they count, or the one that it is."""
    return [data] if data.is_file() else sorted(data.glob("offers*.csv"))


def places(data: Path = DATA) -> frozenset[tuple[str, str]]:
    """The (provider, region) of every place that is described."""
    return frozenset(_places(data, []))


def _offer(
    lines: Sequence[Sequence[str]],
    rows: Sequence[OfferRow],
    ids: Sequence[str],
    accelerators: Mapping[str, Accelerator],
    index: int,
) -> Offer:
    return offer_of(lines[index], rows[index], ids[index], accelerators)


def _own_lines(own: OwnPrices, book: FactBook, listed: Sequence[Sequence[str]]) -> list[OwnLine]:
    from rackrate.offers.own import completed  # few have prices of their own

    return completed(own, listed, Record._fields, book)


def _with_own(found: Catalog, ours: Sequence[OwnLine], rows: Sequence[OfferRow]) -> Catalog:
    from rackrate.offers.own_standing import settled

    table, standings = settled(found.table, ours, [row.dated for row in rows])
    return replace(found, table=table, own=standings)


def _lines(name: str, content: bytes, findings: list[Finding]) -> Iterator[tuple[int, list[str]]]:
    """Each line under the header with its place in the file; nothing, and a finding, if the header is another.

    Every line is read by itself (no field holds a newline), so that a quote left open spoils no other.
    """
    try:
        header, *lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as wrong:
        seen, action = f"byte {wrong.start} is not UTF-8", "save it as UTF-8"
        finding = Finding(
            code=Code.FILE_UNREADABLE, subject=name, observed=seen, expected="text in UTF-8", action=action
        )
        findings.append(finding)
        return
    if tuple(_cells(header)) != Record._fields:
        expected, action = ", ".join(Record._fields), "give it the header of a bundled price list"
        findings.append(
            Finding(code=Code.BAD_SYNTAX, subject=f"{name}:1", observed=header[:200], expected=expected, action=action)
        )
        return
    for number, line in enumerate(lines, start=2):
        if line:
            yield number, _cells(line)


def _cells(line: str) -> list[str]:
    """The cells of one line; a quote left open ends with it."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader((line,)))
    except csv.Error:
        return [line]  # no line of a price list has one cell


def _regions(data: Path) -> Path:
    """The file that says where regions lie: the one beside the price lists, else the bundled one."""
    beside = (data.parent if data.is_file() else data) / "regions.csv"
    return beside if beside.is_file() else DATA / "regions.csv"


def _places(data: Path, findings: list[Finding], own: OwnPrices | None = None) -> dict[tuple[str, str], Place]:
    """Country and groups of each (provider, region); the provider ``*`` stands for any, an own place for a bundled."""
    path = _regions(data)
    places: dict[tuple[str, str], Place] = {}
    lines = path.read_text("utf-8-sig", "replace").split("\n")[1:]
    for number, cells in enumerate(map(_cells, lines), start=2):
        if len(cells) == _PLACE_CELLS:
            provider, region, country, groups = cells
            places[provider, region] = (region, country, tuple(groups.split("|")))
        elif any(cells):
            findings.append(_unreadable(f"{path.name}:{number}", ValueError(f"{len(cells)} cells instead of 4")))
    return places | own.places if own else places


def _unreadable(subject: str, problem: Exception) -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject=subject,
        observed=str(problem),
        expected="a line as data/README.md describes",
        action="correct the line",
    )
