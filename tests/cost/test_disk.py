from decimal import Decimal

import pytest
from tests.cost.build import DAY, GB, HOUR, amounts, bill, rule, rules, unknown, usage
from tests.offers.build import offer, prepaid

from rackrate.units import HOURS_PER_MONTH

SECOND = rule("granularity_s", "1", "running")
FREE_STOP = rule("stopped_bills_compute", "false", "stopped")
MONTH = Decimal(str(HOURS_PER_MONTH))
MONTH_S = MONTH * HOUR


def disk(held, used, machine=None):
    charged = bill(rules(SECOND, FREE_STOP, *held), machine or offer("2"), used)
    return {name: amount for name, amount in amounts(charged).items() if name.startswith("disk")}, unknown(charged)


def test_a22_the_disk_is_most_of_the_price(book):
    """dstackai/dstack#1553: shown 0.04947 per hour, with its 32,768 GB disk really 4.54."""
    machine = offer("0.04947", provider="gcp", name="e2-highcpu-2")
    charged = bill(book.rules_of("gcp"), machine, usage(3600, disk_bytes=32768 * GB))
    assert charged.total.amount == pytest.approx(Decimal("4.54"), rel=Decimal("0.05"))
    assert charged.total.amount == Decimal("0.04947") + Decimal(32768) / MONTH * Decimal("0.1")


def test_a23_a_price_that_includes_the_disk_does_not_count_it_twice():
    """modl-org/modl#129: offer 0.169 per hour without storage (0.04), instance 0.207 with it; never 0.247."""
    held = [rule("disk_price", "0.001", unit="USD/GB-hour")]
    used = usage(3600, disk_bytes=40 * GB)
    bare = bill(rules(SECOND, *held), offer("0.169"), used)
    all_in = bill(rules(SECOND, *held), offer("0.207", includes_disk_gb=Decimal(40)), used)
    assert bare.total.amount == Decimal("0.209")
    assert all_in.total.amount == Decimal("0.207")


def test_runpods_volume_doubles_while_stopped(book, offers):
    pod = next(o for o in offers if o.name == "A100 80GB PCIe secure" and not o.superseded)
    charged = bill(book.rules_of("runpod"), pod, usage(MONTH_S, stopped_seconds=MONTH_S, disk_bytes=100 * GB))
    found = amounts(charged)
    assert found["disk_running"] == Decimal(10)
    assert found["disk_stopped"] == 2 * found["disk_running"]


def test_a_multiplier_applies_to_a_price_that_has_no_state_of_its_own():
    double = rule("stopped_disk_multiplier", "2", "stopped")
    used = usage(MONTH_S, stopped_seconds=MONTH_S, disk_bytes=GB)
    anyway = rule("disk_price", "0.1", unit="USD/GB-month")
    assert disk([anyway], used) == ({"disk_running": Decimal("0.1"), "disk_stopped": Decimal("0.1")}, set())
    assert disk([anyway, double], used)[0]["disk_stopped"] == Decimal("0.2")
    running = rule("disk_price", "0.1", "running", "USD/GB-month")
    assert disk([running, double], used)[0]["disk_stopped"] == Decimal("0.2")
    own = rule("disk_price", "0.3", "stopped", "USD/GB-month")
    assert disk([running, own, double], used)[0]["disk_stopped"] == Decimal("0.3")


def test_a_running_price_says_nothing_about_a_stopped_machine():
    running = rule("disk_price", "0.1", "running", "USD/GB-month")
    found, missing = disk([running], usage(MONTH_S, stopped_seconds=HOUR, disk_bytes=GB))
    assert found == {"disk_running": Decimal("0.1")}
    assert missing == {"disk_stopped"}


def test_a_stopped_disk_that_is_not_billed_is_a_line_of_nothing():
    held = [rule("disk_price", "0.1", unit="USD/GB-month"), rule("stopped_bills_disk", "false", "stopped")]
    found, missing = disk(held, usage(MONTH_S, stopped_seconds=HOUR, disk_bytes=GB))
    assert (found["disk_stopped"], missing) == (0, set())


