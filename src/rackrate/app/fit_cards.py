"""The card to answer ``fit`` for: the one named, else the cheapest class that surely holds the work."""

from __future__ import annotations

from typing import NamedTuple

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.plan.cheapest import Holding, cheapest_that_hold
from rackrate.plan.filters import can_do
from rackrate.plan.scaling import nodes_of
from rackrate.plan.shapes import Estimator
from rackrate.problems import Code, Finding, Refused
from rackrate.workload.requirements import meets
from rackrate.workload.workload import Assumption, Workload

USUAL_COUNTS = (1, 2, 4, 8)
"""Numbers of cards in one machine that are tried where none is asked for."""

CHEAPEST_SHOWN = 3


class Chosen(NamedTuple):
    """A card, the numbers of it, what was assumed of them, and the cheapest that hold the work if sought."""

    card: Accelerator
    counts: tuple[int, ...]
    made: tuple[Assumption, ...] = ()
    cheapest: tuple[Holding, ...] | None = None


def chosen_card(estimator: Estimator) -> Chosen:
    """The one card named in each number that is asked for; without a name the cheapest that surely holds the work.

    Where no card on offer holds it, the largest that is rented out is answered for, to say what would make it fit.
    """
    question = estimator.question
    named = question.workload.limits.gpus
    if len(named) > 1:
        expected, action = "one card", f"say which: {', '.join(named)}"
        code, observed = Code.AMBIGUOUS_CARD, f"{len(named)} cards"
        raise Refused([Finding(code=code, subject="--gpu", observed=observed, expected=expected, action=action)])
    if named:
        return Chosen(
            question.book.accelerators[named[0]], counts_of(question.workload) or (fewest(question.workload),)
        )
    nodes = nodes_of(question.workload)
    if nodes > 1:
        expected, action = (
            "a card that is named",
            "name it with --gpu: price lists do not say which machines are joined",
        )
        observed = f"{nodes} machines of no card"
        raise Refused(
            [Finding(code=Code.MISSING_VALUE, subject="--gpu", observed=observed, expected=expected, action=action)]
        )
    return _cheapest(estimator)


def counts_of(workload: Workload) -> tuple[int, ...]:
    """The numbers of cards that are asked for; empty for none."""
    return workload.limits.gpu_counts


def fewest(workload: Workload) -> int:
    """The fewest cards that the division asked for needs."""
    return workload.parallel.machine_gpus if workload.parallel is not None else 1


def _cheapest(estimator: Estimator) -> Chosen:
    work = estimator.question.workload
    most, asked = work.limits.max_gpus, counts_of(work)
    usual = [n for n in USUAL_COUNTS if n >= fewest(work) and (most is None or n <= most)]
    counts = asked or tuple(usual) or (fewest(work),)
    found = [
        held
        for count in counts
        for held in cheapest_that_hold(estimator, count, CHEAPEST_SHOWN, lambda card: _wanted(estimator, card))
    ]
    found.sort(key=lambda held: (held.per_hour.amount, held.offer.gpus, held.offer.cards))
    if not found:
        card = _largest(estimator)
        return Chosen(card, asked or counts[-1:], (_assumed(card, "largest_rented"),), ())
    card = estimator.question.book.accelerators[found[0].offer.cards[0]]
    made = [_assumed(card, "cheapest_holding")]
    if not asked:
        made.append(Assumption(key="limits.gpu_counts", value=str(found[0].offer.gpus), why="cheapest_holding"))
    each = {held.offer.cards: held for held in reversed(found)}  # of a card the cheapest number
    cheapest = [held for held in found if each[held.offer.cards] is held]
    return Chosen(card, asked or (found[0].offer.gpus,), tuple(made), tuple(cheapest[:CHEAPEST_SHOWN]))


def _assumed(card: Accelerator, why: str) -> Assumption:
    return Assumption(key="limits.gpus", value=card.id, why=why)


def _wanted(estimator: Estimator, card: Accelerator) -> bool:
    """Whether the limits allow the card: its vendor, and every property surely."""
    limits = estimator.question.workload.limits
    vendors = {vendor.casefold() for vendor in limits.vendors}
    return (not vendors or card.vendor.casefold() in vendors) and all(meets(card, r) is True for r in limits.require)


def _largest(estimator: Estimator) -> Accelerator:
    """The card with most memory that surely is rented out and can do the work."""
    question = estimator.question
    able = [
        card
        for card in question.book.accelerators.values()
        if can_do(question.workload, question.engine, card)
        and _wanted(estimator, card)
        and not isinstance(card.memory_total_bytes, Unknown)
        and question.offers.surely(card.id).any()
    ]
    if not able:
        action = "name one with --gpu, or ask for fewer properties; `rackrate gpu` lists all"
        observed, expected = "none", "a card that is rented out and can do the work"
        code = Code.MISSING_VALUE
        raise Refused([Finding(code=code, subject="--gpu", observed=observed, expected=expected, action=action)])
    return max(able, key=_memory)


def _memory(card: Accelerator) -> float:
    total = card.memory_total_bytes
    return 0.0 if isinstance(total, Unknown) else total
