"""Pricing: exact bills of one offer at the low, likely and high time, in the display currency."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rackrate.cost.charge_types import Charges
from rackrate.cost.charges import charges
from rackrate.evidence import Range, add_independent
from rackrate.memory.estimate_types import Verdict
from rackrate.money import Money
from rackrate.offers.offer import Offer
from rackrate.plan.answer import CostRange, Plan, ShapeEstimate, likely_of
from rackrate.plan.idle import idle_memory
from rackrate.plan.question import Question
from rackrate.plan.remarks import remarks
from rackrate.plan.timeline import usage_of
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import replace

_VERDICT_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)


def bill(question: Question, offer: Offer, hours: tuple[float, float], machines: int) -> Charges:
    """The exact bill of all ``machines`` for ``hours`` = (work, start-up), in the offer's currency."""
    usage = usage_of(question.workload, hours[0], hours[1], machines)
    one = charges(question.book.rules_of(offer.provider), offer, usage, question.at)
    return _times(one, machines)


def _times(one: Charges, machines: int) -> Charges:
    if machines == 1:
        return one
    lines = tuple(replace(line, quantity=line.quantity * machines, amount=line.amount * machines) for line in one.lines)
    return replace(one, lines=lines, billed_seconds=one.billed_seconds * machines)


def likely_cost(question: Question, offer: Offer, estimates: Sequence[ShapeEstimate]) -> Money:
    """The exact likely cost in the display currency."""
    one = likely_of(estimates)
    return _shown(question, bill(question, offer, _hours(one, "likely"), one.machines))


def _hours(estimate: ShapeEstimate, which: str) -> tuple[float, float]:
    return (getattr(estimate.work_hours, which), getattr(estimate.startup_hours, which))


def priced_plan(question: Question, offer: Offer, estimates: Sequence[ShapeEstimate]) -> Plan:
    """The whole plan: three exact bills, finish time, idle memory and warnings."""
    worst = max(estimates, key=lambda e: (_VERDICT_ORDER.index(e.memory.verdict), -e.memory.headroom_bytes))
    cost, unknown = _cost_range(question, offer, estimates)
    idle = idle_memory(worst, cost.likely)
    plan = Plan(
        offer=offer,
        estimates=tuple(estimates),
        verdict=worst.memory.verdict,
        headroom_bytes=min(e.memory.headroom_bytes for e in estimates),
        hours=finish_of_all(estimates),
        cost=cost,
        idle=idle,
        warnings=unknown.unknown,
    )
    return replace(plan, warnings=(*remarks(question, plan), *plan.warnings))


def finish_hours(estimate: ShapeEstimate) -> Range:
    """Wall time to finish: start-up plus work, as independent parts."""
    return add_independent((estimate.startup_hours, estimate.work_hours))


def finish_of_all(estimates: Sequence[ShapeEstimate]) -> Range:
    """Wall time to finish on whichever card it is: the likely card's likely time between the ends of all."""
    spans = [finish_hours(e) for e in estimates]
    likely = finish_hours(likely_of(estimates)).likely
    return Range(min(s.low for s in spans), likely, max(s.high for s in spans))


def _cost_range(question: Question, offer: Offer, estimates: Sequence[ShapeEstimate]) -> tuple[CostRange, Charges]:
    """Bills at the ends of the finish time over all cards; the likely bill is that of the likely card.

    The ends come from whole finish times (work and start-up combined as
    independent), so start-up is kept at its likely value there.
    """
    low = min((_end(question, offer, e, "low") for e in estimates), key=lambda c: c.total.amount)
    high = max((_end(question, offer, e, "high") for e in estimates), key=lambda c: c.total.amount)
    one = likely_of(estimates)
    likely = bill(question, offer, _hours(one, "likely"), one.machines)
    shown = _shown(question, likely)
    cost = CostRange(
        low=min(_shown(question, low), shown, key=lambda m: m.amount),
        likely=shown,
        high=max(_shown(question, high), shown, key=lambda m: m.amount),
        lines=likely.lines,
        billed=likely.total,
        billed_hours=likely.billed_seconds / Decimal(int(SECONDS_PER_HOUR)),
    )
    return cost, likely


def _end(question: Question, offer: Offer, estimate: ShapeEstimate, which: str) -> Charges:
    finish: float = getattr(finish_hours(estimate), which)
    work = max(0.0, finish - estimate.startup_hours.likely)
    return bill(question, offer, (work, estimate.startup_hours.likely), estimate.machines)


def _shown(question: Question, charged: Charges) -> Money:
    return question.book.rates.convert(charged.total, question.currency)
