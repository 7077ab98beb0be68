"""Budget: what may be spent on a whole plan, from an amount per period in any currency."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

from rackrate.money import Money
from rackrate.plan.answer import Change
from rackrate.plan.question import Question
from rackrate.units import DAYS_PER_MONTH, HOURS_PER_DAY

_DAYS = {"hour": 1 / HOURS_PER_DAY, "day": 1.0, "month": DAYS_PER_MONTH}


def budget_for_plan(question: Question) -> Money | None:
    """The budget for the whole plan in the display currency, or None without one.

    A budget per hour, day or month is scaled to a service's horizon. For a job
    it is the most that the job may cost: it ends within the period, or has
    spent the budget by then.
    """
    budget = question.workload.limits.budget
    if budget is None:
        return None
    most = question.book.rates.convert(budget.money, question.currency)
    return most * _periods(question)


def _periods(question: Question) -> Decimal:
    """How many periods of the budget the plan lasts."""
    budget, workload = question.workload.limits.budget, question.workload
    if budget is None or budget.period not in _DAYS or not workload.is_service:
        return Decimal(1)
    return Decimal(repr(workload.use.horizon_days / _DAYS[budget.period]))


def change_of_budget(question: Question, cost: Money) -> Change | None:
    """The budget, in its own currency and period, that ``cost`` would need."""
    budget = question.workload.limits.budget
    if budget is None:
        return None
    needed = question.book.rates.convert(cost, budget.money.currency).amount / _periods(question)
    period = "" if budget.period == "total" else f"/{budget.period}"
    after = Money(needed.quantize(Decimal("0.01"), ROUND_UP), budget.money.currency)
    return Change(knob="limits.budget", before=f"{budget.money}{period}", after=f"{after}{period}")
