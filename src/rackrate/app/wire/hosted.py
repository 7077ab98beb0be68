"""The JSON contract of hosted APIs: prices beside a model, costs and break-evens beside plans."""

from __future__ import annotations

from rackrate.app.wire.parts import Part, RangeDoc


class AmountsDoc(Part, frozen=True, kw_only=True):
    """An amount as a range, as decimal texts; all three are equal where there is no doubt."""

    low: str
    likely: str
    high: str
    currency: str


class HostedPriceDoc(Part, frozen=True, kw_only=True):
    """What one provider charges for one model, for a million tokens, in the price's currency.

    ``match``: ``same``, ``tuned`` (the same model, otherwise tuned), ``unclear``,
    ``chosen`` by the user, ``other`` (another model). ``conditions`` are what the
    price depends on: ``prompt_length``, ``time_of_day``, ``batch``.
    ``effective_from`` is the day since which it is known to hold.
    """

    provider: str
    model: str
    match: str
    input_per_million: AmountsDoc
    output_per_million: AmountsDoc
    cached_input_per_million: AmountsDoc | None
    per_thousand_requests: AmountsDoc | None
    conditions: list[str]
    context_tokens: int | None
    deprecated: bool
    effective_from: str | None
    seen_at: str
    source: str
    own: bool


class BreakEvenDoc(Part, frozen=True, kw_only=True):
    """Tokens a day, in and out, for which an API costs what the plan costs, and what the plan carries a day.

    ``carried``: ``yes``, ``unclear``, or ``no``: the API is cheaper whatever the load.
    """

    tokens_per_day: RangeDoc
    capacity_tokens_per_day: RangeDoc
    carried: str


class HostedCostDoc(Part, frozen=True, kw_only=True):
    """A hosted price, what the work costs there in the display currency, and its break-even with the first plan.

    ``doubt`` says why it is not compared: ``unclear``, ``deprecated``, ``context``
    (takes less than the longest request), ``currency`` (no exchange rate).
    """

    price: HostedPriceDoc
    per_million_tokens: AmountsDoc | None
    cost: AmountsDoc | None
    break_even: BreakEvenDoc | None
    doubt: str | None


class HostedPlanDoc(Part, frozen=True, kw_only=True):
    """The break-even of one plan with the cheapest API."""

    offer_id: str
    break_even: BreakEvenDoc


class HostedDoc(Part, frozen=True, kw_only=True):
    """Hosted APIs beside the plans, the comparable ones first, the cheapest first.

    ``requests`` is their number over the horizon or job; ``requests_from`` says
    where it comes from: ``requests``, ``requests_per_s``, ``concurrency`` (as many
    as the first plan answers). ``others`` are other models of the family and
    size, named where none matches.
    """

    model: str
    chosen: bool
    requests: RangeDoc | None
    requests_from: str | None
    tokens_per_request: int
    prices: list[HostedCostDoc]
    compared: str | None
    plans: list[HostedPlanDoc]
    others: list[HostedPriceDoc]
