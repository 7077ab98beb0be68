"""Renting beside calling: what hosted APIs charge for the work of a plan, and from which load on renting is cheaper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from rackrate.cost.hosted import (
    Amounts,
    Requests,
    as_range,
    break_even_tokens_per_day,
    request_charges,
    times,
)
from rackrate.evidence import Range, envelope
from rackrate.facts.hosted import BATCH, DEPRECATED
from rackrate.facts.hosted_names import Match
from rackrate.money import ExchangeRates, Money
from rackrate.plan.answer import Plan, likely_of
from rackrate.plan.hosted_models import CHOSEN, HostedModel
from rackrate.plan.machines import UTILISATION_AT_MOST
from rackrate.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.workload import Serving, Workload

BATCH_HOURS = 24
"""Hours within which batches are answered: OpenAI, Batch API guide, "completion window"; others say the same."""


class Basis(StrEnum):
    """Where the number of requests comes from."""

    REQUESTS = "requests"
    REQUESTS_PER_S = "requests_per_s"
    CONCURRENCY = "concurrency"


class Doubt(StrEnum):
    """Why a hosted price is shown and not compared."""

    UNCLEAR = "unclear"
    DEPRECATED = "deprecated"
    CONTEXT = "context"
    CURRENCY = "currency"


class Carried(StrEnum):
    """Whether a plan carries the break-even load."""

    YES = "yes"
    UNCLEAR = "unclear"
    NO = "no"


class Traffic(Value, frozen=True, kw_only=True):
    """Requests over the whole horizon or job, and where their number comes from."""

    requests: Requests
    count: Range
    basis: Basis


class HostedCost(Value, frozen=True, kw_only=True):
    """What one hosted model costs: a request, and all of the traffic where that is known, in the display currency."""

    hosted: HostedModel
    per_request: Amounts | None
    total: Amounts | None
    doubt: Doubt | None


class BreakEven(Value, frozen=True, kw_only=True):
    """The load at which a plan costs what an API charges, and the most that the plan carries, in tokens a day."""

    tokens_per_day: Range
    capacity_tokens_per_day: Range
    carried: Carried


# ---------------------------------------------------------------- the work


def requests_of(workload: Workload) -> Requests:
    """The sizes of the requests of a workload that serves.

    Raises:
        ValueError: it trains.
    """
    serving = workload.serving
    if serving is None:
        raise ValueError("a workload that trains makes no requests")
    return Requests(
        prompt_tokens=serving.prompt_tokens,
        output_tokens=serving.output_tokens,
        longest_prompt_tokens=max(serving.prompt_tokens, serving.context_tokens - serving.output_tokens),
        all_day=serving.online and workload.use.hours_per_day >= HOURS_PER_DAY,
    )


def processing_of(workload: Workload) -> str:
    """``batch`` for a job that can wait for it."""
    deadline = workload.limits.deadline_hours
    if workload.is_service or (deadline is not None and deadline < BATCH_HOURS):
        return ""
    return BATCH


def traffic_of(workload: Workload, plan: Plan | None) -> Traffic | None:
    """The requests of the job, or of the service over its horizon.

    A service that states its users and no rate makes as many requests as
    ``plan`` answers with that many in flight all the time; without a plan
    nothing is known.
    """
    serving = workload.serving
    assert serving is not None
    requests = requests_of(workload)
    if serving.requests is not None and not serving.online:
        return Traffic(requests=requests, count=Range.exact(serving.requests), basis=Basis.REQUESTS)
    seconds = workload.use.hours_per_day * workload.use.horizon_days * SECONDS_PER_HOUR
    if serving.requests_per_s is not None:
        count = Range.exact(serving.requests_per_s * seconds)
        return Traffic(requests=requests, count=count, basis=Basis.REQUESTS_PER_S)
    if plan is None:
        return None
    count = plan.pace.scaled(seconds / serving.output_tokens)
    return Traffic(requests=requests, count=count, basis=Basis.CONCURRENCY)


# ---------------------------------------------------------------- costs


def hosted_costs(
    models: Iterable[HostedModel], workload: Workload, traffic: Traffic | None, rates: ExchangeRates
) -> list[HostedCost]:
    """What each costs, the comparable ones first, then by the likely cost of a request and by name."""
    found = [_cost(one, workload, traffic, rates) for one in models]
    return sorted(found, key=_order)


def _cost(one: HostedModel, workload: Workload, traffic: Traffic | None, rates: ExchangeRates) -> HostedCost:
    doubt = _doubt(one, workload, rates)
    if doubt is Doubt.CURRENCY:
        return HostedCost(hosted=one, per_request=None, total=None, doubt=doubt)
    own = request_charges(one.schedule, requests_of(workload))
    each = converted(own, rates, workload.display_currency)
    total = None if traffic is None else times(each, traffic.count)
    return HostedCost(hosted=one, per_request=each, total=total, doubt=doubt)


def converted(amounts: Amounts, rates: ExchangeRates, currency: str) -> Amounts:
    """Amounts in another currency."""

    def other(one: Money) -> Money:
        return rates.convert(one, currency)

    return Amounts(low=other(amounts.low), likely=other(amounts.likely), high=other(amounts.high))


def _doubt(one: HostedModel, workload: Workload, rates: ExchangeRates) -> Doubt | None:
    price, serving = one.price, workload.serving
    assert serving is not None
    if not rates.knows(price.currency):
        return Doubt.CURRENCY
    if price.context_tokens is not None and price.context_tokens < serving.context_tokens:
        return Doubt.CONTEXT
    if one.match == Match.UNCLEAR:
        return Doubt.UNCLEAR
    return Doubt.DEPRECATED if price.state == DEPRECATED and one.match != CHOSEN else None


def _order(cost: HostedCost) -> tuple[bool, bool, object, str, str]:
    price, each = cost.hosted.price, cost.per_request
    return (cost.doubt is not None, each is None, each.likely.amount if each else 0, price.provider, price.model)


def cheapest(costs: Sequence[HostedCost]) -> HostedCost | None:
    """The cheapest that can be compared."""
    return next((cost for cost in costs if cost.doubt is None and cost.per_request is not None), None)


def break_even(plan: Plan, workload: Workload, per_request: Amounts) -> BreakEven | None:
    """The load at which ``plan`` costs what the API charges; None where requests cost nothing."""
    if per_request.low.amount <= 0 or workload.serving is None:
        return None
    requests = requests_of(workload)
    at = break_even_tokens_per_day(rent_per_day(plan, workload), as_range(per_request), requests)
    most = capacity_tokens_per_day(plan, workload, workload.serving)
    carried = Carried.YES if at.high <= most.low else Carried.NO if at.low > most.high else Carried.UNCLEAR
    return BreakEven(tokens_per_day=at, capacity_tokens_per_day=most, carried=carried)


def rent_per_day(plan: Plan, workload: Workload) -> Range:
    """Cost of the plan for a day of the horizon (service) or a day of its run (job), in the display currency.

    For a job the ends of cost and time belong together: a slow run costs more and lasts longer.
    """
    low, likely, high = (float(end.amount) for end in (plan.cost.low, plan.cost.likely, plan.cost.high))
    if workload.is_service:
        return Range(low, likely, high).scaled(1 / workload.use.horizon_days)
    hours = plan.hours
    ends = (low / hours.low, likely / hours.likely, high / hours.high)
    return Range(min(ends), ends[1], max(ends)).scaled(HOURS_PER_DAY)


def capacity_tokens_per_day(plan: Plan, workload: Workload, serving: Serving) -> Range:
    """Tokens a day, in and out, that the plan can work off in its hours of use.

    A service is loaded to ``UTILISATION_AT_MOST`` of what it serves with its
    caches full, whatever its targets of latency; a job to what it does.
    """
    spans = []
    for one in plan.estimates:
        speed = one.speed.serving
        assert speed is not None
        if serving.online:
            most = (speed.capacity_requests_per_s or speed.requests_per_s).scaled(UTILISATION_AT_MOST)
        else:
            most = speed.requests_per_s
        spans.append(most.scaled(one.machines))
    hours = workload.use.hours_per_day if workload.is_service else HOURS_PER_DAY
    per_day = hours * SECONDS_PER_HOUR * requests_of(workload).tokens
    whole = envelope(spans)
    likely = spans[list(plan.estimates).index(likely_of(plan.estimates))].likely
    return Range(whole.low, likely, whole.high).scaled(per_day)


def comparison(plans: Sequence[Plan], workload: Workload, costs: Sequence[HostedCost]) -> Mapping[str, BreakEven]:
    """The break-even of each plan with the cheapest API, by the id of its offer."""
    best = cheapest(costs)
    found = (
        {}
        if best is None or best.per_request is None
        else {plan.offer.id: break_even(plan, workload, best.per_request) for plan in plans}
    )
    return {name: even for name, even in found.items() if even is not None}
