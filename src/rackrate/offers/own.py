"""A user's own prices: negotiated rates, packages, private machines, as rows of a price list.

Only provider, name, card, gpus, price, currency, term and observed_on are
needed; what the rest defaults to follows from the term (``TERMS``) or from
what the bundled list says of the same product. An own price replaces bundled
ones of the same product by the same seller (same cards, count, share, kind of
term, market, and a region among its own) when it is not older, or when it is
marked ``negotiated``; else the bundled one, being newer, replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rackrate.facts.book import FactBook
from rackrate.facts.cells import is_number, is_whole
from rackrate.facts.names import resolve_card
from rackrate.facts.own_rows import Columns, OwnRow, OwnTable, own_source, read_rows, told
from rackrate.facts.validate_cells import as_float, day, member, number
from rackrate.facts.validate_rows import Fault
from rackrate.offers.validate import DEAREST, EXCLUDES, FLAGS, HOW, LEAST_PRICE
from rackrate.problems import Code, Finding, nearest
from rackrate.values import Value

NEEDED = ("provider", "name", "card_label", "gpus", "price", "currency", "term", "observed_on")
SPELLINGS = {"card": "card_label"}
OWN, NEGOTIATED = "own", "negotiated"
"""Words in the column ``flags``; the first is written here, never by users."""


class TermRule(NamedTuple):
    """What a term holds unless the row says otherwise: hours, paid whole or not, and the market it is sold on."""

    hours: str
    prepaid: str
    market: str


TERMS: Mapping[str, TermRule] = {
    "hour": TermRule("1", "false", "on_demand"),
    "day": TermRule("24", "true", "daily_package"),
    "week": TermRule("168", "true", "weekly_package"),
    "month": TermRule("720", "true", "monthly_package"),
    "year": TermRule("8760", "true", "reserved_1y"),
    "3year": TermRule("26280", "true", "reserved_3y"),
    "credit_pack": TermRule("", "true", "credit_package"),
}
"""A month is taken as 30 days, the dearer reading: sellers count 720 or 730 hours."""

_FLAGS = (*sorted(FLAGS), NEGOTIATED)
_SEEN_HOW, _EXCLUDES = sorted(HOW), sorted(EXCLUDES)
_MOST_CARDS = 100_000
_MOST_HOURS = 100_000
_MOST_PARTS = 1_000


class OwnPrices(Value, frozen=True, kw_only=True):
    """Own price rows and own regions that can be used, and what is wrong with the others."""

    rows: tuple[OwnRow, ...]
    regions: tuple[OwnRow, ...]
    findings: tuple[Finding, ...]

    @property
    def places(self) -> dict[tuple[str, str], tuple[str, str, tuple[str, ...]]]:
        """The own regions by (provider, region), each with its country and groups; the first of a name counts."""
        return {
            (cells["provider"], cells["region"]): (
                cells["region"],
                cells["country"],
                tuple(filter(None, cells["groups"].split("|"))),
            )
            for cells in (row.cells for row in reversed(self.regions))
        }


def own_prices(tables: Sequence[OwnTable], columns: Sequence[str], book: FactBook) -> OwnPrices:
    """The rows of own ``offers*.csv`` and ``regions.csv``, held against the cards and currencies of ``book``."""
    found: list[Finding] = []
    offered = Columns(tuple(columns), NEEDED, {"observed_how": "page_read"}, SPELLINGS)
    rows = [row for table in tables if table.name == "offers.csv" for row in read_rows(table, offered, found)]
    placed = Columns(("provider", "region", "country", "groups"), ("region", "country"), {"provider": "*"})
    regions = [row for table in tables if table.name == "regions.csv" for row in read_rows(table, placed, found)]
    checked = _Checked(book)
    kept = tuple(row for row in rows if not _told(row, checked.faults(row.cells), found))
    return OwnPrices(rows=kept, regions=tuple(regions), findings=tuple(found))


def _told(row: OwnRow, faults: Iterable[Fault], found: list[Finding]) -> bool:
    wrong = [told(row, fault) for fault in faults]
    found.extend(wrong)
    return bool(wrong)


class _Checked:
    """The checks of a price row; each card's name is looked up once."""

    def __init__(self, book: FactBook) -> None:
        self._book = book
        self._cards: dict[tuple[str, str, str], tuple[str, ...]] = {}

    def faults(self, cells: Mapping[str, str]) -> Iterator[Fault]:
        """What is wrong with the row, in the order of its columns."""
        yield from self._card(cells)
        yield from _counts(cells)
        yield from _price(cells)
        rates = self._book.rates
        if not rates.knows(cells["currency"]):
            expected = f"one of {', '.join(sorted({rates.base, *rates.per_base}))}"
            action = "write its ISO 4217 code, or give its rate in your exchange_rates.csv"
            yield Fault(Code.UNKNOWN_NAME, "currency", cells["currency"], expected, action)
        yield from _term(cells)
        yield from _words(cells)

    def _card(self, cells: Mapping[str, str]) -> Iterator[Fault]:
        key = (cells["card_label"], cells["memory_gb"], cells["form_factor"])
        if key not in self._cards:
            memory = as_float(key[1]) or None
            self._cards[key] = resolve_card(key[0], self._book.accelerators, memory, key[2])
        if self._cards[key]:
            return
        without = resolve_card(key[0], self._book.accelerators)
        if without:
            said = " ".join(filter(None, (key[1] and f"{key[1]} GB", key[2])))
            action = f"leave memory_gb and form_factor out, or make them those of {' or '.join(without[:4])}"
            yield Fault(Code.CONFLICT, "card", f"{key[0]} with {said}", "a card that there is", action)
        else:
            close = nearest(key[0], self._book.accelerators)
            guess = f"did you mean {' or '.join(close)}? " if close else ""
            action = f"{guess}`rackrate facts list cards` has all; a new card goes into your accelerators.csv"
            yield Fault(Code.UNKNOWN_NAME, "card", key[0], "a known card", action)


