"""Money: exact, one currency at a time, converted with a dated rate."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.money import ExchangeRates, Money, total

RATES = ExchangeRates(
    base="EUR", per_base={"USD": Decimal("1.10"), "CNY": Decimal("7.70")}, on=date(2026, 10, 30), source="a test"
)
amounts = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, allow_infinity=False, places=10)


@given(st.lists(amounts, max_size=20))
def test_a_total_is_exact(values: list[Decimal]) -> None:
    assert total([Money(v, "USD") for v in values], "USD").amount == sum(values, Decimal(0))


def test_currencies_do_not_mix() -> None:
    with pytest.raises(ValueError, match="convert one first"):
        Money(Decimal(1), "USD") + Money(Decimal(1), "CNY")
    with pytest.raises(ValueError, match="convert one first"):
        _ = Money(Decimal(1), "USD") < Money(Decimal(1), "CNY")


def test_conversion_goes_through_the_base() -> None:
    assert RATES.convert(Money(Decimal(11), "USD"), "CNY") == Money(Decimal(77), "CNY")
    assert RATES.convert(Money(Decimal(10), "EUR"), "USD") == Money(Decimal(11), "USD")
    assert RATES.convert(Money(Decimal(10), "JPY"), "JPY") == Money(Decimal(10), "JPY")


def test_an_unknown_currency_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="CNY, EUR, USD"):
        RATES.convert(Money(Decimal(1), "JPY"), "USD")


def test_small_amounts_keep_their_digits_when_printed() -> None:
    assert [str(Money(Decimal(a), "USD")) for a in ("1234.5", "0.00042", "0")] == [
        "1,234.50 USD",
        "0.0004 USD",
        "0.00 USD",
    ]


def test_rounding_is_half_up() -> None:
    assert Money(Decimal("2.345"), "USD").rounded().amount == Decimal("2.35")
