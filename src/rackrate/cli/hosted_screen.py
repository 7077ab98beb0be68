"""Hosted APIs on the screens of ``plan`` and ``model``, and their columns in the tables for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rackrate.cli.layout import Part, Table, drawn
from rackrate.cli.numbers import money
from rackrate.units import format_count, format_hours

if TYPE_CHECKING:
    from rackrate.app.wire.hosted import (
        AmountsDoc,
        BreakEvenDoc,
        HostedCostDoc,
        HostedDoc,
        HostedPriceDoc,
    )
    from rackrate.app.wire.parts import RangeDoc, WorkloadDoc
    from rackrate.app.wire.plan import PlanDoc, PlanDocument

_SHOWN_AT_MOST = 5
_OF_MODEL_AT_MOST = 8
_MARKS = {"tuned": "~", "unclear": "?"}
_DOUBTS = {
    "unclear": "unclear whether it is the same model",
    "deprecated": "its end is announced",
    "context": "takes less than the longest request",
    "currency": "no exchange rate",
}
_CONDITIONS = {
    "prompt_length": "the price depends on the length of the prompt",
    "time_of_day": "the price depends on the time of day",
    "batch": "batch price: answers within a day",
}

# ---------------------------------------------------------------- columns for machines

PLAN_COLUMNS = (
    *("hosted_compared", "hosted_cost", "hosted_per_million_tokens"),
    *("break_even_tokens_per_day", "break_even_low", "break_even_high"),
    *("capacity_tokens_per_day", "break_even_carried"),
)
"""Columns of a plan; empty where no hosted price can be compared."""


def plan_cells(document: PlanDocument, plan: PlanDoc) -> tuple[str, ...]:
    """The cells of ``PLAN_COLUMNS``."""
    hosted = document.hosted
    even = _even_of(hosted, plan) if hosted else None
    if hosted is None or even is None:
        return ("",) * len(PLAN_COLUMNS)
    at = even.tokens_per_day
    tokens = (at.likely, at.low, at.high, even.capacity_tokens_per_day.likely)
    best = hosted.prices[0]  # the comparable ones come first, the cheapest of them first
    amounts = (amounts.likely if amounts else "" for amounts in (best.cost, best.per_million_tokens))
    return (hosted.compared or "", *amounts, *(f"{count:.0f}" for count in tokens), even.carried)


def _even_of(hosted: HostedDoc, plan: PlanDoc) -> BreakEvenDoc | None:
    return next((one.break_even for one in hosted.plans if one.offer_id == plan.offer_id), None)


# ---------------------------------------------------------------- beside plans


def beside_plans(document: PlanDocument) -> Iterator[Part]:
    """What hosted APIs charge for the same work, and from which load on renting is cheaper."""
    hosted = document.hosted
    if hosted is None:
        return
    if not hosted.prices:
        yield from _none_known(hosted)
        return
    yield f"Hosted APIs for {hosted.model}{_traffic(hosted, document.workload)}:"
    shown = hosted.prices[:_SHOWN_AT_MOST]
    yield drawn(_table(shown, document.currency))
    yield from _legend(shown)
    more = len(hosted.prices) - len(shown)
    if more:
        yield f"{more} more: --json, under hosted."
    if document.plans and hosted.compared:
        yield from _verdict(document, hosted)
    yield ""


def _none_known(hosted: HostedDoc) -> Iterator[Part]:
    near = "; ".join(
        f"{one.model} at {one.provider}, {_span(one.input_per_million)} in and {_span(one.output_per_million)} out"
        for one in hosted.others
    )
    currencies = _currencies(hosted.others)
    known = f" Other models of the family and size, in {currencies} a million tokens: {near}." if near else ""
    yield f"No hosted price known for {hosted.model}.{known} --hosted MODEL compares with a model of your choice."
    yield ""


def _traffic(hosted: HostedDoc, work: WorkloadDoc) -> str:
    if hosted.requests is None:
        return ""
    span = f" in {format_hours(work.horizon_hours)}" if work.horizon_hours is not None else ""
    why = f", as many as the first plan answers with {work.concurrency} in flight"
    return f", {_counts(hosted.requests)} requests{span}{why if hosted.requests_from == 'concurrency' else ''}"


def _table(costs: Sequence[HostedCostDoc], currency: str) -> Table:
    cached = ("cached",) if any(cost.price.cached_input_per_million for cost in costs) else ()
    titles = ("provider", "model", "in", *cached, "out", f"cost {currency}", "break-even tokens/day")
    rows = tuple(
        (
            f"{cost.price.provider} (own)" if cost.price.own else cost.price.provider,
            f"{cost.price.model}{_MARKS.get(cost.price.match, '')}",
            _span(cost.price.input_per_million),
            *(_cached(cost.price) for _ in cached),
            _span(cost.price.output_per_million),
            _likely_span(cost.cost) if cost.cost else "",
            _told(cost.break_even) if cost.break_even else _doubt(cost),
        )
        for cost in costs
    )
    return Table(keys=titles, titles=titles, rows=rows, right=frozenset(range(2, 4 + len(cached))))


def _cached(price: HostedPriceDoc) -> str:
    return _span(price.cached_input_per_million) if price.cached_input_per_million else ""


def _told(even: BreakEvenDoc) -> str:
    if even.carried == "no":
        return "never on this plan"
    return f"{_counts(even.tokens_per_day)}{'' if even.carried == 'yes' else '; may be never'}"


def _doubt(cost: HostedCostDoc) -> str:
    return _DOUBTS.get(cost.doubt, cost.doubt) if cost.doubt else ""


def _legend(costs: Sequence[HostedCostDoc]) -> Iterator[Part]:
    prices = [cost.price for cost in costs]
    told = [f"In and out: {_currencies(prices)} a million tokens, {_dates(prices)}"]
    if any(price.match == "tuned" for price in prices):
        told.append("~ the same model, otherwise tuned")
    if any(price.match == "unclear" for price in prices):
        told.append("? unclear whether it is the same model")
    told += [text for name, text in _CONDITIONS.items() if any(name in price.conditions for price in prices)]
    yield f"{'; '.join(told)}."
    yield f"Sources: {'; '.join(dict.fromkeys(price.source for price in prices))}."


def _dates(prices: Sequence[HostedPriceDoc]) -> str:
    seen = sorted({price.seen_at for price in prices})
    return f"seen {seen[0]}" if len(seen) == 1 else f"seen {seen[0]} to {seen[-1]}"


def _verdict(document: PlanDocument, hosted: HostedDoc) -> Iterator[Part]:
    """One sentence on the first plan and the cheapest API."""
    even = _even_of(hosted, document.plans[0])
    if even is None:
        return
    api = f"{hosted.compared}".partition(":")[0]
    most = _counts(even.capacity_tokens_per_day)
    if even.carried == "no":
        yield (
            f"Renting the first plan is never cheaper than {api}: its price buys {_counts(even.tokens_per_day)} tokens "
            f"a day there, and it carries at most {most}."
        )
        return
    sure = "" if even.carried == "yes" else ", so that it is unclear whether it ever is"
    yield (
        f"Renting the first plan is cheaper than {api} from {_counts(even.tokens_per_day)} tokens a day on, in and "
        f"out; it carries {most}{sure}."
    )


# ---------------------------------------------------------------- of a model


def of_model(prices: Sequence[HostedPriceDoc]) -> Iterator[Part]:
    """The prices of one model at hosted APIs."""
    if not prices:
        return
    shown = prices[:_OF_MODEL_AT_MOST]
    titles = ("hosted by", "model", "in", "out", "cached", "since", "seen")
    rows = tuple(
        (
            f"{price.provider} (own)" if price.own else price.provider,
            f"{price.model}{_MARKS.get(price.match, '')}{' (deprecated)' if price.deprecated else ''}",
            _span(price.input_per_million),
            _span(price.output_per_million),
            _cached(price),
            price.effective_from or "",
            price.seen_at,
        )
        for price in shown
    )
    yield drawn(Table(keys=titles, titles=titles, rows=rows, right=frozenset({2, 3, 4})))
    text = f"{_currencies(prices)} a million tokens; ~ otherwise tuned; ? unclear whether it is the same model."
    more = len(prices) - len(shown)
    yield f"{text} {more} more: --json, under hosted." if more else text
    yield ""


def model_rows(prices: Sequence[HostedPriceDoc]) -> Iterator[tuple[str, str, str, str, str]]:
    """The prices as rows of the table of figures: likely price in and out of each API."""
    for price in prices:
        note = f"{price.match}; {price.source}, seen {price.seen_at}"
        for name, amount in (("input", price.input_per_million), ("output", price.output_per_million)):
            figure = f"hosted_{name}_per_million_{amount.currency}"
            yield (figure, f"{price.provider}:{price.model}", "", amount.likely, note)


# ---------------------------------------------------------------- numbers


def _currencies(prices: Sequence[HostedPriceDoc]) -> str:
    return " or ".join(dict.fromkeys(price.input_per_million.currency for price in prices))


def _span(amounts: AmountsDoc) -> str:
    """``0.22``, or ``0.14 to 0.28``."""
    low, high = money(amounts.low), money(amounts.high)
    return low if low == high else f"{low} to {high}"


def _likely_span(amounts: AmountsDoc) -> str:
    """``239.22``, or ``239.22 (170.87 to 334.91)``."""
    likely, low, high = money(amounts.likely), money(amounts.low), money(amounts.high)
    return likely if low == high else f"{likely} ({low} to {high})"


def _counts(span: RangeDoc) -> str:
    """``15.2M``, or ``15.2M (12M to 18M)``."""
    low, likely, high = (format_count(count) for count in (span.low, span.likely, span.high))
    return likely if low == high else f"{likely} ({low} to {high})"
