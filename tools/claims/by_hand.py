"""Plans for offers made by hand: cards at a price that someone names, instead of the bundled price list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from rackrate.app.context import facts
from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.money import Money
from rackrate.offers.offer import Offer, Term
from rackrate.offers.rows import table_of_offers
from rackrate.plan.answer import Answer
from rackrate.plan.planner import plan
from rackrate.plan.question import Question
from rackrate.values import replace
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table

from .asking import AS_OF

SOURCE = "made by hand"
PROVIDER = "by hand"


def offer(card: str, price: str, *, currency: str = "CNY", gpus: int = 1) -> Offer:
    """``gpus`` cards of one kind at ``price`` an hour, all cards together, billed as ``metered`` says."""
    return Offer(
        id=f"{gpus} x {card} at {price} {currency}",
        provider=PROVIDER,
        name=f"{gpus} x {card} at {price} {currency}",
        card_label=card,
        cards=(card,),
        gpus=gpus,
        share=1.0,
        form_factor="",
        region="",
        market="on_demand",
        price=Money(Decimal(price), currency),
        term=Term(unit="hour", hours=Decimal(1), prepaid=False),
        observed_on=AS_OF,
        observed_how="page_read",
        source=SOURCE,
    )


def metered(**rules: str) -> BillingRules:
    """Billing rules of a running machine, by the second unless told otherwise."""
    held = {"granularity_s": "1"} | rules
    made = (
        BillingRule(
            provider=PROVIDER,
            key=key,
            value=value,
            unit="s",
            state="running",
            effective_from=None,
            seen_at=AS_OF,
            source=SOURCE,
            confidence="high",
        )
        for key, value in held.items()
    )
    return BillingRules(provider=PROVIDER, rules=tuple(made))


def planned(workload: Mapping[str, object], offers: Iterable[Offer], rules: BillingRules | None = None) -> Answer:
    """The whole answer of the planner for ``workload`` over ``offers``, in its own values.

    Raises:
        ValueError: the workload cannot be understood.
    """
    held = rules or metered()
    book = facts()
    parsed = parse(request_from_table(workload), book)
    if not isinstance(parsed, Parsed):
        raise ValueError(f"not a workload: {parsed}")
    asked = parsed.workload
    return plan(
        Question(
            workload=asked,
            engine=book.engine(asked.engine_id),
            book=replace(book, billing={PROVIDER: held}),
            offers=table_of_offers(list(offers), lambda _provider: held, at=AS_OF),
            at=AS_OF,
            currency=asked.display_currency,
            limit=100,
        )
    )
