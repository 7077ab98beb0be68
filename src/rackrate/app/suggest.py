"""Known words, for completion and suggestions at the faces."""

from __future__ import annotations

from rackrate.problems import Refused, nearest

__all__ = ["card_ids", "nearest", "quantities", "words"]


def card_ids() -> tuple[str, ...]:
    """All accelerator ids."""
    return words("card")


def words(what: str) -> tuple[str, ...]:
    """Known ids of a kind: ``card``, ``model``, ``engine``, ``format``, ``provider``; the user's own among them."""
    from rackrate.app.context import facts

    book = facts()
    known = {
        "card": tuple(book.accelerators),
        "model": book.model_ids,
        "engine": book.engine_ids,
        "format": tuple(book.formats),
        "provider": tuple(book.billing),
    }
    return known.get(what, ())


def quantities(name: str) -> tuple[str, ...]:
    """What is known of the thing called ``name``; nothing where no such thing is known."""
    from rackrate.app.facts_showing import show_facts

    try:
        return tuple(dict.fromkeys(said.quantity for said in show_facts(name).facts))
    except Refused:
        return ()
