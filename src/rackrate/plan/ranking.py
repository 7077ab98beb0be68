"""Order: rank plans by cost, time or both, and find the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.memory.estimate_types import Verdict
from rackrate.offers.offer import Offer
from rackrate.plan.answer import Plan, Rank

N = TypeVar("N", float, NDArray[np.float64])
Tie = tuple[int, str, str, str]

_VERDICT_ORDER = {Verdict.FITS: 0, Verdict.TIGHT: 1, Verdict.DOES_NOT_FIT: 2}


def slowness(plan: Plan) -> float:
    """What a user waits for, smaller is better: hours to finish; seconds per token for a service.

    A service ends with its horizon, not when work is done, so its plans are
    told apart by throughput.
    """
    is_service = all(e.speed.serving is not None and e.speed.work_hours is None for e in plan.estimates)
    return 1 / plan.pace.likely if is_service else plan.hours.likely


def ranked(plans: Sequence[Plan], rank: Rank) -> list[Plan]:
    """Plans best first.

    Order: verdict (fits before tight), then the criterion, then the other
    criterion, then newer price, provider, offer and id, so that ties always
    break the same way.
    """
    return sorted(plans, key=lambda p: (_VERDICT_ORDER[p.verdict], *_criterion(p, rank), *tie_of(p.offer)))


def criterion(cost: N, slow: N, rank: Rank) -> tuple[N, N]:
    """What plans of one verdict are ordered by, first and second (numbers, or columns of them)."""
    if rank is Rank.COST:
        return cost, slow
    return (slow, cost) if rank is Rank.TIME else (cost * slow, cost)


def _criterion(plan: Plan, rank: Rank) -> tuple[float, float]:
    return criterion(float(plan.cost.likely.amount), slowness(plan), rank)


def tie_of(offer: Offer) -> Tie:
    """What decides between plans that are equal by the criterion."""
    return (-offer.observed_on.toordinal(), offer.provider, offer.name, offer.id)


def frontier(plans: Sequence[Plan]) -> list[Plan]:
    """Plans that no other plan beats in both likely cost and slowness, cheapest first (plans that fit only)."""
    fitting = [p for p in plans if p.verdict is Verdict.FITS]
    best: list[Plan] = []
    for plan in sorted(fitting, key=lambda p: (*_criterion(p, Rank.COST), *tie_of(p.offer))):
        if not best or slowness(plan) < slowness(best[-1]):
            best.append(plan)
    return best


def decided_by(first: Plan, second: Plan, rank: Rank) -> str:
    """The test that put ``first`` before ``second``: ``fit``, ``cost``, ``time``, ``both`` or ``tie``."""
    if first.verdict is not second.verdict:
        return "fit"
    if _criterion(first, rank)[0] != _criterion(second, rank)[0]:
        return str(rank)
    return "tie" if _criterion(first, rank) == _criterion(second, rank) else "time" if rank is Rank.COST else "cost"
