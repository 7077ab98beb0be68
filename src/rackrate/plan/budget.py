"""Budget: what may be spent on a whole plan, from an amount per period in any currency."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

from rackrate.money import Money
from rackrate.plan.answer import Change
from rackrate.plan.question import Question
from rackrate.units import DAYS_PER_MONTH, HOURS_PER_DAY

_DAYS = {"hour": 1 / HOURS_PER_DAY, "day": 1.0, "month": DAYS_PER_MONTH}


def budget_for_plan(question: Question, hours: float) -> Money | None:
    """The budget for a whole plan that takes ``hours`` to finish, in the display currency, or None without one.

    A budget per hour, day or month is for as many periods as a service is kept
    or a job takes; a job that ends within one period may cost as much as one.
    """
    budget = question.workload.limits.budget
    if budget is None:
        return None
    most = question.book.rates.convert(budget.money, question.currency)
    return most * _periods(question, hours)


def _periods(question: Question, hours: float) -> Decimal:
    """How many periods of the budget the plan lasts: the horizon of a service, a job's ``hours`` but at least one."""
    budget, workload = question.workload.limits.budget, question.workload
    if budget is None or budget.period not in _DAYS:
        return Decimal(1)
    period_days = _DAYS[budget.period]
    if workload.is_service:
        return Decimal(repr(workload.use.horizon_days / period_days))
    return Decimal(repr(max(1.0, hours / HOURS_PER_DAY / period_days)))


def change_of_budget(question: Question, cost: Money, hours: float) -> Change | None:
    """The budget, in its own currency and period, that a plan of ``cost`` and ``hours`` would need."""
    budget = question.workload.limits.budget
    if budget is None:
        return None
    needed = question.book.rates.convert(cost, budget.money.currency).amount / _periods(question, hours)
    period = "" if budget.period == "total" else f"/{budget.period}"
    after = Money(needed.quantize(Decimal("0.01"), ROUND_UP), budget.money.currency)
    return Change(knob="limits.budget", before=f"{budget.money}{period}", after=f"{after}{period}")
