"""Filters: tests on columns that leave offers out before anything is estimated.

Every offer is counted under the first test that it fails, in the order in which
they are made, so the counts add up to the offers left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.offers.offer import MachineShape
from rackrate.offers.table import FLAGS, OfferTable
from rackrate.plan.answer import Reason
from rackrate.plan.question import Question
from rackrate.values import Value
from rackrate.workload.needs import meets_need
from rackrate.workload.requirements import meets
from rackrate.workload.workload import Limits, Workload

Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]
T = TypeVar("T")

NARROW = {Precision.FP8: "fp8_compute", Precision.FP4: "fp4_compute", Precision.INT8: "int8_compute"}
"""Arithmetic that a card has or lacks: wider types can be emulated in FP32, these would lose their point."""

REASONS = tuple(Reason)
KEPT = np.int8(127)
"""In a column of reasons: none; more than every code, so that the least of several codes is the first reason."""


def code_of(reason: Reason) -> int:
    """The code of a reason in a column of reasons."""
    return REASONS.index(reason)


def distinct(codes: NDArray[np.int32] | NDArray[np.intp]) -> list[int]:
    """The codes that occur, ascending (linear, and without the masked arrays that ``np.unique`` loads)."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


class Excluded(Value, frozen=True, eq=False):
    """Per entry, the code of the first test that it fails (or ``KEPT``), and whether it fails no other."""

    codes: Codes
    alone: Bools


class Wanted(Value, frozen=True, kw_only=True, eq=False):
    """Limits, and the offers and facts that they are held against."""

    limits: Limits
    offers: OfferTable
    book: FactBook


class Test(Value, frozen=True, eq=False):
    """A test: which entries fail, or which words of a vocabulary, whose codes are then in ``column``."""

    reason: Reason
    failing: Bools
    column: NDArray[np.int32] | NDArray[np.uint8] | None = None


class Failed(Value, frozen=True, eq=False):
    """The first test failed by each entry, or by each word of a vocabulary, and how many are failed."""

    codes: Codes
    counts: NDArray[np.int8]

    @classmethod
    def none(cls, length: int) -> Failed:
        """None failed, yet."""
        return cls(np.full(length, KEPT, dtype=np.int8), np.zeros(length, dtype=np.int8))

    def add(self, codes: Codes, counts: NDArray[np.int8] | Bools) -> None:
        """More tests failed (in place); codes ascend in the order of the tests."""
        np.minimum(self.codes, codes, out=self.codes)
        np.add(self.counts, counts, out=self.counts)

    def put(self, tests: Iterable[Test]) -> None:
        """Put every entry to every test (in place); a test of words is made once for each word."""
        by_column: dict[int, tuple[NDArray[np.int32] | NDArray[np.uint8], Failed]] = {}
        for test in tests:
            found = self
            if test.column is not None and test.failing.any():
                found = by_column.setdefault(id(test.column), (test.column, Failed.none(len(test.failing))))[1]
            if test.column is None or found is not self:
                found.add(np.where(test.failing, np.int8(code_of(test.reason)), KEPT), test.failing)
        for column, words in by_column.values():
            self.add(words.codes[column], words.counts[column])


def exclude(question: Question) -> Excluded:
    """Put every entry to every test of the limits, the price and the engine."""
    failed = Failed.none(len(question.offers))
    failed.put(_tests(question))
    return Excluded(failed.codes, failed.counts <= 1)


def _tests(question: Question) -> Iterator[Test]:
    wanted = Wanted(limits=question.workload.limits, offers=question.offers, book=question.book)
    yield unknown_card(wanted)
    yield from card_tests(wanted)
    narrow = NARROW.get(question.workload.precision)
    if narrow is not None:
        yield _by_card(wanted, Reason.ARITHMETIC, lambda card: has_all(card, (narrow,)))
    yield _by_card(wanted, Reason.ENGINE_UNSUPPORTED, lambda card: runs(question.workload, question.engine, card))
    yield from seller_tests(wanted)
    if not wanted.limits.interruptible:
        yield flagged(wanted, Reason.INTERRUPTIBLE, "interruptible")
    yield from _price_tests(wanted)


def seller_tests(wanted: Wanted) -> Iterator[Test]:
    """Tests on how many cards are sold, by whom, where, on what market, and on what renting asks for."""
    limits, table = wanted.limits, wanted.offers
    if limits.gpu_counts:
        yield Test(Reason.GPU_COUNT, ~_any_of(table.gpus, limits.gpu_counts))
    if limits.max_gpus is not None:
        yield Test(Reason.GPU_COUNT, table.gpus > limits.max_gpus)
    included, excluded = (
        _ids(names, wanted.book.provider_ids) for names in (limits.providers, limits.exclude_providers)
    )
    if included or excluded:
        others = _words(table.providers, lambda name: not _chosen(name, included, excluded))
        yield Test(Reason.PROVIDER, others, table.provider)
    if limits.regions:
        known = _words(table.places, lambda place: bool(place[0]))
        yield Test(Reason.REGION_UNKNOWN, ~known, table.place)
        yield Test(Reason.REGION, known & ~table.places_in(limits.regions), table.place)
    if limits.markets:
        others = _words(table.markets, lambda name: not _is_one_of(name, limits.markets))
        yield Test(Reason.MARKET, others, table.market)
    if limits.access:
        answers = [access_of(wanted, name) for name in table.providers]
        yield Test(Reason.ACCESS, _words(answers, lambda answer: answer is False), table.provider)
        yield Test(Reason.ACCESS_UNKNOWN, _words(answers, lambda answer: answer is None), table.provider)


