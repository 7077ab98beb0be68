"""Faults of hosted_prices.csv, bundled or the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from rackrate.facts.cells import is_whole
from rackrate.facts.hosted import BATCH, DEPRECATED, Tiered, minutes, tiered
from rackrate.facts.validate_cells import Check, Known, day, member, number, parsed
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code
from rackrate.units import parse_day

DEAREST_PER_MILLION = 10_000
"""Currency units a million tokens; the dearest price seen is of some hundreds of dollars."""

_NEEDED = ("input_per_million", "output_per_million")
_TOKENS = "tokens at a price for a million, such as 0.4 or 1.25|200000:2.5"


def hosted_check(known: Known) -> Check:
    """What is wrong with a price of a hosted model."""

    def check(row: Row) -> Iterator[Fault]:
        yield from _prices(row)
        if row["per_thousand_requests"]:
            yield from number(row, "per_thousand_requests", 0, DEAREST_PER_MILLION)
        if row["currency"] not in known.currencies:
            yield from member(row, "currency", sorted(known.currencies), "the currencies with an exchange rate")
        yield from member(row, "processing", ("", BATCH), f"{BATCH}, or nothing")
        yield from member(row, "state", ("", DEPRECATED), f"{DEPRECATED}, or nothing")
        yield from parsed(row, "effective_from", parse_day, "a date such as 2026-10-01")
        yield from parsed(row, "hours_utc", minutes, "hours in UTC such as 00:30-16:30")
        yield from parsed(row, "context_tokens", _count, "a whole number of tokens")
        yield from day(row, "seen_at", known.today)

    return check


def _prices(row: Row) -> Iterator[Fault]:
    """Prices that can be read; one of 0 would win against every machine, and what is free is limited."""
    dearest = {}
    for column in (*_NEEDED, "cached_input_per_million"):
        if not row[column]:
            if column in _NEEDED:
                yield Fault(Code.MISSING_VALUE, column, "", "a price", "write the price of a million tokens")
            continue
        try:
            dearest[column] = _dearest(tiered(row[column]))
        except ValueError:
            yield Fault(Code.BAD_VALUE, column, row[column], _TOKENS, "write the amounts without currency")
            continue
        if dearest[column] > DEAREST_PER_MILLION:
            yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"0 to {DEAREST_PER_MILLION}", "check its unit")
    if not any(dearest.get(column, 1) for column in _NEEDED):
        yield Fault(Code.OUT_OF_BOUNDS, _NEEDED[1], "0 in and out", "more than 0", "write what you pay")


def _dearest(price: Tiered) -> Decimal:
    return max((price.base, *(amount for _, amount in price.steps)))


def _count(text: str) -> int:
    tokens = int(text) if is_whole(text) else 0
    if tokens <= 0:
        raise ValueError(text)
    return tokens
