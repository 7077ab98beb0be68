"""The cards to answer for where none is named: those that most providers rent out and that can do the work."""

from __future__ import annotations

import numpy as np

from rackrate.plan.filters import can_do
from rackrate.plan.question import Question
from rackrate.workload.requirements import meets


def usual_cards(question: Question, most: int) -> tuple[str, ...]:
    """Ids of the ``most`` cards that the work's engine runs on, by the number of providers that surely rent them.

    Of equals the one listed first; vendors and properties that the workload asks for count.
    """
    limits, cards = question.workload.limits, question.book.accelerators
    wanted = {vendor.casefold() for vendor in limits.vendors}
    rented = [
        card.id
        for card in cards.values()
        if can_do(question.workload, question.engine, card)
        and (not wanted or card.vendor.casefold() in wanted)
        and all(meets(card, requirement) is True for requirement in limits.require)
    ]
    providers = {card: _providers(question, card) for card in rented}
    return tuple(sorted((c for c in rented if providers[c]), key=lambda c: -providers[c])[:most])


def _providers(question: Question, card: str) -> int:
    """How many providers rent out machines that are surely of this card."""
    table = question.offers
    return len(np.unique(table.provider[table.surely(card)]))
