from datetime import date
from decimal import Decimal

import pytest
from tests.cost.build import DAY, HOUR, amounts, bill, rule, rules, unknown, usage
from tests.offers.build import offer, prepaid

from rackrate.problems import Severity

SECOND = rule("granularity_s", "1", "running")


def test_twenty_minutes_on_a_minimum_of_an_hour_per_start_bill_an_hour_per_start():
    held = rules(SECOND, rule("minimum_charge_s", "3600", "running"), rule("minimum_scope", "per_start", "running"))
    charged = bill(held, offer("2"), usage(1200, 1200, 1200))
    assert charged.billed_seconds == 3 * HOUR
    assert amounts(charged) == {"compute": 6}


def test_a_minimum_per_resource_holds_once():
    held = rules(SECOND, rule("minimum_charge_s", "3600", "running"), rule("minimum_scope", "per_resource", "running"))
    assert bill(held, offer("2"), usage(1200, 1200)).billed_seconds == HOUR
    assert bill(held, offer("2"), usage(1200, 1200, 1200, 1200)).billed_seconds == 4800


def test_a_minimum_without_a_scope_is_taken_per_start():
    held = rules(SECOND, rule("minimum_charge_s", "3600", "running"))
    assert bill(held, offer("2"), usage(1200, 1200)).billed_seconds == 2 * HOUR


def test_each_start_is_rounded_up_by_itself():
    held = rules(rule("granularity_s", "60", "running"))
    assert bill(held, offer("2"), usage(61, 60, 1)).billed_seconds == 120 + 60 + 60


def test_aws_bills_a_minute_at_least_at_each_start(book, offers):
    g5 = next(o for o in offers if o.name == "g5.xlarge" and o.market == "on_demand" and o.provider == "aws")
    charged = bill(book.rules_of("aws"), g5, usage(10, 30, "61.5"))
    assert charged.billed_seconds == 60 + 60 + 62
    (compute,) = [line for line in charged.lines if line.name == "compute"]
    assert compute.amount.amount == Decimal("1.006") * (Decimal(182) / 3600)
    assert "minimum_charge_s = 60" in compute.rule
    assert "granularity_s = 1" in compute.rule


def test_an_unknown_granularity_is_billed_by_the_hour_and_said():
    charged = bill(rules(), offer("2"), usage(1200, 3601))
    assert charged.billed_seconds == 3 * HOUR
    (said,) = charged.unknown
    assert said.subject == "acme: granularity_s"
    assert said.severity is Severity.INFO  # it is in the total, on the careful side


def test_an_unknown_granularity_is_not_said_where_it_changes_nothing():
    assert bill(rules(), offer("2"), usage(3600, 7200)).unknown == ()


def test_scaleways_minimum_ended_in_october_2025(book, offers):
    h100 = next(o for o in offers if o.name == "H100-1-80G")
    held = book.rules_of("scaleway")
    assert bill(held, h100, usage(600), at=date(2025, 10, 1)).billed_seconds == 600
    assert bill(held, h100, usage(600), at=date(2025, 9, 30)).billed_seconds == 3600


# ---------------------------------------------------------------- stopped


@pytest.mark.parametrize(("value", "amount"), [("true", 4), ("false", 0)])
def test_compute_while_stopped_follows_the_rule(value, amount):
    held = rules(SECOND, rule("stopped_bills_compute", value, "stopped"))
    charged = bill(held, offer("2"), usage(3600, stopped_seconds=7200))
    assert amounts(charged) == {"compute": 2, "compute_stopped": amount}
    assert charged.billed_seconds == HOUR + (7200 if amount else 0)


def test_an_unknown_stop_rule_is_unknown_and_not_free():
    charged = bill(rules(SECOND), offer("2"), usage(3600, stopped_seconds=7200))
    assert amounts(charged) == {"compute": 2}
    assert unknown(charged) == {"stopped_bills_compute"}
    assert charged.unknown[0].severity is Severity.WARNING


def test_the_way_of_stopping_that_gives_the_machine_back_is_taken(book, offers):
    v100 = next(o for o in offers if o.name == "GN10Xp.2XLARGE40")
    charged = bill(book.rules_of("tencent"), v100, usage(3600, stopped_seconds=3600))
    (stopped,) = [line for line in charged.lines if line.name == "compute_stopped"]
    assert stopped.amount.amount == 0
    assert "no-charge mode" in stopped.rule