@pytest.mark.parametrize(
    ("unit", "per_hour"),
    [("USD/GB-month (gp3)", 1 / MONTH), ("USD/GB-day", Decimal(1) / 24), ("USD/GB-hour", Decimal(1))],
)
def test_the_unit_of_the_rule_counts(unit, per_hour):
    found, _ = disk([rule("disk_price", "1", unit=unit)], usage(HOUR, disk_bytes=GB))
    assert found["disk_running"] == pytest.approx(per_hour, rel=Decimal("1e-20"))


def test_disk_that_costs_nothing_is_still_counted_in_gigabytes_and_time():
    included = rule("disk_price", "0", "running", "included in the hourly fee")
    charged = bill(rules(SECOND, included), offer("2"), usage(HOUR, disk_bytes=GB))
    assert {line.unit for line in charged.lines if line.name.startswith("disk")} == {"GB-hour"}


def test_free_gigabytes_of_the_provider_or_the_offer_are_taken_off_whichever_are_more():
    held = [rule("disk_price", "1", unit="USD/GB-hour"), rule("free_disk_gb", "100", unit="GB")]
    used = usage(HOUR, disk_bytes=150 * GB)
    assert disk(held, used)[0] == {"disk_running": 50}
    assert disk(held, used, offer("2", includes_disk_gb=Decimal(120)))[0] == {"disk_running": 30}
    assert disk(held, used, offer("2", includes_disk_gb=Decimal(20)))[0] == {"disk_running": 50}
    assert disk(held, usage(HOUR, disk_bytes=99 * GB))[0] == {"disk_running": 0}


def test_disk_within_what_is_included_needs_no_price():
    assert disk([], usage(HOUR, disk_bytes=40 * GB), offer("2", includes_disk_gb=Decimal(40))) == (
        {"disk_running": 0},
        set(),
    )


def test_an_included_disk_is_free_while_the_machine_is_paid_for():
    held = [rule("disk_price", "1", unit="USD/GB-hour")]
    used = usage(HOUR, stopped_seconds=HOUR, disk_bytes=40 * GB)
    on_demand = offer("2", includes_disk_gb=Decimal(40))
    assert disk(held, used, on_demand)[0] == {"disk_running": 0, "disk_stopped": 40}
    month = offer("2", includes_disk_gb=Decimal(40), term=prepaid("month", 730))
    assert disk(held, used, month)[0] == {"disk_running": 0, "disk_stopped": 0}


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("per_host", "set by the host"),
        ("billed_apart", "100 GB or more"),
        ("0.3 cloud disk, 0.6 SSD", "CNY/GB-month"),
        ("0.0015", "DCU/GB-day above the free part"),
        ("0.1", "CNY/GB-month"),
        ("0.1", "a month"),
        ("0.1", "USD each"),
    ],
)
def test_a_price_in_prose_or_another_currency_is_unknown_and_not_zero(value, unit):
    assert disk([rule("disk_price", value, unit=unit)], usage(DAY, disk_bytes=GB)) == ({}, {"disk_running"})


def test_no_price_is_unknown_and_not_zero():
    assert disk([], usage(DAY, disk_bytes=GB)) == ({}, {"disk_running"})


def test_nothing_is_said_of_disk_that_is_not_used():
    assert disk([], usage(DAY)) == ({}, set())


def test_a_price_of_nothing_needs_no_currency(book, offers):
    a800 = next(o for o in offers if o.provider == "晨涧云")
    charged = bill(book.rules_of("晨涧云"), a800, usage(HOUR, disk_bytes=100 * GB))
    assert amounts(charged)["disk_running"] == 0


def test_an_included_disk_is_billed_once_the_term_may_be_over():
    held = [rule("disk_price", "0.72", unit="USD/GB-month")]
    month = offer("2", includes_disk_gb=Decimal(40), term=prepaid("month", 720))
    used = usage(HOUR, stopped_seconds=30 * HOUR, kept_seconds=10 * HOUR, disk_bytes=100 * GB)
    found = {line.name: line.quantity for line in bill(rules(*held), month, used).lines}
    hours = Decimal("730.5")
    assert found["disk_running"] == Decimal(60) / hours
    assert found["disk_stopped"] == (60 * Decimal(20) + 100 * Decimal(10)) / hours