def access_of(wanted: Wanted, provider: str) -> bool | None:
    """Whether a provider surely meets every need; None where that is open."""
    known = wanted.book.access_of(provider)
    answers = [meets_need(known, need) for need in wanted.limits.access]
    if any(answer is False for answer in answers):
        return False
    return True if all(answer is True for answer in answers) else None


def _price_tests(wanted: Wanted) -> Iterator[Test]:
    table, rates = wanted.offers, wanted.book.rates
    yield flagged(wanted, Reason.SUPERSEDED, "superseded")
    yield flagged(wanted, Reason.PRICE_INVALID, "priced", fails=False)
    yield flagged(wanted, Reason.PRICE_INCOMPLETE, "excludes_host")
    asked_for = _words(table.markets, lambda name: _is_named(name, wanted.limits.markets))
    doubts = ((Reason.PRICE_FROM, "price_is_from"), (Reason.COMMITMENT_UNKNOWN, "commitment_unknown"))
    for reason, flag in doubts:
        test = flagged(wanted, reason, flag)
        if asked_for.any():
            test = Test(reason, test.failing[table.flags] & ~asked_for[table.market])
        yield test
    yield Test(Reason.NO_RATE, _words(table.currencies, lambda code: not rates.knows(code)), table.currency)


def unknown_card(wanted: Wanted) -> Test:
    """The test on whether the card is known at all."""
    return _by_set(wanted, Reason.CARD_UNKNOWN, lambda shapes: not shapes)


def card_tests(wanted: Wanted) -> Iterator[Test]:
    """Tests on what the card is; an offer of an unclear card passes only if every card it can be passes."""
    limits, cards = wanted.limits, wanted.book.accelerators
    if limits.gpus:
        yield _by_set(wanted, Reason.CARD_NOT_ASKED, lambda s: any(x.accelerator not in limits.gpus for x in s))
    if limits.vendors:
        vendors = {vendor.casefold() for vendor in limits.vendors}
        yield _by_set(
            wanted,
            Reason.CARD_NOT_ASKED,
            lambda s: any(cards[x.accelerator].vendor.casefold() not in vendors for x in s),
        )
    if limits.require:
        yield _by_card(wanted, Reason.CARD_PROPERTY, lambda card: has_all(card, limits.require))


def has_all(card: Accelerator, requirements: Iterable[str]) -> bool:
    """Whether the card surely has every property; unknown is not a pass."""
    return all(meets(card, requirement) is True for requirement in requirements)


def runs_on(engine: Engine, card: Accelerator) -> bool:
    """Whether the engine supports the card's vendor and, for NVIDIA, its compute capability."""
    if card.vendor not in engine.vendors:
        return False
    least, has = engine.min_compute_capability, card.compute_capability
    return least is None or has is None or has >= least


def runs(workload: Workload, engine: Engine, card: Accelerator) -> bool:
    """Whether the engine runs on ``card``, and reads the asked type of cache there."""
    return runs_on(engine, card) and reads_cache(workload, card)


def reads_cache(workload: Workload, card: Accelerator) -> bool:
    """Whether kernels for ``card`` read the type that the KV cache is asked to be in; unknown is not a pass."""
    kind = workload.serving.cache if workload.serving is not None else None
    least, has = kind.min_compute_capability if kind is not None else None, card.compute_capability
    return least is None or card.vendor != "NVIDIA" or (has is not None and has >= least)


def can_do(workload: Workload, engine: Engine, card: Accelerator) -> bool:
    """Whether the engine runs on ``card`` and the card has the arithmetic that ``workload`` asks for."""
    return runs(workload, engine, card) and lacking_arithmetic(workload, card) is None


def lacking_arithmetic(workload: Workload, card: Accelerator) -> str | None:
    """The property of arithmetic that ``workload`` needs and ``card`` has not for sure; None where nothing lacks."""
    needed = NARROW.get(workload.precision)
    return None if needed is None or meets(card, needed) is True else needed


def flagged(wanted: Wanted, reason: Reason, flag: str, *, fails: bool = True) -> Test:
    """A test on one of the truths about a price."""
    words = (np.arange(1 << len(FLAGS)) >> FLAGS.index(flag)) & 1 == fails
    return Test(reason, words, wanted.offers.flags)


def _by_set(wanted: Wanted, reason: Reason, fails: Callable[[tuple[MachineShape, ...]], bool]) -> Test:
    return Test(reason, _words(wanted.offers.shape_sets, fails), wanted.offers.shape_set)


def _by_card(wanted: Wanted, reason: Reason, passes: Callable[[Accelerator], bool]) -> Test:
    """A test that every card of a set must pass; each card is looked at once."""
    cards = wanted.book.accelerators
    names = {shape.accelerator for shapes in wanted.offers.shape_sets for shape in shapes}
    failing = {name for name in names if not passes(cards[name])}
    return _by_set(wanted, reason, lambda shapes: any(shape.accelerator in failing for shape in shapes))


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


def asks_for(wanted: Wanted, names: Iterable[str], provider: str) -> bool:
    """Whether a limit's ``names`` mean the provider of an offer."""
    return _is_one_of(provider, _ids(names, wanted.book.provider_ids))


def _is_named(name: str, wanted: Collection[str]) -> bool:
    """Whether a market is asked for by its own name: such an offer is planned on in spite of its doubts."""
    return name.casefold() in {w.casefold() for w in wanted}


def _chosen(name: str, wanted: Collection[str], unwanted: Collection[str]) -> bool:
    return (not wanted or _is_one_of(name, wanted)) and not _is_one_of(name, unwanted)
