"""What every use case starts from: the facts and the offers, loaded once, and the date to plan at."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from hashlib import sha256

from rackrate.facts.book import FactBook
from rackrate.facts.bundled import load as load_facts
from rackrate.offers import catalog
from rackrate.offers.catalog import Catalog
from rackrate.values import Value


class Context(Value, frozen=True, kw_only=True):
    """Facts, offers and the day of the question."""

    book: FactBook
    catalog: Catalog
    at: date

    @property
    def digest(self) -> str:
        """One SHA-256 over all bundled facts and offers, in hex."""
        return sha256(f"{self.book.digest}{self.catalog.digest}".encode()).hexdigest()


@lru_cache(maxsize=1)
def facts() -> FactBook:
    """The bundled facts, read once."""
    return load_facts()


@lru_cache(maxsize=4)
def offers(at: date) -> Catalog:
    """The bundled offers under the billing rules in force at ``at``, read once."""
    return catalog.load(facts(), at=at)


def context(at: date | None = None) -> Context:
    """Facts and offers as bundled, at ``at`` (today in UTC unless given)."""
    day = at or datetime.now(UTC).date()
    return Context(book=facts(), catalog=offers(day), at=day)