def test_a_digitalocean_machine_costs_the_same_stopped_as_running(book, offers):
    h100 = next(o for o in offers if o.name == "gpu-h100x1-80gb")
    charged = bill(book.rules_of("digitalocean"), h100, usage(3600, stopped_seconds=3600))
    assert amounts(charged) == {"compute": Decimal("6.74"), "compute_stopped": Decimal("6.74")}


# ---------------------------------------------------------------- prepaid terms

MONTH = offer("730", term=prepaid("month", 730))


@pytest.mark.parametrize(
    ("hours", "stopped", "months"), [(1, 0, 1), (730, 0, 1), (731, 0, 2), (10, 720, 1), (10, 721, 2), (1460, 0, 2)]
)
def test_a_prepaid_month_runs_by_the_clock(hours, stopped, months):
    charged = bill(rules(), MONTH, usage(hours * 3600, stopped_seconds=stopped * 3600))
    assert amounts(charged) == {"term": 730 * months}
    assert charged.billed_seconds == months * 730 * HOUR
    assert charged.unknown == ()  # neither granularity nor stop rule matters


def test_a_contract_is_paid_to_its_end():
    contract = offer("76000", "CNY", term=prepaid("month", 720), minimum_terms=12)
    assert amounts(bill(rules(), contract, usage(5 * DAY))) == {"term": 76000 * 12}
    assert amounts(bill(rules(), contract, usage(361 * DAY))) == {"term": 76000 * 13}


def test_stopping_forfeits_the_rest_of_a_prepaid_hour_where_the_rule_says_so(book, offers):
    """晨涧云: the first hour is paid at creation, then each next one; stopping zeroes what is left."""
    a800 = next(o for o in offers if o.provider == "晨涧云")
    charged = bill(book.rules_of("晨涧云"), a800, usage(1200, 4000, stopped_seconds=36000))
    assert amounts(charged) == {"term": Decimal("5.15") * 3}


def test_a_credit_pack_is_used_up_by_running_time_only():
    pack = offer("198", "CNY", term=prepaid("credit_pack", "7.8125"), validity_days=30)
    assert amounts(bill(rules(), pack, usage(3600, stopped_seconds=20 * DAY))) == {"term": 198}
    assert amounts(bill(rules(), pack, usage(7 * 3600, 3600))) == {"term": 396}
    assert amounts(bill(rules(), pack, usage("28125"))) == {"term": 198}  # 7.8125 h, all of it


def test_a_credit_pack_lapses():
    pack = offer("198", "CNY", term=prepaid("credit_pack", "7.8125"), validity_days=30)
    assert amounts(bill(rules(), pack, usage(3600, 3600, stopped_seconds=60 * DAY))) == {"term": 3 * 198}


def test_a_disk_kept_after_the_run_uses_up_no_further_term():
    day = offer("24", term=prepaid("day", 24))
    kept = usage(3600, stopped_seconds=7 * DAY, kept_seconds=7 * DAY)
    assert amounts(bill(rules(), day, kept)) == {"term": 24}
    between = usage(3600, 3600, stopped_seconds=2 * DAY + 7 * DAY, kept_seconds=7 * DAY)
    assert amounts(bill(rules(), day, between)) == {"term": 3 * 24}


def test_a_disk_kept_after_the_run_lets_no_pack_lapse():
    pack = offer("198", "CNY", term=prepaid("credit_pack", "7.8125"), validity_days=30)
    assert amounts(bill(rules(), pack, usage(3600, stopped_seconds=60 * DAY, kept_seconds=60 * DAY))) == {"term": 198}


# ---------------------------------------------------------------- prices without a period


def test_a_price_of_the_address_without_a_period_is_unknown_and_one_of_nothing_is_free():
    priced, free = (rules(SECOND, rule("ip_price", value, unit="USD")) for value in ("0.005", "0"))
    assert unknown(bill(priced, offer("2"), usage(3600))) == {"ip"}
    charged = bill(free, offer("2"), usage(3600))
    assert (amounts(charged)["ip"], unknown(charged)) == (0, set())
