"""Filters: tests on columns that leave offers out before anything is estimated.

Every offer is counted under the first test that it fails, in the order in which
they are made, so the counts add up to the offers left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.engine import Engine
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import Reason
from rackrate.plan.question import Question
from rackrate.workload.requirements import meets

Bools = NDArray[np.bool_]
Bits = NDArray[np.uint32]
Codes = NDArray[np.int16]
T = TypeVar("T")

NARROW = {Precision.FP8: "fp8_compute", Precision.FP4: "fp4_compute", Precision.INT8: "int8_compute"}
"""Arithmetic that a card has or lacks: wider types can be emulated in FP32, these would lose their point."""

REASONS = tuple(Reason)
KEPT = np.int16(-1)


def code_of(reason: Reason) -> int:
    """The code of a reason in a column of reasons."""
    return REASONS.index(reason)


def distinct(codes: NDArray[np.int32]) -> list[int]:
    """The codes that occur, ascending (linear, and without the masked arrays that ``np.unique`` loads)."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


class Excluded(NamedTuple):
    """Per entry, the code of the first test that it fails (or ``KEPT``), and whether it fails no other."""

    codes: Codes
    alone: Bools


class _Test(NamedTuple):
    """A test: which entries fail, or which words of a vocabulary, whose codes are then in ``column``."""

    reason: Reason
    failing: Bools
    column: NDArray[np.int32] | None = None


def exclude(question: Question) -> Excluded:
    """Put every entry to every test, a bit for each."""
    tests = list(_tests(question))
    failed = np.zeros(len(question.offers), dtype=np.uint32)
    by_column: dict[int, tuple[NDArray[np.int32], Bits]] = {}
    for number, test in enumerate(tests):
        bit = np.uint32(1 << number)
        if test.column is None:
            failed |= np.multiply(test.failing, bit, dtype=np.uint32)
        elif test.failing.any():
            _, words = by_column.setdefault(id(test.column), (test.column, np.zeros(len(test.failing), np.uint32)))
            words |= np.multiply(test.failing, bit, dtype=np.uint32)
    for column, words in by_column.values():
        failed |= words[column]
    lowest = failed & (~failed + np.uint32(1))
    first = np.frexp(lowest.astype(np.float64))[1]  # 0 for no bit, else the bit's number + 1
    codes = np.array([KEPT, *(code_of(test.reason) for test in tests)], dtype=np.int16)
    return Excluded(codes[first], failed == lowest)


def _tests(question: Question) -> Iterator[_Test]:
    yield from _card_tests(question)
    limits, table = question.workload.limits, question.offers
    if limits.gpu_counts:
        yield _Test(Reason.GPU_COUNT, ~_any_of(table.gpus, limits.gpu_counts))
    if limits.max_gpus is not None:
        yield _Test(Reason.GPU_COUNT, table.gpus > limits.max_gpus)
    wanted, unwanted = (
        _ids(names, question.book.provider_ids) for names in (limits.providers, limits.exclude_providers)
    )
    if wanted or unwanted:
        others = _words(table.providers, lambda name: not _chosen(name, wanted, unwanted))
        yield _Test(Reason.PROVIDER, others, table.provider)
    if limits.regions:
        known = _words(table.places, lambda place: bool(place[0]))
        yield _Test(Reason.REGION_UNKNOWN, ~known, table.place)
        yield _Test(Reason.REGION, known & ~table.places_in(limits.regions), table.place)
    if limits.markets:
        others = _words(table.markets, lambda name: not _is_one_of(name, limits.markets))
        yield _Test(Reason.MARKET, others, table.market)
    if not limits.interruptible:
        yield _Test(Reason.INTERRUPTIBLE, table.interruptible)
    yield from _price_tests(question)


def _price_tests(question: Question) -> Iterator[_Test]:
    table, rates = question.offers, question.book.rates
    yield _Test(Reason.SUPERSEDED, table.superseded)
    yield _Test(Reason.PRICE_INVALID, ~table.priced)
    yield _Test(Reason.PRICE_INCOMPLETE, table.excludes_host)
    asked_for = _words(table.markets, lambda name: _is_named(name, question.workload.limits.markets))
    doubted = ~asked_for[table.market] if asked_for.any() else np.bool_(True)  # noqa: FBT003 - a scalar, not a flag
    yield _Test(Reason.PRICE_FROM, table.price_is_from & doubted)
    yield _Test(Reason.COMMITMENT_UNKNOWN, table.commitment_unknown & doubted)
    yield _Test(Reason.NO_RATE, _words(table.currencies, lambda code: not rates.knows(code)), table.currency)


