"""The door to the bundled price list: CSV in, an offer table and its findings out.

The files and their columns are described in ``data/README.md``. Only what the
columns need is read at once; an exact record is made when it is asked for.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook
from rackrate.offers.offer import Offer
from rackrate.offers.price_list import Reader, Record, ids_of, offer_of
from rackrate.offers.rows import OfferRow, table_of
from rackrate.offers.table import OfferTable, Place
from rackrate.problems import Code, Finding
from rackrate.values import Value, replace

if TYPE_CHECKING:
    from rackrate.offers.own import OwnLine, OwnPrices
    from rackrate.offers.own_standing import Standing
    from rackrate.offers.texts import Texts

__all__ = ["DATA", "Catalog", "Record", "listed", "load", "places", "texts"]

DATA = Path(__file__).parent / "data"


class Catalog(Value, frozen=True, kw_only=True):
    """A price list: the table, the lines that could not be read, and the SHA-256 of the files in hex.

    ``own`` says what became of each of a user's own prices.
    """

    table: OfferTable
    findings: tuple[Finding, ...]
    digest: str
    own: tuple[Standing, ...] = ()


_OBSERVED_ON = -4
_FOR_EVER = "9999-12-31"


def load(book: FactBook, *, at: date | None = None, data: Path = DATA, own: OwnPrices | None = None) -> Catalog:
    """The price lists in ``data``, with cards and billing rules of ``book``, and a user's ``own`` prices over them.

    ``at`` is the day whose billing rules count and after which nothing was seen
    yet (None: the latest of each). A line that cannot be read becomes a finding
    and never sinks the rest.
    """
    reader = Reader(book.accelerators, _places(data, own))
    last = at.isoformat() if at is not None else _FOR_EVER
    digest = hashlib.sha256((data / "regions.csv").read_bytes())
    lines: list[list[str]] = []
    rows: list[OfferRow] = []
    findings: list[Finding] = []
    for path in sorted(data.glob("offers-*.csv")):
        content = path.read_bytes()
        digest.update(content)
        for number, line in _lines(path.name, content, findings):
            if len(line) > -_OBSERVED_ON and line[_OBSERVED_ON] > last:
                continue  # nobody had seen it on the day of the question
            try:
                rows.append(reader.row(line))
                lines.append(line)
            except (ValueError, ArithmeticError) as problem:
                findings.append(_unreadable(f"{path.name}:{number}", problem))
    ours = [line for line in _own_lines(own, book, lines) if line.cells[_OBSERVED_ON] <= last] if own else []
    rows.extend(reader.row(line.cells) for line in ours)
    lines.extend(line.cells for line in ours)
    make = partial(_offer, lines, rows, ids_of(lines), book.accelerators)
    table = table_of(rows, make, book.rules_of, at=at)
    found = Catalog(table=table, findings=tuple(findings), digest=digest.hexdigest())
    return _with_own(found, ours, rows) if ours else found


def texts(
    data: Path = DATA, *, at: date | None = None
) -> tuple[Texts, Mapping[tuple[str, str], Place], tuple[Finding, ...]]:
    """The price lists in ``data`` by the column, as a ``column_file`` is written from, and where regions lie.

    What was seen after ``at`` is left out, and what is no line of a price list, which becomes a finding.
    """
    from rackrate.offers.columns import Coded  # a long list is written once
    from rackrate.offers.table import coded

    last = at.isoformat() if at is not None else _FOR_EVER
    findings: list[Finding] = []
    lines: list[list[str]] = []
    for path in sorted(data.glob("offers-*.csv")):
        for number, line in _lines(path.name, path.read_bytes(), findings):
            if len(line) != len(Record._fields):
                problem = ValueError(f"{len(line)} cells instead of {len(Record._fields)}")
                findings.append(_unreadable(f"{path.name}:{number}", problem))
            elif line[_OBSERVED_ON] <= last:
                lines.append(line)
    columns = zip(*lines, strict=True) if lines else [()] * len(Record._fields)
    found = {field: Coded(*coded(column)) for field, column in zip(Record._fields, columns, strict=True)}
    return found, _places(data), tuple(findings)


def listed(data: Path = DATA) -> dict[str, list[dict[str, str]]]:
    """Every row of each price list by its columns, as text, by the name of the file."""
    files = {}
    for path in sorted(data.glob("offers-*.csv")):
        with path.open(encoding="utf-8", newline="") as lines:
            files[path.name] = list(csv.DictReader(lines, restval=""))
    return files


def places(data: Path = DATA) -> frozenset[tuple[str, str]]:
    """The (provider, region) of every place that is described."""
    return frozenset(_places(data))


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
    """Each line under the header with its place in the file; nothing, and a finding, if the header is another."""
    lines = csv.reader(content.decode("utf-8").split("\n"))  # no field holds a newline
    header = next(lines, [])
    if tuple(header) != Record._fields:
        expected, seen = ", ".join(Record._fields), ", ".join(header)
        findings.append(Finding(code=Code.BAD_SYNTAX, subject=f"{name}:1", observed=seen, expected=expected))
        return
    for line in lines:
        if line:
            yield lines.line_num, line


def _places(data: Path, own: OwnPrices | None = None) -> dict[tuple[str, str], Place]:
    """Country and groups of each (provider, region); the provider ``*`` stands for any, an own place for a bundled."""
    with (data / "regions.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        places = {
            (provider, region): (region, country, tuple(groups.split("|")))
            for provider, region, country, groups in lines
        }
    return places | own.places if own else places


def _unreadable(subject: str, problem: Exception) -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject=subject,
        observed=str(problem),
        expected="a line as data/README.md describes",
        action="correct the line",
    )
