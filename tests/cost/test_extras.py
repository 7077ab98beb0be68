from decimal import Decimal

import pytest
from tests.cost.build import HOUR, amounts, bill, rule, rules, unknown, usage
from tests.offers.build import offer

from rackrate.problems import Severity
from rackrate.units import HOURS_PER_MONTH

SECOND = rule("granularity_s", "1", "running")
FREE_STOP = rule("stopped_bills_compute", "false", "stopped")


def test_an_address_is_billed_while_the_machine_exists(book):
    aws = offer("2", provider="aws")
    charged = bill(book.rules_of("aws"), aws, usage(10 * HOUR, stopped_seconds=5 * HOUR))
    assert [line.amount.amount for line in charged.lines if line.name == "ip"] == [Decimal("0.05"), Decimal("0.025")]


def test_an_address_by_the_month(book):
    month_s = Decimal(str(HOURS_PER_MONTH)) * HOUR
    charged = bill(book.rules_of("coreweave"), offer("2", provider="coreweave"), usage(month_s))
    assert amounts(charged)["ip"] == 4


def test_an_address_that_is_lost_on_stop_costs_nothing_then(book):
    tencent = offer("2", provider="tencent")
    charged = bill(book.rules_of("tencent"), tencent, usage(HOUR, stopped_seconds=HOUR))
    assert "ip" not in amounts(charged)
    assert "ip" not in unknown(charged)


def test_an_address_that_still_costs_something_unknown_is_said(book):
    aliyun = offer("2", "CNY", provider="aliyun")
    assert "ip" in unknown(bill(book.rules_of("aliyun"), aliyun, usage(HOUR, stopped_seconds=HOUR)))
    assert "ip" not in unknown(bill(book.rules_of("aliyun"), aliyun, usage(HOUR)))


def test_an_address_is_taken_as_included_unless_the_offer_excludes_it():
    assert unknown(bill(rules(SECOND), offer("2"), usage(HOUR))) == set()
    assert unknown(bill(rules(SECOND), offer("2", excludes=("ip",)), usage(HOUR))) == {"ip"}


def test_a_fee_is_due_once_however_often_the_machine_starts():
    held = rules(SECOND, rule("one_time_fee", "7", "start", "USD"))
    assert amounts(bill(held, offer("2"), usage(HOUR, HOUR)))["one_time"] == 7
    prose = rules(SECOND, rule("one_time_fee", "on request", "start", "USD"))
    assert unknown(bill(prose, offer("2"), usage(HOUR))) == {"one_time"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"excludes": ("host",)}, "host"), ({"excludes": ("tax",)}, "tax"), ({"commitment_unknown": True}, "commitment")],
)
def test_what_a_price_leaves_out_is_a_warning(changes, what):
    (said,) = bill(rules(SECOND), offer("2", **changes), usage(HOUR)).unknown
    assert said.subject == f"acme: {what}"
    assert said.severity is Severity.WARNING


def test_lambdas_prices_are_without_tax(book):
    charged = bill(book.rules_of("lambda"), offer("2", provider="lambda"), usage(HOUR))
    assert unknown(charged) == {"tax"}


def test_a_lowest_price_and_a_resellers_rules_are_remarks():
    charged = bill(rules(SECOND), offer("2", price_is_from=True, provider="shop:acme"), usage(HOUR))
    assert unknown(charged) == {"price_is_from", "resold"}
    assert {f.severity for f in charged.unknown} == {Severity.INFO}