def _card_tests(question: Question) -> Iterator[_Test]:
    """Tests on what the card is; an offer of an unclear card passes only if every card it can be passes."""
    limits, cards = question.workload.limits, question.book.accelerators
    yield _by_set(question, Reason.CARD_UNKNOWN, lambda shapes: not shapes)
    if limits.gpus:
        yield _by_set(question, Reason.CARD_NOT_ASKED, lambda s: any(x.accelerator not in limits.gpus for x in s))
    if limits.vendors:
        vendors = {vendor.casefold() for vendor in limits.vendors}
        yield _by_set(
            question,
            Reason.CARD_NOT_ASKED,
            lambda s: any(cards[x.accelerator].vendor.casefold() not in vendors for x in s),
        )
    if limits.require:
        yield _by_card(question, Reason.CARD_PROPERTY, lambda card: _has_all(card, limits.require))
    narrow = NARROW.get(question.workload.precision)
    if narrow is not None:
        yield _by_card(question, Reason.ARITHMETIC, lambda card: _has_all(card, (narrow,)))
    yield _by_card(question, Reason.ENGINE_UNSUPPORTED, lambda card: runs_on(question.engine, card))


def _has_all(card: Accelerator, requirements: Iterable[str]) -> bool:
    """Whether the card surely has every property; unknown is not a pass."""
    return all(meets(card, requirement) is True for requirement in requirements)


def runs_on(engine: Engine, card: Accelerator) -> bool:
    """Whether the engine supports the card's vendor and, for NVIDIA, its compute capability."""
    if card.vendor not in engine.vendors:
        return False
    least, has = engine.min_compute_capability, card.compute_capability
    return least is None or has is None or has >= least


def _by_set(question: Question, reason: Reason, fails: Callable[[tuple[MachineShape, ...]], bool]) -> _Test:
    return _Test(reason, _words(question.offers.shape_sets, fails), question.offers.shape_set)


def _by_card(question: Question, reason: Reason, passes: Callable[[Accelerator], bool]) -> _Test:
    """A test that every card of a set must pass; each card is looked at once."""
    cards = question.book.accelerators
    names = {shape.accelerator for shapes in question.offers.shape_sets for shape in shapes}
    failing = {name for name in names if not passes(cards[name])}
    return _by_set(question, reason, lambda shapes: any(shape.accelerator in failing for shape in shapes))


def _any_of(column: NDArray[np.int32], wanted: Iterable[int]) -> Bools:
    found = np.zeros(len(column), dtype=np.bool_)
    for value in wanted:
        found |= column == value
    return found


def _words(vocabulary: Iterable[T], holds: Callable[[T], bool]) -> Bools:
    return np.array([holds(word) for word in vocabulary], dtype=np.bool_)


def _is_one_of(name: str, wanted: Collection[str]) -> bool:
    """Whether a market or provider is asked for: its own name, or the first words of it (``reserved``)."""
    folded = name.casefold()
    return any(folded == w.casefold() or folded.startswith((f"{w.casefold()}_", f"{w.casefold()}:")) for w in wanted)


def _ids(names: Iterable[str], aliases: Mapping[str, str]) -> tuple[str, ...]:
    """Providers by the id that offers use, whatever they were called (``oracle`` is ``oci``)."""
    folded = {other.casefold(): name for other, name in aliases.items()}
    return tuple(folded.get(name.casefold(), name) for name in names)


def _is_named(name: str, wanted: Collection[str]) -> bool:
    """Whether a market is asked for by its own name: such an offer is planned on in spite of its doubts."""
    return name.casefold() in {w.casefold() for w in wanted}


def _chosen(name: str, wanted: Collection[str], unwanted: Collection[str]) -> bool:
    return (not wanted or _is_one_of(name, wanted)) and not _is_one_of(name, unwanted)