def _counts(cells: Mapping[str, str]) -> Iterator[Fault]:
    yield from _whole(cells, "gpus", _MOST_CARDS)
    for column, most in (("vcpus", 100_000), ("minimum_terms", 100_000), ("validity_days", 10_000)):
        if cells[column]:
            yield from _whole(cells, column, most)
    for column, low, high in (("memory_gb", 0.1, 1e3), ("host_memory_gb", 0.1, 1e5), ("includes_disk_gb", 0, 1e7)):
        if cells[column]:
            yield from number(cells, column, low, high)
    part, _, whole = cells["share"].partition("/")
    parts = as_float(whole or "1")
    if cells["share"] and not 0 < parts / _MOST_PARTS <= as_float(part) <= parts <= _MOST_PARTS:
        yield Fault(Code.BAD_VALUE, "share", cells["share"], "a part of one card such as 1/8", "write it as a fraction")


def _whole(cells: Mapping[str, str], column: str, most: int) -> Iterator[Fault]:
    if not is_whole(cells[column]):
        yield Fault(Code.BAD_VALUE, column, cells[column], "a whole number", "write digits alone")
    else:
        yield from number(cells, column, 1, most)


def _price(cells: Mapping[str, str]) -> Iterator[Fault]:
    """An exact price above 0: what costs nothing would win every ranking."""
    if not is_number(cells["price"]):
        action = "write the number alone: the currency has its own column, and there is no thousands separator"
        yield Fault(Code.BAD_VALUE, "price", cells["price"], "a number", action)
    elif not LEAST_PRICE <= float(cells["price"]) <= DEAREST:
        action = "a machine of your own costs power, room and wear: write what an hour of it costs you (term hour)"
        other = "write what one term costs"
        expected = f"{LEAST_PRICE:g} to {DEAREST:g}"
        yield Fault(Code.OUT_OF_BOUNDS, "price", cells["price"], expected, other if float(cells["price"]) else action)


def _term(cells: Mapping[str, str]) -> Iterator[Fault]:
    faults = list(member(cells, "term", list(TERMS), ", ".join(TERMS)))
    yield from faults
    if cells["hours_in_term"]:
        yield from number(cells, "hours_in_term", 0.01, _MOST_HOURS)
    elif not faults and not TERMS[cells["term"]].hours:
        action = "write how many hours of this machine the pack buys"
        yield Fault(Code.MISSING_VALUE, "hours_in_term", "", "hours", action)
    if cells["prepaid"] not in {"", "true", "false"}:
        yield Fault(
            Code.BAD_VALUE, "prepaid", cells["prepaid"], "true or false", "write true where whole terms are paid"
        )
    yield from day(cells, "observed_on")


