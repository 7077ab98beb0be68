"""A very long price list by the column: each field of ``Record`` as a vocabulary of texts and a code per line.

What ``Reader`` makes of a line is made here of the words of a vocabulary, so
that a list of millions of lines is read without a step of Python for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.accelerator import Accelerator
from rackrate.offers.arrays import Bools, Codes
from rackrate.offers.columns import Coded, Conditions, Machine, OfferColumns, distinct
from rackrate.offers.conflicts import DATE_IS_SURE
from rackrate.offers.meter import SoldTerm
from rackrate.offers.offer import Offer
from rackrate.offers.price_list import (
    Reader,
    Record,
    base_id,
    count_of,
    hours_of,
    offer_of,
    price_of,
    share_of,
    truth_of,
)
from rackrate.problems import Code, Finding
from rackrate.units import parse_day

K = TypeVar("K")
Texts = Mapping[str, Coded[str]]

MOST_DIGITS = 15
"""Of a price: as many as a float keeps apart, so that prices are equal where their floats are."""


class Read(NamedTuple):
    """The lines that can be read, as texts and as columns, and what was wrong with the others."""

    texts: Texts
    columns: OfferColumns
    findings: tuple[Finding, ...]


def read_texts(texts: Texts, reader: Reader) -> Read:
    """The columns of a price list; a line with a word that cannot be read becomes a finding and is left out."""
    readable, findings = _readable(texts)
    kept = texts if readable.all() else {field: _kept(column, readable) for field, column in texts.items()}
    return Read(kept, _columns(kept, reader), findings)


def line_at(texts: Texts, place: int) -> list[str]:
    """The cells of one line."""
    return [texts[field].words[texts[field].codes[place]] for field in Record._fields]


def nth_of_base(texts: Texts) -> NDArray[np.int32]:
    """For each line, how many before it would be called the same (see ``price_list.ids_of``)."""
    base = distinct(*(texts[field].codes for field in ("provider", "name", "region", "market", "observed_on")))
    order = np.argsort(base, kind="stable")
    ordered = base[order]
    nth = np.empty(len(base), dtype=np.int32)
    nth[order] = np.arange(len(base)) - np.searchsorted(ordered, ordered)
    return nth


class PackedWords(Sequence[str]):
    """A vocabulary as letters in one array, words made when asked for; see ``pack``."""

    def __init__(self, letters: NDArray[np.uint8], ends: Codes) -> None:
        self._letters = letters.data
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return str(self._letters[self._ends[place - 1] if place else 0 : self._ends[place]], "utf-8")


def pack(words: Sequence[str]) -> tuple[NDArray[np.uint8], Codes]:
    """The letters of all words as UTF-8, and where each word ends."""
    encoded = [word.encode("utf-8") for word in words]
    ends = np.cumsum(np.array([len(word) for word in encoded], dtype=np.int64)).astype(np.int32)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


class Records:
    """Makes the exact offer of a line when it is asked for; ``nth`` is that of ``nth_of_base``."""

    def __init__(
        self, texts: Texts, nth: NDArray[np.int32], reader: Reader, accelerators: Mapping[str, Accelerator]
    ) -> None:
        self._texts = texts
        self._nth = nth
        self._reader = reader
        self._accelerators = accelerators

    def __call__(self, place: int) -> Offer:
        """The exact offer at ``place``."""
        line, nth = line_at(self._texts, place), int(self._nth[place])
        name = base_id(line) if not nth else f"{base_id(line)}~{nth + 1}"
        return offer_of(line, self._reader.row(line), name, self._accelerators)


# ---------------------------------------------------------------- words


def _columns(texts: Texts, reader: Reader) -> OfferColumns:
    return OfferColumns(
        provider=texts["provider"],
        name=texts["name"],
        product=_products(texts),
        machine=_made(texts, ("card_label", "memory_gb", "form_factor", "gpus", "share"), _machine_by(reader)),
        place=_made(texts, ("provider", "region"), reader.place),
        market=texts["market"],
        currency=texts["currency"],
        term=_made(texts, ("term", "hours_in_term", "prepaid", "minimum_terms", "validity_days"), _term),
        conditions=_made(texts, ("flags", "excludes", "includes_disk_gb"), _conditions),
        price_per_term=_numbers(texts["price"], float).astype(np.float64),
        day=_numbers(texts["observed_on"], lambda text: parse_day(text).toordinal()).astype(np.int32),
        dated=_numbers(texts["observed_how"], lambda text: text in DATE_IS_SURE).astype(np.bool_),
    )


def _made(texts: Texts, fields: tuple[str, ...], make: Callable[..., K]) -> Coded[K]:
    """What ``make`` makes of each combination of words in ``fields`` that occurs."""
    codes = distinct(*(texts[field].codes for field in fields))
    example = np.zeros(codes.max(initial=-1) + 1, dtype=np.intp)
    example[codes] = np.arange(len(codes))
    cells = ([texts[field].words[texts[field].codes[place]] for field in fields] for place in example.tolist())
    return Coded([make(*words) for words in cells], codes)


def _products(texts: Texts) -> Coded[str]:
    """The product that a line names, else its provider and name."""
    words: dict[str, int] = {}
    each = _made(texts, ("product", "provider", "name"), lambda product, *own: product or "/".join(own))
    new = np.array([words.setdefault(word, len(words)) for word in each.words], dtype=np.int32)
    return Coded(tuple(words), new[each.codes])


def _machine_by(reader: Reader) -> Callable[..., Machine]:
    return lambda label, *rest: Machine(label, *reader.machine((label, *rest)))


def _term(unit: str, hours: str, prepaid: str, terms: str, days: str) -> SoldTerm:
    validity = 24.0 * int(days) if days else float("inf")
    return SoldTerm(unit, float(hours), truth_of(prepaid), int(terms or 1), validity)


def _conditions(flags: str, excludes: str, disk: str) -> Conditions:
    said = ("interruptible" in flags, "commitment_unknown" in flags, "price_is_from" in flags, "host" in excludes)
    return Conditions(*said, float(disk) if disk else 0.0)


def _numbers(column: Coded[str], number: Callable[[str], float]) -> NDArray[np.float64]:
    return np.array([number(word) for word in column.words], dtype=np.float64)[column.codes]


# ---------------------------------------------------------------- what cannot be read


def _price(text: str) -> None:
    if len(text.partition("e")[0].replace(".", "").lstrip("-0")) > MOST_DIGITS:
        raise ValueError(f"more than {MOST_DIGITS} digits: {text!r}")
    price_of(text)


def _or_empty(parse: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: parse(text) if text else None


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "price": _price,
    "gpus": count_of,
    "share": share_of,
    "memory_gb": _or_empty(float),
    "hours_in_term": hours_of,
    "vcpus": _or_empty(int),
    "host_memory_gb": _or_empty(float),
    "prepaid": truth_of,
    "minimum_terms": _or_empty(int),
    "validity_days": _or_empty(int),
    "includes_disk_gb": _or_empty(float),
    "observed_on": parse_day,
}


def _readable(texts: Texts) -> tuple[Bools, tuple[Finding, ...]]:
    readable = np.ones(len(texts["price"].codes), dtype=np.bool_)
    findings: list[Finding] = []
    for field, check in _CHECKS.items():
        words, codes = texts[field]
        problems = {code: problem for code, word in enumerate(words) if (problem := _problem(check, word))}
        if problems:
            bad = np.isin(codes, np.array(list(problems), dtype=np.int32))
            readable &= ~bad
            counts = np.bincount(codes[bad], minlength=len(words))
            findings += [_unreadable(field, text, int(counts[code])) for code, text in problems.items() if counts[code]]
    return readable, tuple(findings)


def _kept(column: Coded[str], which: Bools) -> Coded[str]:
    """Some lines of a column, with the words that they use."""
    codes = column.codes[which]
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.words)))
    new = np.zeros(len(column.words), dtype=np.int32)
    new[used] = np.arange(len(used))
    return Coded([column.words[code] for code in used.tolist()], new[codes])


def _problem(check: Callable[[str], object], word: str) -> str:
    try:
        check(word)
    except (ValueError, ArithmeticError) as problem:
        return str(problem)
    return ""


def _unreadable(field: str, observed: str, count: int) -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject=f"{field}, {count} lines",
        observed=observed,
        expected="a line as data/README.md describes",
        action="correct the lines",
    )
