"""The use case of very long price lists: written to a file of columns once, planned over many times.

>>> from rackrate.app import long_lists, planning
>>> long_lists.write("lists", "offers.columns")  # doctest: +SKIP
>>> planning.plan_over(long_lists.context_over("offers.columns"), "job.toml")  # doctest: +SKIP
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rackrate.app.context import Context, facts, own_files
from rackrate.facts.book import FactBook
from rackrate.offers import catalog, column_file
from rackrate.problems import Finding
from rackrate.values import replace

if TYPE_CHECKING:
    from rackrate.app.overlay import Own


def write(lists: str | Path, path: str | Path, *, at: date | None = None) -> tuple[Finding, ...]:
    """Write the price lists in the folder ``lists``, of the bundled ones' format, to ``path``; what could not be read.

    What was seen after ``at`` is left out.
    """
    texts, places, findings = catalog.texts(Path(lists), at=at)
    return (*findings, *column_file.write(Path(path), texts, places, _of(facts(), own_files())))


def context_over(path: str | Path, at: date | None = None) -> Context:
    """The facts in use, and the offers of a file of columns instead of the bundled ones, at ``at`` (today in UTC).

    A user's own facts count, own prices do not.

    Raises:
        Refused: the file is none, was written with other facts, or knows prices that nobody had seen at ``at``.
    """
    book, own, day = facts(), own_files(), at or datetime.now(UTC).date()
    table, digest = column_file.read(Path(path), _of(book, own), at=day)
    offers = catalog.Catalog(table=table, findings=(), digest=digest)
    return Context(book=book, catalog=offers, at=day, own_digest=own.digest if own else "")


def _of(book: FactBook, own: Own | None) -> FactBook:
    """The book under a digest of bundled and own facts together: a file belongs to both."""
    return book if own is None else replace(book, digest=sha256(f"{book.digest}{own.digest}".encode()).hexdigest())
