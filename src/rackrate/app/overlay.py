"""A user's own facts and prices: folders in, what was said in them laid over what is bundled.

Folders hold files in the formats of the bundled ones, all optional
(docs/own-facts.md). Nothing that is wrong in them stops an answer: it becomes
a finding, and the row or file is left out.
"""

from __future__ import annotations

import csv
import hashlib
import io
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rackrate.facts import bundled
from rackrate.facts.book import FactBook
from rackrate.facts.hosted import HostedPrice
from rackrate.facts.overlay import laid_over, own_hosted
from rackrate.facts.own_rows import OwnTable
from rackrate.facts.validate_own import NEEDED, Base, OwnFacts, own_facts
from rackrate.offers.catalog import Record
from rackrate.offers.own import OwnPrices, own_prices
from rackrate.problems import Code, Finding, Severity, nearest
from rackrate.values import Value, replace

OFFERS, REGIONS = "offers.csv", "regions.csv"
KINDS = (*NEEDED, OFFERS, REGIONS)
"""The tables that a folder may hold; prices may be spread over any number of ``offers*.csv``."""

ENGINES = "engines"
_BYTES_AT_MOST = 2**26
_TOLD_AT_MOST = 3


class OwnFile(Value, frozen=True, kw_only=True):
    """One file of a user's folder: its kind, what findings call it, its folder's place in the order, its text."""

    kind: str
    place: str
    layer: int
    text: str


class Own(Value, frozen=True, kw_only=True):
    """What a user's folders hold; ``digest`` is the SHA-256 of it, in hex, whatever the folders are called."""

    folders: tuple[str, ...]
    files: tuple[OwnFile, ...]
    findings: tuple[Finding, ...]
    digest: str


class Laid(Value, frozen=True, kw_only=True):
    """Own facts and prices, valid, and the book with the facts over the bundled ones."""

    book: FactBook
    facts: OwnFacts
    prices: OwnPrices
    hosted: tuple[HostedPrice, ...]
    findings: tuple[Finding, ...]


def lay(own: Own, book: FactBook) -> Laid:
    """``own`` over the bundled ``book``."""
    found = list(own.findings)
    tables = tables_of(own, found)
    documents = [(file.place, doc) for file in own.files if file.kind == ENGINES for doc in _document(file, found)]
    base = Base(
        book=book,
        columns=bundled.columns(),
        providers=bundled.providers(),
        memory_rules=bundled.table("memory_rules.csv"),
        sellers=frozenset(_sellers(tables)),
    )
    facts = own_facts(tables, documents, base)
    over = laid_over(base, facts)
    prices = own_prices(tables, Record._fields, over)
    return Laid(
        book=over,
        facts=facts,
        prices=prices,
        hosted=own_hosted(facts.rows["hosted_prices.csv"]),
        findings=(*found, *facts.findings, *prices.findings),
    )


