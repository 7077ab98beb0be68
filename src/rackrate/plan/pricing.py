"""Pricing: exact bills of one offer at the low, likely and high time, in the display currency."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rackrate.cost.charge_types import Charges
from rackrate.cost.charges import charges
from rackrate.cost.usage import Usage
from rackrate.evidence import Range, add_independent
from rackrate.memory.estimate_types import Verdict
from rackrate.money import Money
from rackrate.offers.offer import Offer
from rackrate.plan.answer import CostRange, Plan, ShapeEstimate, likely_of
from rackrate.plan.idle import idle_memory
from rackrate.plan.question import Question
from rackrate.plan.remarks import remarks
from rackrate.plan.timeline import Startup, usage_of
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value, replace
from rackrate.workload.workload import Workload

_VERDICT_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)


class Case(Value, frozen=True):
    """What each of ``machines`` does on the meter."""

    usage: Usage
    machines: int


def bill(question: Question, offer: Offer, case: Case) -> Charges:
    """The exact bill of all machines, in the offer's currency."""
    return charges(question.book.rules_of(offer.provider), offer, case.usage, question.at, case.machines)


def likely_case(workload: Workload, estimates: Sequence[ShapeEstimate]) -> Case:
    """The likely time of the likely card."""
    one = likely_of(estimates)
    return Case(usage_of(workload, one.work_hours.likely, _likely_startup(one), one.machines), one.machines)


def _likely_startup(one: ShapeEstimate) -> Startup:
    return Startup(one.startup_hours.likely, one.restart_hours.likely)


def likely_bill(question: Question, offer: Offer, estimates: Sequence[ShapeEstimate]) -> Charges:
    """The exact bill of the likely card at its likely time, in the offer's currency."""
    return bill(question, offer, likely_case(question.workload, estimates))


def shown(question: Question, charged: Charges) -> Money:
    """The total of a bill in the display currency."""
    return question.book.rates.convert(charged.total, question.currency)


def priced_plan(
    question: Question, offer: Offer, estimates: Sequence[ShapeEstimate], likely: Charges | None = None
) -> Plan:
    """The whole plan: three exact bills (the ``likely`` one may be known), finish time, idle memory and warnings."""
    worst = max(estimates, key=lambda e: (_VERDICT_ORDER.index(e.memory.verdict), -e.memory.headroom_bytes))
    likely = likely or likely_bill(question, offer, estimates)
    cost = _cost_range(question, offer, estimates, likely)
    idle = idle_memory(worst, cost.likely)
    plan = Plan(
        offer=offer,
        estimates=tuple(estimates),
        verdict=worst.memory.verdict,
        headroom_bytes=min(e.memory.headroom_bytes for e in estimates),
        hours=finish_of_all(estimates),
        cost=cost,
        idle=idle,
        warnings=likely.unknown,
    )
    return replace(plan, warnings=(*remarks(question, plan), *plan.warnings))


def finish_hours(estimate: ShapeEstimate) -> Range:
    """Hours of the machine to finish: every start-up plus work, as independent parts; not the time between starts."""
    return add_independent((estimate.all_startups_hours, estimate.work_hours))


def finish_of_all(estimates: Sequence[ShapeEstimate]) -> Range:
    """Wall time to finish on whichever card it is: the likely card's likely time between the ends of all."""
    spans = [finish_hours(e) for e in estimates]
    likely = finish_hours(likely_of(estimates)).likely
    return Range(min(s.low for s in spans), likely, max(s.high for s in spans))


def _cost_range(question: Question, offer: Offer, estimates: Sequence[ShapeEstimate], likely: Charges) -> CostRange:
    """Bills at the ends of the finish time over all cards, with the likely one between.

    The ends of a job come from whole finish times (work and start-up combined
    as independent), so start-up is kept at its likely value there. How long a
    service serves is certain: its ends are those of its start-ups.
    """
    known = {likely_case(question.workload, estimates): likely}
    amounts = []
    for case in (_end(question.workload, each, at_low=at_low) for each in estimates for at_low in (True, False)):
        if case not in known:
            known[case] = bill(question, offer, case)
        amounts.append(shown(question, known[case]))
    middle = shown(question, likely)
    return CostRange(
        low=min(*amounts, middle, key=lambda m: m.amount),
        likely=middle,
        high=max(*amounts, middle, key=lambda m: m.amount),
        lines=likely.lines,
        billed=likely.total,
        billed_hours=likely.billed_seconds / Decimal(int(SECONDS_PER_HOUR)),
    )


def _end(workload: Workload, estimate: ShapeEstimate, *, at_low: bool) -> Case:
    finish, startup = finish_hours(estimate), _likely_startup(estimate)
    work = max(0.0, (finish.low if at_low else finish.high) - estimate.all_startups_hours.likely)
    if workload.is_service:
        first, later = estimate.startup_hours, estimate.restart_hours
        startup = Startup(first.low, later.low) if at_low else Startup(first.high, later.high)
    return Case(usage_of(workload, work, startup, estimate.machines), estimate.machines)
