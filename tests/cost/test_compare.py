from decimal import Decimal

import pytest

from rackrate.cost.compare import break_even_hours, price_per_gb_hour
from rackrate.money import Money


def cny(amount):
    return Money(Decimal(amount), "CNY")


def usd(amount):
    return Money(Decimal(amount), "USD")


@pytest.mark.parametrize(
    ("price", "memory_sold_gb", "expected"), [("10", 40, "0.25"), ("18", 80, "0.225"), ("22", 80, "0.275")]
)
def test_price_per_gb_hour_as_sold(price, memory_sold_gb, expected):
    assert price_per_gb_hour(cny(price), Decimal(memory_sold_gb)) == cny(expected)


@pytest.mark.parametrize(
    ("name", "region", "hours"),
    [
        ("GN8.LARGE56", "ap-beijing|ap-shanghai|ap-guangzhou|ap-chongqing", 288),
        ("GN8.7XLARGE224", "ap-chengdu", 288),
        ("GN8.LARGE56", "na-siliconvalley|ap-hongkong", 480),
    ],
)
def test_tencents_month_beats_the_hour_after_288_hours_and_480_overseas(offers, name, region, hours):
    """As the price page itself says."""
    found = {o.market: o for o in offers if o.provider == "tencent" and o.name == name and o.region == region}
    even = break_even_hours(found["on_demand"].price_per_hour, found["monthly_package"].price)
    assert even == pytest.approx(hours, rel=Decimal("0.001"))


def test_a_reservation_with_an_upfront_fee():
    """calculator.city: 1,000 upfront, 0.10 against 0.50 per hour, even after 2,500 h."""
    assert break_even_hours(usd("0.50"), usd(1000), usd("0.10")) == 2500


def test_a_package_that_saves_nothing_never_pays():
    assert break_even_hours(usd("0.50"), usd(1000), usd("0.50")) is None
    assert break_even_hours(usd("0.50"), usd(1000), usd("0.60")) is None


def test_currencies_are_not_mixed():
    with pytest.raises(ValueError, match="convert"):
        break_even_hours(usd(1), cny(100))
    with pytest.raises(ValueError, match="convert"):
        break_even_hours(usd(1), usd(100), cny("0.5"))
