"""Hosted APIs beside plans and models: prices found by name, costs and break-evens as documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rackrate.app.context import Context
from rackrate.app.documents import plain, span
from rackrate.app.wire.hosted import (
    AmountsDoc,
    BreakEvenDoc,
    HostedCostDoc,
    HostedDoc,
    HostedPlanDoc,
    HostedPriceDoc,
)
from rackrate.cost.hosted import MILLION, Amounts, Requests, token_prices
from rackrate.facts import bundled
from rackrate.facts.hosted import BATCH, DEPRECATED, HostedPrice, Tiered, by_model
from rackrate.facts.hosted_names import family
from rackrate.facts.model import Model
from rackrate.facts.own_rows import is_own
from rackrate.money import Money
from rackrate.plan.answer import Plan
from rackrate.plan.hosted import (
    BreakEven,
    HostedCost,
    break_even,
    cheapest,
    comparison,
    hosted_costs,
    processing_of,
    requests_of,
    traffic_of,
)
from rackrate.plan.hosted_models import HostedModel, hosted_models, others
from rackrate.problems import Code, Finding, Refused, nearest
from rackrate.values import replace
from rackrate.workload.workload import NOT_HOSTED, Workload

if TYPE_CHECKING:
    from rackrate.facts.explain import Said


def hosted_beside(plans: Sequence[Plan], workload: Workload, here: Context) -> HostedDoc:
    """What hosted APIs charge for the work of ``plans``, which serves."""
    named = workload.serving.hosted if workload.serving else ""
    prices = _prices(here, named or workload.model.id)
    models = hosted_models(prices, workload.model, here.at, processing_of(workload), named=named)
    traffic = traffic_of(workload, plans[0] if plans else None)
    costs = hosted_costs(models, workload, traffic, here.book.rates)
    requests = requests_of(workload)
    best = cheapest(costs)
    evens = comparison(plans, workload, costs)
    return HostedDoc(
        model=named or workload.model.id,
        chosen=bool(named),
        requests=span(traffic.count) if traffic else None,
        requests_from=str(traffic.basis) if traffic else None,
        tokens_per_request=requests.tokens,
        prices=[_cost_doc(cost, plans, workload) for cost in costs],
        compared=f"{best.hosted.price.provider}:{best.hosted.price.model}" if best else None,
        plans=[HostedPlanDoc(offer_id=name, break_even=_even_doc(even)) for name, even in evens.items()],
        others=[] if models else [price_doc(one) for one in others(prices, workload.model, here.at)],
    )


def hosted_prices_of(model: Model, here: Context) -> list[HostedPriceDoc]:
    """The prices of ``model`` at hosted APIs, the surest matches first, the cheapest of them first."""
    found = hosted_models(_prices(here, model.id), model, here.at)
    return sorted(map(price_doc, found), key=_in_order)


def hosted_said(model: Model, here: Context) -> Iterator[Said]:
    """What own files and the bundled ones say of the prices of ``model`` at hosted APIs; own ones win."""
    from rackrate.facts import explain  # imported here: plans do without

    own, read = here.own_hosted, bundled.hosted(frozenset({family(model.id) or model.id.casefold()}))
    mine = hosted_models(own, model, here.at)
    replaced = {(p.provider.casefold(), p.model.casefold()) for p in own}
    for one in (*mine, *hosted_models(read, model, here.at)):
        key = (one.price.provider.casefold(), one.price.model.casefold())
        used = is_own(one.price.source) or key not in replaced
        step = explain.Step.OWN if key in replaced else explain.Step.ONLY
        yield from explain.hosted([timed.price for timed in one.schedule], one.match, step, used=used)


def hosted_names() -> tuple[str, ...]:
    """The names of all hosted models, the bundled ones."""
    return tuple(dict.fromkeys(price.model for price in bundled.hosted(frozenset({""}))))


def check_hosted(workload: Workload, here: Context) -> None:
    """Refuse a hosted model that nobody is known to sell, before anything is planned.

    Raises:
        Refused: the hosted model that was asked for is not known.
    """
    named = workload.serving.hosted if workload.serving else ""
    if named and not hosted_models(_prices(here, named), workload.model, here.at, named=named):
        raise Refused([_unknown(named, here)])


# ---------------------------------------------------------------- prices


def _prices(here: Context, name: str) -> list[HostedPrice]:
    """Own prices, and the bundled ones that may be of a model called ``name``."""
    read = bundled.hosted(frozenset({family(name) or name.casefold()}))
    if not here.own_hosted:
        return list(read)
    from rackrate.facts.overlay import with_own_hosted

    return with_own_hosted(here.own_hosted, read)


def _unknown(named: str, here: Context) -> Finding:
    every = by_model([*here.own_hosted, *bundled.hosted(frozenset({""}))])
    names = {name.rpartition("/")[2].lower(): name for _, name in every}
    close = [names[last] for last in nearest(named.rpartition("/")[2], names)]
    return Finding(
        code=Code.UNKNOWN_NAME,
        subject="serving.hosted (--hosted)",
        observed=named,
        expected=f"one of {len(names)} models of hosted APIs with a price, or {NOT_HOSTED}",
        action=f"did you mean {' or '.join(close)}?" if close else "leave it out to compare with the model itself",
    )


# ---------------------------------------------------------------- documents


def _cost_doc(cost: HostedCost, plans: Sequence[Plan], workload: Workload) -> HostedCostDoc:
    each, total, requests = cost.per_request, cost.total, requests_of(workload)
    even = break_even(plans[0], workload, each) if plans and each and cost.doubt is None else None
    return HostedCostDoc(
        price=price_doc(cost.hosted, requests),
        per_million_tokens=_per_million(each, requests) if each else None,
        cost=_amounts(total, 4) if total else None,
        break_even=_even_doc(even) if even else None,
        doubt=str(cost.doubt) if cost.doubt else None,
    )


def _per_million(each: Amounts, requests: Requests) -> AmountsDoc:
    """The cost of a million tokens in the mix of the requests."""

    def million(one: Money) -> Money:
        return replace(one, amount=one.amount * MILLION / requests.tokens)

    return _amounts(Amounts(low=million(each.low), likely=million(each.likely), high=million(each.high)), 4)


def _even_doc(even: BreakEven) -> BreakEvenDoc:
    return BreakEvenDoc(
        tokens_per_day=span(even.tokens_per_day),
        capacity_tokens_per_day=span(even.capacity_tokens_per_day),
        carried=str(even.carried),
    )


def price_doc(one: HostedModel, requests: Requests | None = None) -> HostedPriceDoc:
    """The prices of a hosted model for requests of these sizes, or from their lowest to their highest."""
    price = one.price

    def shown(of: Callable[[HostedPrice], Tiered]) -> AmountsDoc:
        return _amounts(token_prices(one.schedule, of, requests), 6)

    cached = all(timed.price.cached_input_per_million is not None for timed in one.schedule)
    fee = max(timed.price.per_thousand_requests for timed in one.schedule)
    begun = [timed.price.effective_from for timed in one.schedule if timed.price.effective_from]
    return HostedPriceDoc(
        provider=price.provider,
        model=price.model,
        match=one.match,
        input_per_million=shown(lambda p: p.input_per_million),
        output_per_million=shown(lambda p: p.output_per_million),
        cached_input_per_million=shown(_cached) if cached else None,
        per_thousand_requests=shown(lambda p: Tiered(base=p.per_thousand_requests)) if fee else None,
        conditions=list(_conditions(one)),
        context_tokens=price.context_tokens,
        deprecated=price.state == DEPRECATED,
        effective_from=max(begun).isoformat() if begun else None,
        seen_at=price.seen_at.isoformat(),
        source=price.source,
        own=is_own(price.source),
    )


def _cached(price: HostedPrice) -> Tiered:
    assert price.cached_input_per_million is not None
    return price.cached_input_per_million


def _conditions(one: HostedModel) -> Iterable[str]:
    prices = [timed.price for timed in one.schedule]
    if any(price.input_per_million.steps or price.output_per_million.steps for price in prices):
        yield "prompt_length"
    if len(prices) > 1:
        yield "time_of_day"
    if prices[0].processing == BATCH:
        yield BATCH


def _amounts(amounts: Amounts, places: int) -> AmountsDoc:
    low, likely, high = (plain(end.rounded(places).amount) for end in (amounts.low, amounts.likely, amounts.high))
    return AmountsDoc(low=low, likely=likely, high=high, currency=amounts.likely.currency)


_SURENESS: Mapping[str, int] = {"same": 0, "tuned": 1, "unclear": 2}


def _in_order(doc: HostedPriceDoc) -> tuple[object, ...]:
    price = doc.input_per_million.likely, doc.output_per_million.likely
    total = sum(map(float, price))
    return (doc.deprecated, _SURENESS.get(doc.match, 3), total, doc.provider, doc.model)