def in_answer(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings as warnings of an answer: the first few, and how many more there are."""
    told = [_warning(finding) for finding in found[:_TOLD_AT_MOST]]
    more = len(found) - len(told)
    if more > 0:
        told.append(replace(told[-1], code=Code.OVERLAY_ROW_IGNORED, observed=f"{more} more", expected=""))
    if len(told) > 1:
        told = [replace(finding, action="`rackrate facts check` says what to do about each") for finding in told]
    return tuple(told)


def _warning(finding: Finding) -> Finding:
    """A finding whose text names the place: screens gather the findings of a code in one line."""
    unread = finding.code is Code.FILE_UNREADABLE
    what = finding.observed if unread else f"{finding.code.replace('_', ' ')} {finding.observed}".rstrip()
    return replace(
        finding,
        code=finding.code if unread else Code.OVERLAY_ROW_IGNORED,
        severity=Severity.WARNING,
        observed=f"{finding.subject}: {what}",
    )


# ---------------------------------------------------------------- folders to texts


def read(folders: Sequence[str]) -> Own:
    """What ``folders`` hold, the first before the others; a folder that is not there is a finding."""
    files: list[OwnFile] = []
    found: list[Finding] = []
    digest = hashlib.sha256()
    for layer, folder in enumerate(folders):
        prefix = f"{folder}/" if len(folders) > 1 else ""
        for name, path in _paths(folder, found):
            content = _content(path, f"{prefix}{name}", found)
            if content is not None:
                digest.update(f"{layer}\0{name}\0{len(content)}\0".encode())
                digest.update(content)
                files.extend(_file(name, f"{prefix}{name}", layer, content, found))
    return Own(folders=tuple(folders), files=tuple(files), findings=tuple(found), digest=digest.hexdigest())


def _paths(folder: str, found: list[Finding]) -> Iterator[tuple[str, Path]]:
    """The files of a folder that can be meant for rackrate, in the order of their names."""
    root = Path(folder)
    try:
        paths = [*root.iterdir(), *(root / ENGINES).glob("*.toml")]
    except (OSError, ValueError) as wrong:
        seen = getattr(wrong, "strerror", None) or "not a path"
        action = "`rackrate facts path` says where folders are looked for; make this one, or unset RACKRATE_FACTS"
        found.append(_unreadable(folder, seen, "a folder with facts of your own", action))
        return
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in paths):
        if name.endswith((".csv", ".toml")) and not path.name.startswith(".") and path.is_file():
            yield name, path


def files_of(folder: str) -> list[str]:
    """The names of the files of a folder that would be read."""
    return [name for name, _ in _paths(folder, []) if _kind(name)]


def _content(path: Path, place: str, found: list[Finding]) -> bytes | None:
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_AT_MOST + 1)
    except OSError as wrong:
        found.append(_unreadable(place, wrong.strerror or "cannot be read", "a file", "check its permissions"))
        return None
    if len(content) > _BYTES_AT_MOST:
        found.append(_unreadable(place, "more than 64 MiB", "a file of rows", "spread it over several files"))
        return None
    return content


def _file(name: str, place: str, layer: int, content: bytes, found: list[Finding]) -> Iterator[OwnFile]:
    """The file with its kind; none, and a finding, where its name or its bytes mean nothing."""
    kind = _kind(name)
    if not kind:
        close = nearest(name, [*KINDS, "engines/NAME.toml"], limit=1)
        action = f"did you mean {close[0]}?" if close else "rename it, or move it elsewhere"
        known = f"{', '.join(NEEDED)}, offers*.csv, {REGIONS} or engines/*.toml"
        found.append(Finding(code=Code.UNKNOWN_NAME, subject=place, observed=name, expected=known, action=action))
        return
    try:
        yield OwnFile(kind=kind, place=place, layer=layer, text=content.decode("utf-8-sig"))
    except UnicodeDecodeError as wrong:
        action = "save it as UTF-8 (a spreadsheet calls it CSV UTF-8)"
        found.append(_unreadable(place, f"byte {wrong.start} is not UTF-8", "text in UTF-8", action))


def _kind(name: str) -> str:
    if name.startswith(f"{ENGINES}/"):
        return ENGINES
    if name.startswith("offers") and name.endswith(".csv"):
        return OFFERS
    return name if name in KINDS else ""


def _unreadable(subject: str, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=Code.FILE_UNREADABLE, subject=subject, observed=observed, expected=expected, action=action)


# ---------------------------------------------------------------- texts to rows


def tables_of(own: Own, found: list[Finding]) -> list[OwnTable]:
    """The tables of a user's folders as lines; what cannot be read is added to ``found``."""
    return [table for file in own.files if file.kind != ENGINES for table in _table(file, found)]


def _table(file: OwnFile, found: list[Finding]) -> Iterator[OwnTable]:
    """The lines of a table; those before a line that is no CSV, and a finding for the rest."""
    lines: list[tuple[int, tuple[str, ...]]] = []
    reader = csv.reader(io.StringIO(file.text, newline=""), strict=True)
    begin = 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                lines.append((begin, tuple(cells)))
            begin = reader.line_num + 1
    except csv.Error as wrong:
        action = "close the double quote, or double the quotes inside a text; the rows below are left out"
        found.append(_bad_syntax(f"{file.place}:{begin}", str(wrong), "CSV", action))
    other = next((mark for mark in (";", "\t") if lines and len(lines[0][1]) == 1 and mark in lines[0][1][0]), "")
    if other:
        seen = f"cells between {'semicolons' if other == ';' else 'tabs'}"
        found.append(_bad_syntax(f"{file.place}:1", seen, "cells between commas", "save it with commas"))
    else:
        yield OwnTable(file.kind, file.place, file.layer, tuple(lines))


def _document(file: OwnFile, found: list[Finding]) -> Iterator[Mapping[str, object]]:
    try:
        yield tomllib.loads(file.text)
    except (ValueError, RecursionError) as wrong:
        seen = "nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        found.append(_bad_syntax(file.place, seen, "TOML", "correct it there"))


def _bad_syntax(subject: str, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=Code.BAD_SYNTAX, subject=subject, observed=observed, expected=expected, action=action)


def _sellers(tables: Sequence[OwnTable]) -> Iterator[str]:
    """The providers whose prices the user has: their billing rules are welcome too."""
    for table in tables:
        header = [cell.strip() for cell in table.lines[0][1]] if table.name == OFFERS and table.lines else []
        if "provider" in header:
            at = header.index("provider")
            yield from (cells[at].strip() for _, cells in table.lines[1:] if len(cells) > at)