def _words(cells: Mapping[str, str]) -> Iterator[Fault]:
    yield from member(cells, "observed_how", _SEEN_HOW, ", ".join(_SEEN_HOW))
    for column, known in (("flags", _FLAGS), ("excludes", _EXCLUDES)):
        for word in filter(None, cells[column].split("|")):
            yield from member({column: word}, column, known, ", ".join(known))


# ---------------------------------------------------------------- what the row leaves open


class OwnLine(NamedTuple):
    """An own price as a line of a price list; ``filled`` are the columns that its author left open, and with what."""

    row: OwnRow
    cells: list[str]
    filled: tuple[tuple[str, str], ...]


_SHOWN = ("product", "region", "market", "hours_in_term", "prepaid", "flags", "observed_how", "source")
"""Columns whose defaults bear on what is planned; the others stay empty, which says nothing."""


def completed(own: OwnPrices, listed: Iterable[Sequence[str]], columns: Sequence[str], book: FactBook) -> list[OwnLine]:
    """Own rows as lines of ``columns``; what they leave open comes from ``listed``, the bundled lines, or the term."""
    names = {row.cells["name"] for row in own.rows}
    at, called = columns.index("provider"), columns.index("name")
    known: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    spelled: dict[str, str] = {}
    for line in listed:
        spelled.setdefault(_seller(line[at], book), line[at])
        if line[called] in names:
            cells = dict(zip(columns, line, strict=True))
            known.setdefault((_seller(line[at], book), line[called]), []).append(cells)
    spelled |= {_seller(name, book): name for name in book.billing if _seller(name, book) not in spelled}
    return [_completed(row, known, spelled, columns, book) for row in own.rows]


def _seller(name: str, book: FactBook) -> str:
    """One spelling for all names of a provider."""
    return book.provider_ids.get(name, name).casefold()


def _completed(
    row: OwnRow,
    known: Mapping[tuple[str, str], Sequence[Mapping[str, str]]],
    spelled: Mapping[str, str],
    columns: Sequence[str],
    book: FactBook,
) -> OwnLine:
    said, term = row.cells, TERMS[row.cells["term"]]
    seller = _seller(said["provider"], book)
    cells = {**said, "provider": spelled.get(seller, said["provider"])}
    cells["hours_in_term"] = said["hours_in_term"] or term.hours
    cells["prepaid"] = said["prepaid"] or term.prepaid
    same = [one for one in known.get((seller, said["name"]), ()) if _is_like(one, cells)]
    cells["product"] = said["product"] or next((one["product"] for one in same), "")
    cells["market"] = said["market"] or _only(one["market"] for one in same) or term.market
    same = [one for one in same if one["market"] == cells["market"]]
    cells["region"] = said["region"] or "|".join(dict.fromkeys(one["region"] for one in same if one["region"]))
    flags = [word for word in said["flags"].split("|") if word]
    if cells["market"].startswith("spot") and "interruptible" not in flags:
        flags.append("interruptible")
    cells["flags"] = "|".join([*flags, OWN])
    cells["source"] = own_source(said["source"])
    filled = tuple((name, cells[name]) for name in _SHOWN if not said[name] and cells[name] and cells[name] != OWN)
    seen_how = (("observed_how", cells["observed_how"]),) if "observed_how" in row.filled else ()
    return OwnLine(row, [cells[column] for column in columns], (*filled, *seen_how))


def _is_like(listed: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether a bundled line is sold in the way of an own one: count, kind of term, firmness."""
    wanted = "interruptible" in own["flags"] or own["market"].startswith("spot")
    return (
        listed["gpus"] == own["gpus"]
        and listed["share"] == own["share"]
        and listed["term"] == own["term"]
        and listed["prepaid"] == own["prepaid"]
        and ("interruptible" in listed["flags"]) == wanted
    )


def _only(values: Iterable[str]) -> str:
    """The value that all share, or nothing."""
    found = set(values)
    return found.pop() if len(found) == 1 else ""
