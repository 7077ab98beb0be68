"""Order: rank plans by cost, time or both, and find the frontier."""

from __future__ import annotations

from collections.abc import Sequence

from rackrate.memory.estimate_types import Verdict
from rackrate.plan.answer import Plan, Rank

_VERDICT_ORDER = {Verdict.FITS: 0, Verdict.TIGHT: 1, Verdict.DOES_NOT_FIT: 2}


def slowness(plan: Plan) -> float:
    """What a user waits for, smaller is better: hours to finish; seconds per token for a service.

    A service ends with its horizon, not when work is done, so its plans are
    told apart by throughput.
    """
    is_service = all(e.speed.serving is not None and e.speed.work_hours is None for e in plan.estimates)
    return 1 / plan.tokens_per_s.likely if is_service else plan.hours.likely


def ranked(plans: Sequence[Plan], rank: Rank) -> list[Plan]:
    """Plans best first.

    Order: verdict (fits before tight), then the criterion, then the other
    criterion, then newer price, provider, offer and id, so that ties always
    break the same way.
    """
    return sorted(plans, key=lambda p: (_VERDICT_ORDER[p.verdict], *_criterion(p, rank), *_tie(p)))


def _criterion(plan: Plan, rank: Rank) -> tuple[float, float]:
    cost, slow = float(plan.cost.likely.amount), slowness(plan)
    if rank is Rank.COST:
        return (cost, slow)
    if rank is Rank.TIME:
        return (slow, cost)
    return (cost * slow, cost)


def _tie(plan: Plan) -> tuple[int, str, str, str]:
    offer = plan.offer
    return (-offer.observed_on.toordinal(), offer.provider, offer.name, offer.id)


def frontier(plans: Sequence[Plan]) -> list[Plan]:
    """Plans that no other plan beats in both likely cost and slowness, cheapest first (plans that fit only)."""
    fitting = [p for p in plans if p.verdict is Verdict.FITS]
    best: list[Plan] = []
    for plan in sorted(fitting, key=lambda p: (*_criterion(p, Rank.COST), *_tie(p))):
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
