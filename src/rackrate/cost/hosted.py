"""What a hosted API charges for a traffic, as an amount or, where the price depends on what is not said, a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from rackrate.evidence import Range, multiply_independent
from rackrate.facts.hosted import HostedPrice, Tiered, Timed
from rackrate.money import Money
from rackrate.values import Value

MILLION = 10**6
THOUSAND = 1000


class Requests(Value, frozen=True, kw_only=True):
    """The sizes of a request: the typical one, and the longest prompt that comes up.

    ``all_day``: requests come at all hours alike, so that prices by the hour
    of the day hold for their share of it.
    """

    prompt_tokens: int
    output_tokens: int
    longest_prompt_tokens: int
    all_day: bool

    @property
    def tokens(self) -> int:
        """Tokens of the typical request, in and out."""
        return self.prompt_tokens + self.output_tokens


class Amounts(Value, frozen=True, kw_only=True):
    """An amount as a range, all in one currency."""

    low: Money
    likely: Money
    high: Money


def request_charge(price: HostedPrice, requests: Requests, tier_tokens: int) -> Decimal:
    """What one request costs, in the price's currency.

    (prompt x price of input + output x price of output) / 10^6 + fee of 1,000 requests / 1,000

    Both prices are of the tier that ``tier_tokens`` of prompt fall into, for
    all tokens of the request. Source: pydantic/genai-prices, ``calc_unit_price``
    and ``TieredPrices`` in packages/python/genai_prices/types.py. Nothing is
    taken to be read from a cache of prompts, nor reasoned before the answer.
    """
    read = requests.prompt_tokens * price.input_per_million.at(tier_tokens)
    written = requests.output_tokens * price.output_per_million.at(tier_tokens)
    return (read + written) / MILLION + price.per_thousand_requests / THOUSAND


def request_charges(schedule: Sequence[Timed], requests: Requests) -> Amounts:
    """What one request costs under the prices of a day: likely at a random time, with the typical prompt.

    Low and high are the cheapest and the dearest hours unless requests come all
    day; high has all requests in the tier of the longest prompt.

    Raises:
        ValueError: the schedule is empty.
    """

    def charge(price: HostedPrice) -> Decimal:
        return request_charge(price, requests, requests.prompt_tokens)

    def longest(price: HostedPrice) -> Decimal:
        return max(charge(price), request_charge(price, requests, requests.longest_prompt_tokens))

    return _over_the_day(schedule, (charge, longest), all_day=requests.all_day)


def token_prices(schedule: Sequence[Timed], of: Callable[[HostedPrice], Tiered], requests: Requests | None) -> Amounts:
    """The price of a million tokens under the prices of a day, from the likely tier to the highest that comes up.

    Without requests: from the first tier to the last.

    Raises:
        ValueError: the schedule is empty.
    """

    def usual(price: HostedPrice) -> Decimal:
        return of(price).at(requests.prompt_tokens if requests else 0)

    def highest(price: HostedPrice) -> Decimal:
        tiered = of(price)
        if requests:
            return max(usual(price), tiered.at(requests.longest_prompt_tokens))
        return max(tiered.base, *(amount for _, amount in tiered.steps)) if tiered.steps else tiered.base

    return _over_the_day(schedule, (usual, highest), all_day=bool(requests and requests.all_day))


_Charge = Callable[[HostedPrice], Decimal]


def _over_the_day(schedule: Sequence[Timed], of: tuple[_Charge, _Charge], *, all_day: bool) -> Amounts:
    usual, highest = of
    if not schedule:
        raise ValueError("no price is in force")
    currency = schedule[0].price.currency
    likely = sum((timed.share * usual(timed.price) for timed in schedule), Decimal(0))
    low = likely if all_day else min(usual(timed.price) for timed in schedule)
    high = sum((timed.share * highest(timed.price) for timed in schedule), Decimal(0))
    if not all_day:
        high = max(highest(timed.price) for timed in schedule)
    return Amounts(low=Money(low, currency), likely=Money(likely, currency), high=Money(high, currency))


def times(each: Amounts, count: Range) -> Amounts:
    """``count`` of what costs ``each``: the likely amount exact, the ends as of independent ranges."""
    currency = each.likely.currency
    likely = each.likely.amount * Decimal(repr(count.likely))
    if count.low == count.high:
        low, high = (end.amount * Decimal(repr(count.likely)) for end in (each.low, each.high))
    else:
        product = multiply_independent(as_range(each), count)
        low, high = (Decimal(repr(end)) for end in (product.low, product.high))
    return Amounts(low=Money(min(low, likely), currency), likely=Money(likely, currency), high=Money(high, currency))


def as_range(amounts: Amounts) -> Range:
    """Amounts as numbers in their currency."""
    return Range(*(float(end.amount) for end in (amounts.low, amounts.likely, amounts.high)))


def break_even_tokens_per_day(rent_per_day: Range, per_request: Range, requests: Requests) -> Range:
    """Tokens a day, in and out, for which the API costs as much as renting does.

    rent of a day / cost of a request x tokens of a request

    Below it the API is cheaper, above it renting, as far as what is rented can
    carry it. Valid for one mix of prompt and output and a rent that does not
    depend on the load. Raises ZeroDivisionError where requests are free.
    """
    each = per_request.inverse(float(requests.tokens))
    return multiply_independent(rent_per_day, each)
