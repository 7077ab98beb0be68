"""The use cases of price lists other than the bundled ones: planned over as they are, or packed into a file of columns.

>>> from rackrate.app import long_lists, planning
>>> long_lists.pack("lists", "offers.columns")  # doctest: +SKIP
>>> planning.plan_over(long_lists.context_over("offers.columns"), "job.toml")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rackrate.app.context import Context, day_of_answer, facts, own_files
from rackrate.app.documents import finding_docs, header
from rackrate.app.price_findings import unread
from rackrate.app.wire.offers import OffersPackDocument
from rackrate.facts.book import FactBook
from rackrate.offers import catalog, column_file
from rackrate.offers.catalog import Progress
from rackrate.problems import Code, Finding, Refused
from rackrate.values import replace

if TYPE_CHECKING:
    from rackrate.app.overlay import Own

LONG_BYTES = 2**26
"""Price lists of more than this are packed first: as text they would take seconds at every start."""

_EXPECTED = "a price list in the format of the bundled ones, a folder with offers*.csv, or a file of columns"


def write(lists: str | Path, path: str | Path, *, at: date | None = None) -> tuple[Finding, ...]:
    """Write the price lists in the folder ``lists``, of the bundled ones' format, to ``path``; what could not be read.

    What was seen after ``at`` is left out.
    """
    return _write(_there(Path(lists)), Path(path), at, None)


def pack(
    lists: str | Path, path: str | Path, *, at: date | None = None, progress: Progress | None = None
) -> OffersPackDocument:
    """Write price lists (a folder, or one CSV file) to the file of columns ``path``, and say what became of them.

    Raises:
        Refused: there is no price list, no line of it can be read, or the file cannot be written.
    """
    source, target, day = _there(Path(lists)), Path(path), day_of_answer(at)
    _check_target(source, target)
    try:
        problems = _write(source, target, day, progress)
    except OSError as wrong:
        action = "name a file in a folder that you may write to"
        raise Refused([_refusal(target, wrong.strerror or "cannot be written", "a file to write", action)]) from wrong
    here = context_over(target, day)
    table = here.catalog.table
    if not table.count:
        target.unlink()
        raise Refused(problems or [_refusal(source, "no line that was seen by that day", _EXPECTED, _SAY)])
    return OffersPackDocument(
        **header("offers_pack", here),
        file=str(path),
        size_bytes=target.stat().st_size,
        offers=table.count,
        entries=len(table),
        problems=finding_docs(problems),
    )


_SAY = "docs/own-facts.md describes the columns; `rackrate offers --csv` prints what is bundled"


def _write(source: Path, target: Path, at: date | None, progress: Progress | None) -> tuple[Finding, ...]:
    texts, places, findings = catalog.texts(source, at=at, progress=progress)
    return (*findings, *column_file.write(target, texts, places, _of(facts(), own_files())))


def context_over(path: str | Path, at: date | None = None) -> Context:
    """The facts in use, and the offers in ``path`` instead of the bundled ones, at ``at`` (today in UTC).

    ``path`` is a file of columns, a price list (CSV), or a folder with some. A
    user's own facts count, own prices do not.

    Raises:
        Refused: it is none of these, was written with other facts, or knows prices that nobody had seen at ``at``.
    """
    if not str(path).strip():
        raise Refused([_refusal(Path("--offers"), "an empty text", _EXPECTED, "name a file or a folder")])
    source = _there(Path(path))
    book, own, day = facts(), own_files(), day_of_answer(at)
    if source.is_dir() or source.suffix.lower() == ".csv":
        offers = _listed(source, book, day)
        action = f"`rackrate offers pack {path} FILE` names each" if offers.findings else ""
        found = tuple(unread(offers.findings, action))
    else:
        table, digest = column_file.read(source, _of(book, own), at=day)
        offers, found = catalog.Catalog(table=table, findings=(), digest=digest), ()
    return Context(book=book, catalog=offers, at=day, own_digest=own.digest if own else "", findings=found)


def _listed(source: Path, book: FactBook, at: date) -> catalog.Catalog:
    """Price lists that are read as they are."""
    size = sum(each.stat().st_size for each in catalog.lists(source))
    if size > LONG_BYTES:
        seen, action = f"{size / 2**20:,.0f} MiB of text", f"`rackrate offers pack {source} FILE`, then use FILE"
        raise Refused([_refusal(source, seen, f"at most {LONG_BYTES / 2**20:.0f} MiB", action)])
    offers = catalog.load(book, at=at, data=source)
    if not len(offers.table):
        raise Refused(_some(offers.findings) or [_refusal(source, "no line seen by that day", _EXPECTED, _SAY)])
    return offers


def _some(found: Sequence[Finding], at_most: int = 3) -> list[Finding]:
    """The first few findings, which say enough of a list that cannot be read at all."""
    return list(found[:at_most])


def _there(path: Path) -> Path:
    """The path, if there is a price list or a file of columns to read.

    Raises:
        Refused: there is none.
    """
    try:
        if path.is_dir() and not catalog.lists(path):
            raise Refused([_refusal(path, "a folder without offers*.csv", _EXPECTED, _SAY)])
        if path.exists() and not (path.is_dir() or path.is_file()):
            raise Refused([_refusal(path, "a pipe or a device", _EXPECTED, "write what it gives to a file first")])
        if not path.is_dir():
            with path.open("rb"):
                pass
    except (OSError, ValueError) as wrong:
        seen = getattr(wrong, "strerror", None) or "not a path"
        raise Refused([_refusal(path, seen, _EXPECTED, "name a file or a folder that you may read")]) from wrong
    return path


def _check_target(source: Path, target: Path) -> None:
    """Refuse to write over what is read, or over what is no file of columns."""
    action = "name another file, such as offers.columns"
    if target.is_dir() or target.suffix.lower() == ".csv":
        raise Refused([_refusal(target, "a folder or a price list", "a file of columns to write", action)])
    if target.exists() and (target.samefile(source) or not column_file.is_one(target)):
        raise Refused([_refusal(target, "another file", "a new file, or a file of columns to replace", action)])


def _refusal(path: Path, observed: str, expected: str, action: str) -> Finding:
    subject = str(path).encode("utf-8", "replace").decode("utf-8")
    clean = "".join(c if c.isprintable() else "?" for c in subject[:120])
    return Finding(
        code=Code.FILE_UNREADABLE, subject=clean or "an empty path", observed=observed, expected=expected, action=action
    )


def _of(book: FactBook, own: Own | None) -> FactBook:
    """The book under a digest of bundled and own facts together: a file belongs to both."""
    return book if own is None else replace(book, digest=sha256(f"{book.digest}{own.digest}".encode()).hexdigest())
