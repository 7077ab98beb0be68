from decimal import Decimal

import pytest
from tests.cost.build import AT, DAY, GB, HOUR, amounts, bill, rule, rules, unknown, usage
from tests.offers.build import offer

from rackrate.cost.charges import charges

SECOND = rule("granularity_s", "1", "running")
UNIT = "upper GB:USD/GB"


def out(held, gb, seconds=HOUR):
    charged = bill(rules(SECOND, *held), offer("2"), usage(seconds, data_out_bytes=gb * GB))
    return [line for line in charged.lines if line.name == "data_out"], unknown(charged)


def test_aws_sends_60_tb(book):
    """100 GB free, 0.09 to 10,240 GB, 0.085 to 51,200 GB, 0.07 beyond: 912.60 + 3,481.60 + 616.00."""
    charged = bill(book.rules_of("aws"), offer("2", provider="aws"), usage(HOUR, data_out_bytes=60_000 * GB))
    lines = [line for line in charged.lines if line.name == "data_out"]
    assert [line.quantity for line in lines] == [100, 10_140, 40_960, 8_800]
    assert [line.amount.amount for line in lines] == [0, Decimal("912.60"), Decimal("3481.60"), Decimal("616.00")]
    assert sum(line.amount.amount for line in lines) == Decimal("5010.20")


def test_tiers_and_the_free_part_begin_again_each_month(book):
    held, machine = book.rules_of("aws"), offer("2", provider="aws")
    sent = 30_000 * GB
    one = bill(held, machine, usage(30 * DAY, data_out_bytes=sent))
    three = bill(held, machine, usage(90 * DAY, data_out_bytes=sent))
    total = [sum(line.amount.amount for line in b.lines if line.name == "data_out") for b in (one, three)]
    assert total[0] == 10_140 * Decimal("0.09") + 19_760 * Decimal("0.085")
    assert total[1] == 3 * 9_900 * Decimal("0.09")


def test_traffic_within_the_free_part_is_a_line_of_nothing():
    held = [rule("egress_price_tiers", "inf:0.1", unit=UNIT), rule("egress_free_gb", "100", unit="GB/month")]
    lines, missing = out(held, 60)
    assert [(line.quantity, line.amount.amount) for line in lines] == [(60, 0)]
    assert missing == set()


def test_a_free_part_beyond_the_first_tier_takes_it_whole():
    held = [rule("egress_price_tiers", "10:1|20:2|inf:3", unit=UNIT), rule("egress_free_gb", "15", unit="GB/month")]
    lines, _ = out(held, 30)
    assert [(line.quantity, line.unit_price.amount) for line in lines] == [(15, 0), (5, 2), (10, 3)]


def test_free_traffic_needs_no_currency():
    lines, missing = out([rule("egress_price_tiers", "inf:0", unit="upper GB (in region)")], 5)
    assert ([line.amount.amount for line in lines], missing) == ([0], set())


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("per_host", ""),
        ("China 0.12; Singapore 0.081", "USD/GB, by region"),
        ("inf:0.1", "upper GB:CNY/GB"),
        ("x:y", UNIT),
    ],
)
def test_traffic_priced_in_prose_or_another_currency_is_unknown(value, unit):
    assert out([rule("egress_price_tiers", value, unit=unit)], 5) == ([], {"data_out"})


def test_both_directions_and_only_those_used():
    held = rules(SECOND, rule("ingress_price", "0.01", unit="USD/GB"))
    assert amounts(bill(held, offer("2"), usage(HOUR, data_in_bytes=500 * GB)))["data_in"] == 5
    nothing = bill(held, offer("2"), usage(HOUR))
    assert (set(amounts(nothing)), nothing.unknown) == ({"compute"}, ())
    assert unknown(bill(held, offer("2"), usage(HOUR, data_out_bytes=GB))) == {"data_out"}


def test_the_free_part_and_the_tiers_hold_once_for_all_machines(book):
    """Four machines send 250 GB together: 100 of them are free, not 400."""
    sent = usage(HOUR, data_out_bytes=250 * GB)
    charged = charges(book.rules_of("aws"), offer("2", provider="aws"), sent, AT, machines=4)
    assert amounts(charged)["data_out"] == 150 * Decimal("0.09")
    assert amounts(charged)["compute"] == 4 * 2


def test_of_several_machines_all_but_traffic_is_multiplied():
    held = rules(
        SECOND,
        rule("disk_price", "0.1", unit="USD/GB-month"),
        rule("ip_price", "0.01", unit="USD/h"),
        rule("one_time_fee", "5", "start", "USD"),
        rule("egress_price_tiers", "10:1|inf:0.5", unit=UNIT),
        rule("ingress_price", "0.01", unit="USD/GB"),
    )
    used = usage(HOUR, disk_bytes=100 * GB, data_in_bytes=7 * GB, data_out_bytes=30 * GB)
    one, five = (charges(held, offer("2"), used, AT, machines) for machines in (1, 5))
    assert {line.name for line in one.lines} == {"compute", "disk_running", "data_in", "data_out", "ip", "one_time"}
    for single, several in zip(one.lines, five.lines, strict=True):
        times = 1 if single.name.startswith("data") else 5
        assert several.amount.amount == times * single.amount.amount == several.quantity * several.unit_price.amount
    assert five.billed_seconds == 5 * one.billed_seconds
