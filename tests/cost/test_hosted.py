"""What an API charges: by hand, and what must hold whatever the prices."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.cost.hosted import (
    Amounts,
    Requests,
    as_range,
    break_even_tokens_per_day,
    request_charges,
    times,
    token_prices,
)
from rackrate.evidence import Range
from rackrate.facts.hosted import HostedPrice, Tiered, in_force, tiered
from rackrate.money import Money
from rackrate.values import replace

AT = date(2026, 11, 30)


def price(read="0.5", written="1.5", *, fee="0", hours=None, currency="USD"):
    return HostedPrice(
        provider="acme",
        model="m",
        names=(),
        currency=currency,
        input_per_million=tiered(read),
        output_per_million=tiered(written),
        cached_input_per_million=None,
        per_thousand_requests=Decimal(fee),
        processing="",
        effective_from=None,
        hours_utc=hours,
        context_tokens=None,
        state="",
        source="a test",
        seen_at=AT,
    )


def requests(prompt=1000, output=200, longest=None, *, all_day=False):
    return Requests(
        prompt_tokens=prompt, output_tokens=output, longest_prompt_tokens=longest or prompt, all_day=all_day
    )


def charged(*prices, **sizes):
    """Low, likely and high of a request, as texts."""
    found = request_charges(in_force(prices, AT), requests(**sizes))
    return [f"{end.amount.normalize():f}" for end in (found.low, found.likely, found.high)]


def test_a_request_by_hand():
    assert charged(price()) == ["0.0008"] * 3  # 1000 x 0.5 / 10^6 + 200 x 1.5 / 10^6


def test_a_fee_for_each_request():
    assert charged(price(fee="5")) == ["0.0058"] * 3


def test_a_prompt_pays_the_price_of_its_tier_for_all_of_its_tokens():
    stepped = price("1|1000:2", "10|1000:20")
    assert charged(stepped, prompt=1000, output=100) == ["0.002"] * 3
    assert charged(stepped, prompt=1001, output=100) == ["0.004002"] * 3


def test_where_longer_prompts_come_up_the_high_end_is_their_tier():
    assert charged(price("1|2000:2", "10|2000:20"), prompt=1000, output=100, longest=2001) == [
        "0.002",
        "0.002",
        "0.004",
    ]


def test_hours_of_the_day_make_a_range_unless_requests_come_all_day():
    usual, dear = price("1", "1"), price("2", "2", hours=(0, 360))  # a quarter of the day
    assert charged(usual, dear, prompt=500_000, output=500_000) == ["1", "1.25", "2"]
    assert charged(usual, dear, prompt=500_000, output=500_000, all_day=True) == ["1.25"] * 3


def test_without_a_price_in_force_nothing_is_charged():
    with pytest.raises(ValueError, match="no price"):
        request_charges((), requests())


def test_the_price_of_a_million_tokens_without_sizes_goes_from_the_first_tier_to_the_last():
    found = token_prices(in_force([price("1|1000:2|5000:3")], AT), lambda p: p.input_per_million, None)
    assert [end.amount for end in (found.low, found.likely, found.high)] == [1, 1, 3]


@pytest.mark.parametrize(
    ("tiers", "expected"), [("1|1000:2", ("1", "1", "2")), ("2|1000:1", ("2", "2", "2")), ("3|5000:9", ("3", "3", "3"))]
)
def test_the_price_of_a_million_tokens_with_sizes_goes_from_the_usual_tier_to_the_dearest_that_comes_up(
    tiers, expected
):
    found = token_prices(in_force([price(tiers)], AT), lambda p: p.input_per_million, requests(1000, longest=4000))
    assert tuple(str(end.amount) for end in (found.low, found.likely, found.high)) == expected


def test_a_number_of_requests_that_is_known_is_exact():
    each = request_charges(in_force([price("0.1", "0.1")], AT), requests(prompt=1, output=2))
    assert times(each, Range.exact(3e6)) == Amounts(
        **dict.fromkeys(("low", "likely", "high"), Money(Decimal("0.9"), "USD"))
    )


def test_a_number_of_requests_that_is_not_known_makes_a_range():
    found = times(request_charges(in_force([price("1", "1")], AT), requests(500_000, 500_000)), Range(50, 100, 200))
    assert [float(end.amount) for end in (found.low, found.likely, found.high)] == pytest.approx([50, 100, 200])


def test_the_break_even_by_hand():
    rent, each = Range.exact(24.0), Range.exact(0.0008)  # 30,000 requests of 1,200 tokens
    even = break_even_tokens_per_day(rent, each, requests())
    assert (even.low, even.likely, even.high) == pytest.approx((36e6, 36e6, 36e6))


amounts = st.decimals(min_value="0.001", max_value="1000", places=3)
steps = st.lists(st.tuples(st.integers(0, 10**6), amounts), max_size=3, unique_by=lambda step: step[0])
tiers = st.builds(lambda base, more: Tiered(base=base, steps=tuple(sorted(more))), amounts, steps)
rising = st.builds(
    lambda base, more: Tiered(base=base, steps=tuple((n, base + add) for n, add in sorted(more)[:1])), amounts, steps
)
sizes = st.builds(
    lambda prompt, output, more, all_day: requests(prompt, output, prompt + more, all_day=all_day),
    st.integers(1, 10**6),
    st.integers(1, 10**5),
    st.integers(0, 10**6),
    st.booleans(),
)


def schedules(tier=tiers):
    def build(read, written, dear_read, dear_written, hours):
        usual = price()
        first = replace(usual, input_per_million=read, output_per_million=written)
        second = replace(usual, input_per_million=dear_read, output_per_million=dear_written, hours_utc=hours)
        return in_force([first, second] if hours else [first], AT)

    hours = st.none() | st.tuples(st.integers(0, 1439), st.integers(0, 1439)).filter(lambda span: span[0] != span[1])
    return st.builds(build, tier, tier, tier, tier, hours)


@given(schedules(), sizes)
def test_amounts_are_ordered(schedule, asked):
    found = request_charges(schedule, asked)
    assert 0 < found.low.amount <= found.likely.amount <= found.high.amount
    assert sum(timed.share for timed in schedule) == 1


@given(schedules(), sizes, st.integers(1, 10**5))
def test_more_output_is_never_cheaper(schedule, asked, more):
    longer = replace(asked, output_tokens=asked.output_tokens + more)
    few, many = request_charges(schedule, asked), request_charges(schedule, longer)
    assert few.low.amount <= many.low.amount
    assert few.likely.amount <= many.likely.amount
    assert few.high.amount <= many.high.amount


@given(schedules(rising), sizes, st.integers(1, 10**6))
def test_a_longer_prompt_is_never_cheaper_where_steps_rise(schedule, asked, more):
    longer = requests(
        asked.prompt_tokens + more,
        asked.output_tokens,
        max(asked.longest_prompt_tokens, asked.prompt_tokens + more),
        all_day=asked.all_day,
    )
    assert request_charges(schedule, asked).likely.amount <= request_charges(schedule, longer).likely.amount


@given(schedules(), sizes, st.floats(0.01, 1e6), st.floats(0, 0.9), st.floats(0, 5))
def test_the_break_even_equates_both_costs(schedule, asked, rent, below, above):
    each = as_range(request_charges(schedule, asked))
    even = break_even_tokens_per_day(Range(rent * (1 - below), rent, rent * (1 + above)), each, asked)
    assert even.likely / asked.tokens * each.likely == pytest.approx(rent)
    assert even.low <= even.likely <= even.high
