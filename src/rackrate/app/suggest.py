"""Known words, for completion and suggestions at the faces."""

from __future__ import annotations

from rackrate.problems import nearest

__all__ = ["card_ids", "nearest", "words"]


def card_ids() -> tuple[str, ...]:
    """All accelerator ids."""
    return words("card")


def words(what: str) -> tuple[str, ...]:
    """Known ids of a kind: ``card``, ``model``, ``engine``, ``format``, ``provider``."""
    from rackrate.facts.bundled import load

    book = load()
    known = {
        "card": tuple(book.accelerators),
        "model": book.model_ids,
        "engine": book.engine_ids,
        "format": tuple(book.formats),
        "provider": tuple(book.billing),
    }
    return known.get(what, ())
