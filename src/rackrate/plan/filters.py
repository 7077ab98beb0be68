"""Filters: tests on columns that leave offers out before anything is estimated.

Every offer is counted under the first test that it fails, in the order of
``Reason``, so the counts add up to the offers left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.engine import Engine
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import Reason
from rackrate.plan.question import Question
from rackrate.workload.requirements import meets

Bools = NDArray[np.bool_]
Codes = NDArray[np.int16]

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
    """Per offer, the code of the first test that it fails (or ``KEPT``), and how many tests it fails."""

    codes: Codes
    failures: Codes


def exclude(question: Question) -> Excluded:
    """Put every offer to every test."""
    codes = np.full(len(question.offers), KEPT, dtype=np.int16)
    failures = np.zeros(len(question.offers), dtype=np.int16)
    for reason, failing in _tests(question):
        mark(codes, failing, reason)
        failures += failing
    return Excluded(codes, failures)


def mark(codes: Codes, failing: Bools, reason: Reason) -> None:
    """Leave out those still kept that fail (in place)."""
    codes[(codes == KEPT) & failing] = code_of(reason)


def _tests(question: Question) -> Iterator[tuple[Reason, Bools]]:
    yield from _card_tests(question)
    limits, table = question.workload.limits, question.offers
    if limits.gpu_counts:
        yield Reason.GPU_COUNT, ~_any_of(table.gpus, limits.gpu_counts)
    if limits.max_gpus is not None:
        yield Reason.GPU_COUNT, table.gpus > limits.max_gpus
    wanted, unwanted = (
        _ids(names, question.book.provider_ids) for names in (limits.providers, limits.exclude_providers)
    )
    if wanted or unwanted:
        yield Reason.PROVIDER, _by(table.providers, table.provider, lambda name: not _chosen(name, wanted, unwanted))
    if limits.regions:
        yield Reason.REGION_UNKNOWN, ~table.region_known
        yield Reason.REGION, ~table.in_regions(limits.regions)
    if limits.markets:
        yield Reason.MARKET, _by(table.markets, table.market, lambda name: not _is_one_of(name, limits.markets))
    if not limits.interruptible:
        yield Reason.INTERRUPTIBLE, table.interruptible
    yield Reason.SUPERSEDED, table.superseded
    yield Reason.PRICE_INVALID, ~table.priced
    yield Reason.PRICE_INCOMPLETE, table.excludes_host
    asked_for = _by(table.markets, table.market, lambda name: _is_named(name, limits.markets))
    yield Reason.PRICE_FROM, table.price_is_from & ~asked_for
    yield Reason.COMMITMENT_UNKNOWN, table.commitment_unknown & ~asked_for
    rates = question.book.rates
    yield Reason.NO_RATE, _by(table.currencies, table.currency, lambda code: not rates.knows(code))


def _card_tests(question: Question) -> Iterator[tuple[Reason, Bools]]:
    """Tests on what the card is; an offer of an unclear card passes only if every card it can be passes."""
    limits = question.workload.limits
    cards = question.book.accelerators
    yield Reason.CARD_UNKNOWN, _by_set(question, lambda shapes: not shapes)
    if limits.gpus:
        yield Reason.CARD_NOT_ASKED, _by_set(question, lambda s: any(x.accelerator not in limits.gpus for x in s))
    if limits.vendors:
        vendors = {vendor.casefold() for vendor in limits.vendors}
        yield (
            Reason.CARD_NOT_ASKED,
            _by_set(question, lambda s: any(cards[x.accelerator].vendor.casefold() not in vendors for x in s)),
        )
    if limits.require:
        yield (
            Reason.CARD_PROPERTY,
            _by_set(question, lambda s: not all(_has_all(cards[x.accelerator], limits.require) for x in s)),
        )
    narrow = NARROW.get(question.workload.precision)
    if narrow is not None:
        yield (
            Reason.ARITHMETIC,
            _by_set(question, lambda s: not all(_has_all(cards[x.accelerator], (narrow,)) for x in s)),
        )
    yield (
        Reason.ENGINE_UNSUPPORTED,
        _by_set(question, lambda s: not all(runs_on(question.engine, cards[x.accelerator]) for x in s)),
    )


def _has_all(card: Accelerator, requirements: Iterable[str]) -> bool:
    """Whether the card surely has every property; unknown is not a pass."""
    return all(meets(card, requirement) is True for requirement in requirements)


def runs_on(engine: Engine, card: Accelerator) -> bool:
    """Whether the engine supports the card's vendor and, for NVIDIA, its compute capability."""
    if card.vendor not in engine.vendors:
        return False
    least, has = engine.min_compute_capability, card.compute_capability
    return least is None or has is None or has >= least


def _by_set(question: Question, fails: Callable[[tuple[MachineShape, ...]], bool]) -> Bools:
    table = question.offers
    return np.array([fails(shapes) for shapes in table.shape_sets], dtype=np.bool_)[table.shape_set]


def _any_of(column: NDArray[np.int32], wanted: Iterable[int]) -> Bools:
    found = np.zeros(len(column), dtype=np.bool_)
    for value in wanted:
        found |= column == value
    return found


def _by(vocabulary: Iterable[str], column: NDArray[np.int32], fails: Callable[[str], bool]) -> Bools:
    return np.array([fails(name) for name in vocabulary], dtype=np.bool_)[column]


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
