"""What every use case starts from: the facts and the offers, loaded once, and the date to plan at.

Bundled facts and offers, and the user's own over them: those in the folders of
``RACKRATE_FACTS`` (empty: none), else in the platform's folder for settings.
Looking for them costs a start nothing: the folder is found by the three usual
conventions here, and what reads it is imported where there is one.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rackrate.facts.book import FactBook
from rackrate.facts.bundled import load as load_facts
from rackrate.offers import catalog
from rackrate.offers.catalog import Catalog
from rackrate.problems import Code, Finding, Refused
from rackrate.values import Value

if TYPE_CHECKING:
    from rackrate.app.overlay import Laid, Own
    from rackrate.facts.hosted import HostedPrice

FOLDERS = "RACKRATE_FACTS"
"""The variable that names folders with own facts, the first going before the others."""


class Context(Value, frozen=True, kw_only=True):
    """Facts, offers and the day of the question; ``findings`` are warnings of what was left out of lists and files."""

    book: FactBook
    catalog: Catalog
    at: date
    own_digest: str = ""
    own_hosted: tuple[HostedPrice, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def digest(self) -> str:
        """One SHA-256 over all facts and offers, bundled and own, in hex."""
        return sha256(f"{self.book.digest}{self.catalog.digest}{self.own_digest}".encode()).hexdigest()


def facts() -> FactBook:
    """The bundled facts with the user's own over them."""
    own = own_files()
    return _bundled() if own is None else laid(own).book


def offers(at: date) -> Catalog:
    """The offers, bundled and own, under the billing rules in force at ``at``."""
    return _offers(at, own_files())


def context(at: date | None = None) -> Context:
    """Facts and offers at ``at`` (today in UTC unless given)."""
    return context_of(own_files(), at)


def context_of(own: Own | None, at: date | None = None) -> Context:
    """Facts and offers at ``at``, with ``own`` over the bundled ones."""
    day = day_of_answer(at)
    listed = _offers(day, own)
    if own is None:
        return Context(book=_bundled(), catalog=listed, at=day, findings=_unread(listed))
    from rackrate.app.overlay import in_answer
    from rackrate.app.price_findings import unseen

    over = laid(own)
    return Context(
        book=over.book,
        catalog=listed,
        at=day,
        own_digest=own.digest,
        own_hosted=over.hosted,
        findings=(*in_answer(over.findings), *unseen(over.prices.rows, day), *_unread(listed)),
    )


def _unread(listed: Catalog) -> tuple[Finding, ...]:
    """What of the price lists could not be read; most often nothing."""
    if not listed.findings:
        return ()
    from rackrate.app.price_findings import unread

    return tuple(unread(listed.findings))


def day_of_answer(at: object) -> date:
    """The day of the answer; from a moment its date."""
    if at is None:
        return datetime.now(UTC).date()
    if isinstance(at, datetime):
        return at.date()
    if not isinstance(at, date):
        action = "give datetime.date(2026, 11, 30)"
        wrong = Finding(code=Code.BAD_VALUE, subject="at", observed=repr(at), expected="a date", action=action)
        raise Refused([wrong])
    return at


@lru_cache(maxsize=1)
def _bundled() -> FactBook:
    """The bundled facts, read once."""
    return load_facts()


@lru_cache(maxsize=2)
def laid(own: Own) -> Laid:
    """The user's facts and prices over the bundled ones, read once."""
    from rackrate.app.overlay import lay

    return lay(own, _bundled())


@lru_cache(maxsize=4)
def _offers(at: date, own: Own | None) -> Catalog:
    """The offers at ``at``, read once."""
    if own is None:
        return catalog.load(_bundled(), at=at)
    return catalog.load(laid(own).book, at=at, own=laid(own).prices)


# ---------------------------------------------------------------- where own facts are


def own_files() -> Own | None:
    """What the user's folders hold; None where there is none."""
    folders = own_folders()
    if not folders:
        return None
    from rackrate.app.overlay import read  # few have facts of their own

    return read(folders)


def own_folders() -> tuple[str, ...]:
    """The folders to read: those that the variable names, there or not, else the usual one if it is there."""
    said = os.environ.get(FOLDERS)
    if said is not None:
        return tuple(filter(None, said.split(os.pathsep)))
    usual = usual_folder()
    return (str(usual),) if usual.is_dir() else ()


def usual_folder() -> Path:
    """The platform's folder for settings of a user: XDG's, Windows' or macOS's."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is no home
    if sys.platform == "win32":
        settings = os.environ.get("APPDATA") or f"{home}/AppData/Roaming"
    elif sys.platform == "darwin":
        settings = f"{home}/Library/Application Support"
    else:
        settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return Path(settings) / "rackrate" / "facts"
