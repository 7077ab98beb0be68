"""Known words, for completion and suggestions at the faces."""

from __future__ import annotations

from collections.abc import Sequence

from rackrate.problems import Refused, nearest

__all__ = ["card_ids", "completions", "nearest", "quantities", "words"]


def card_ids() -> tuple[str, ...]:
    """All accelerator ids."""
    return words("card")


def words(what: str) -> tuple[str, ...]:
    """Known words of a kind; the user's own among them.

    Kinds: ``card``, ``model``, ``engine``, ``format``, ``provider``, ``vendor``, ``currency``, ``property``,
    ``need``, ``sort_key``, and those that offers have: ``seller``, ``market``, ``region``;
    ``hosted_model``: what providers of APIs call their models.
    """
    if what in {"seller", "market", "region"}:
        return _of_offers(what)
    if what in {"need", "property", "sort_key"}:
        return _of_workloads(what)
    if what == "hosted_model":
        return _of_hosted()
    from rackrate.app.context import facts

    book = facts()
    known = {
        "card": tuple(book.accelerators),
        "model": book.model_ids,
        "engine": book.engine_ids,
        "format": tuple(book.formats),
        "provider": tuple(book.billing),
        "vendor": tuple(dict.fromkeys(card.vendor for card in book.accelerators.values())),
        "currency": tuple(sorted({book.rates.base, *book.rates.per_base})),
    }
    return known.get(what, ())


def completions(what: str, begun: str, choices: Sequence[str] = ()) -> tuple[str, ...]:
    """The choices, or known words of a kind, that begin with ``begun``; of a list, those that its last part begins.

    A model may be begun with the last part of its id, which is enough to name it.
    """
    before, comma, last = begun.rpartition(",")
    known = choices or words(what)
    found = _beginning(known, last)
    if what == "model" and last and not found:
        found = _beginning([name.rpartition("/")[2] for name in known], last)
    return tuple(f"{before}{comma}{word}" for word in dict.fromkeys(found))


def _beginning(known: Sequence[str], begun: str) -> list[str]:
    return [word for word in known if word.casefold().startswith(begun.casefold())]


def _of_hosted() -> tuple[str, ...]:
    from rackrate.app.hosting import hosted_names

    return hosted_names()


def _of_offers(what: str) -> tuple[str, ...]:
    from rackrate.app.context import context
    from rackrate.offers.regions import ALIASES

    table = context().catalog.table
    if what == "region":
        places = (part for region, country, groups in table.places for part in (*region.split("|"), country, *groups))
        return tuple(sorted({*places, *ALIASES} - {""}))
    return table.providers if what == "seller" else table.markets


def _of_workloads(what: str) -> tuple[str, ...]:
    from rackrate.plan.listing_words import SORT_WORDS
    from rackrate.workload.needs import NEEDS
    from rackrate.workload.requirements import PROPERTIES

    if what != "property":
        return NEEDS if what == "need" else SORT_WORDS
    return tuple(f"{name}=" if name.startswith("min_") else name for name in PROPERTIES)


def quantities(name: str) -> tuple[str, ...]:
    """What is known of the thing called ``name``; nothing where no such thing is known."""
    from rackrate.app.facts_showing import show_facts

    try:
        return tuple(dict.fromkeys(said.quantity for said in show_facts(name).facts))
    except Refused:
        return ()
