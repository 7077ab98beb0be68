"""Validation of price lists: what a bundled row must say, checked before it is released."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date

from rackrate.facts.cells import is_number, is_whole
from rackrate.facts.validate_cells import FIRST_DAY
from rackrate.facts.validate_rows import is_private
from rackrate.offers.gates import DOUBTS
from rackrate.problems import Code, Finding
from rackrate.units import parse_day
from rackrate.values import Value

Row = Mapping[str, str]
Check = Callable[[str], bool]

TERMS = frozenset({"hour", "day", "week", "month", "year", "3year", "credit_pack"})
LEAST_PRICE, DEAREST = 1e-6, 1e9
"""Of one term, in any currency: less than a millionth is nothing."""
HOW = frozenset({"page_read", "generated", "not_before", "not_after", "schema_era"})
EXCLUDES = frozenset({"host", "disk", "traffic", "ip", "tax"})
FLAGS = frozenset({"interruptible", "commitment_unknown", "price_is_from", "virtual_gpu"})
MARKETS = frozenset(
    {
        *("on_demand", "on_demand_community", "on_demand_from", "on_demand_secure", "on_demand_virtual_gpu"),
        *("marketplace_on_demand", "marketplace_from", "spot", "capacity_block"),
        *("monthly_package", "monthly_contract", "credit_package"),
        *("reserved_1y", "reserved_3y", "reserved_from", "reserved_claimed", "commitment_multi_year"),
        *("savings_1y", "savings_3y", "convertible_1y", "convertible_3y"),
    }
)


class Known(Value, frozen=True, kw_only=True):
    """What rows may refer to: columns, providers (ids and other names), currencies, places by (provider, region).

    Nothing can have been seen after ``today``; None leaves that open.
    """

    columns: tuple[str, ...]
    providers: frozenset[str]
    currencies: frozenset[str]
    places: frozenset[tuple[str, str]]
    today: date | None = None


def validate_offers(files: Mapping[str, Sequence[Row]], known: Known) -> list[Finding]:
    """Every fault of the price lists in ``files`` (rows by file name), in the order of the files."""
    found = [fault for name, rows in files.items() for fault in _file(name, rows, known)]
    return [*found, *_twice(files)]


def _file(name: str, rows: Sequence[Row], known: Known) -> Iterator[Finding]:
    if not rows:
        yield _fault(f"{name}:1", Code.MISSING_VALUE, "", "a table with rows: restore the file, or remove it")
        return
    if tuple(rows[0])[: len(known.columns)] != known.columns:
        missing = ", ".join(sorted(set(known.columns) - set(rows[0]))) or "none, but the order differs"
        yield _fault(
            f"{name}:1", Code.UNKNOWN_KEY, ", ".join(rows[0])[:80], f"the columns of README.md; lacks {missing}"
        )
        return
    for number, row in enumerate(rows, start=2):
        if len(row) > len(known.columns):
            yield _fault(f"{name}:{number}", Code.BAD_SYNTAX, "more cells than columns", "a cell for each column")
        else:
            yield from _row(f"{name}:{number}", row, known)


def _row(place: str, row: Row, known: Known) -> Iterator[Finding]:
    for column in ("provider", "name", "card_label", "source"):
        if not row[column].strip():
            code = Code.NO_SOURCE if column == "source" else Code.MISSING_VALUE
            yield _fault(f"{place} {column}", code, "", "a value: say where the price was seen, or leave the row out")
    if is_private(row["source"]):
        yield _fault(f"{place} source", Code.NO_SOURCE, row["source"], "a public place")
    for column, check, expected in _CHECKS:
        if not check(row[column] or ""):
            yield _fault(f"{place} {column}", Code.BAD_VALUE, row[column], expected)
    if known.today and _day(row["observed_on"]) and date.fromisoformat(row["observed_on"]) > known.today:
        yield _fault(f"{place} observed_on", Code.OUT_OF_BOUNDS, row["observed_on"], f"a day up to {known.today}")
    yield from _references(place, row, known)


def _references(place: str, row: Row, known: Known) -> Iterator[Finding]:
    seller, _, upstream = row["provider"].partition(":")
    if row["provider"] not in known.providers and not {seller, upstream} & known.providers:
        yield _fault(
            f"{place} provider", Code.UNKNOWN_NAME, row["provider"], "an id or alias of facts/data/providers.csv"
        )
    if row["currency"] not in known.currencies:
        yield _fault(f"{place} currency", Code.UNKNOWN_NAME, row["currency"], ", ".join(sorted(known.currencies)))
    for region in filter(None, row["region"].split("|")):
        if not {(row["provider"], region), ("*", region)} & known.places:
            yield _fault(f"{place} region", Code.UNKNOWN_NAME, region, "a line of regions.csv for this provider")


def _twice(files: Mapping[str, Sequence[Row]]) -> Iterator[Finding]:
    counts = Counter(tuple(map(str, row.values())) for rows in files.values() for row in rows)
    for values, count in counts.items():
        if count > 1:
            yield _fault(" ".join(values[:2]), Code.DUPLICATE, f"{count} equal rows", "each observation once")


def _between(low: float, high: float) -> Check:
    return lambda text: is_number(text) and low <= float(text) <= high


def _count(most: int) -> Check:
    return lambda text: is_whole(text) and 1 <= int(text) <= most


def _day(text: str) -> bool:
    try:
        return parse_day(text) >= FIRST_DAY
    except ValueError:
        return False


def _words(allowed: Collection[str]) -> Check:
    return lambda text: set(text.split("|")) - {""} <= set(allowed)


def _one(allowed: Collection[str]) -> Check:
    return lambda text: text in allowed


def _or_empty(check: Check) -> Check:
    return lambda text: not text or check(text)


def _share(text: str) -> bool:
    return bool(re.fullmatch(r"1|0?\.\d*[1-9]\d*|1/[1-9]\d{0,3}", text, re.ASCII))


_CHECKS: tuple[tuple[str, Check, str], ...] = (
    ("price", _between(LEAST_PRICE, DEAREST), f"a price from {LEAST_PRICE:g} to {DEAREST:g}"),
    ("hours_in_term", _between(0.01, 1e6), "hours from 0.01 to 1e6"),
    ("gpus", _count(100_000), "a whole number of cards"),
    ("share", _or_empty(_share), "a part such as 1/2 or 0.25, or nothing for whole cards"),
    ("memory_gb", _or_empty(_between(0.1, 1e5)), "GB as sold, or nothing"),
    ("minimum_terms", _or_empty(_count(100_000)), "a whole number of terms from 1, or nothing"),
    ("validity_days", _or_empty(_count(10_000)), "a whole number of days from 1, or nothing"),
    ("includes_disk_gb", _or_empty(_between(0.001, 1e7)), "GB above 0, or nothing"),
    ("vcpus", _or_empty(_count(100_000)), "a whole number from 1, or nothing"),
    ("host_memory_gb", _or_empty(_between(0.001, 1e6)), "a number, or nothing"),
    ("currency", lambda text: bool(re.fullmatch(r"[A-Z]{3}", text)), "an ISO 4217 code"),
    ("term", _one(TERMS), ", ".join(sorted(TERMS))),
    ("market", _one(MARKETS), ", ".join(sorted(MARKETS))),
    ("prepaid", _one({"true", "false"}), "true or false"),
    ("observed_on", _day, "a date such as 2026-11-30"),
    ("observed_how", _one(HOW), ", ".join(sorted(HOW))),
    ("excludes", _words(EXCLUDES), ", ".join(sorted(EXCLUDES))),
    ("flags", _words(FLAGS), ", ".join(sorted(FLAGS))),
    ("doubts", _words(DOUBTS), ", ".join(sorted(DOUBTS))),
)


def _fault(subject: str, code: Code, observed: str, expected: str) -> Finding:
    action = "correct the row; offers/data/README.md describes every column"
    return Finding(code=code, subject=subject, observed=observed, expected=expected, action=action)
