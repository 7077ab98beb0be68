"""Faults of the files on providers: access, names, exchange rates."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts import access
from rackrate.facts.validate_billing import CONFIDENCES
from rackrate.facts.validate_cells import Check, Known, day, member, missing, number, parsed
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code


def access_check(known: Known) -> Check:
    """What is wrong with a condition of access.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "provider", known.providers, "providers.csv")
        yield from member(row, "key", access.KEYS, "the known keys")
        yield from member(row, "confidence", CONFIDENCES, "low, medium, high")
        yield from day(row, "seen_at", known.today)
        words = access.KEYS.get(row["key"])
        if row["key"] == "minimum_balance" or (row["key"] == "quota" and row["value"] not in (words or ())):
            yield from number(row, "value", 0, 1e6)
        elif words is not None:
            for word in row["value"].split("|") if row["key"] in access.SEVERAL else [row["value"]]:
                yield from member({"value": word}, "value", words, ", ".join(sorted(words)))

    return check


def providers_check(known: Known) -> Check:
    """What is wrong with a provider of providers.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from missing(row, "id", "title")
        for name in (row["id"], *filter(None, row["aliases"].split("|"))):
            if known.names[name] > 1:
                yield Fault(Code.DUPLICATE, "aliases", name, "one provider for each name", "remove one")
        yield from parsed(row, "currency", _currency, "an ISO 4217 code")

    return check


def _currency(text: str) -> str:
    if not (len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()):  # noqa: PLR2004 - ISO 4217
        raise ValueError(text)
    return text


def rates_check(known: Known) -> Check:
    """What is wrong with a rate of exchange_rates.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from missing(row, "base", "currency")
        yield from number(row, "per_base", 1e-6, 1e6)
        yield from day(row, "on", known.today)
        for column in ("base", "currency"):
            yield from parsed(row, column, _currency, "an ISO 4217 code")

    return check
