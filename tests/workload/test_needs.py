"""What renting needs, held against facts: unknown, and known under a condition alone, is no pass."""

from datetime import date

import pytest

from rackrate.evidence import Unknown
from rackrate.facts.access import AccessFact
from rackrate.workload.needs import NEEDS, meets_need, needs, parse_need


def fact(key, value, condition=""):
    return AccessFact(
        provider="x",
        key=key,
        value=value,
        unit="",
        condition=condition,
        seen_at=date(2026, 11, 1),
        source="s",
        confidence="high",
    )


UNKNOWN = "unknown"


@pytest.mark.parametrize(
    ("need", "known", "answer"),
    [
        ("no_company_verification", [], UNKNOWN),
        ("no_company_verification", [fact("company_verification", "not_required")], True),
        ("no_company_verification", [fact("company_verification", "required")], False),
        ("no_company_verification", [fact("company_verification", "required", "an interface")], UNKNOWN),
        ("no_company_verification", [fact("company_verification", "not_required", "small machines")], UNKNOWN),
        (
            "no_company_verification",
            [fact("company_verification", "not_required"), fact("company_verification", "required", "in China")],
            UNKNOWN,
        ),
        ("no_real_name_verification", [fact("company_verification", "not_required")], UNKNOWN),
        ("no_quota", [fact("quota", "by_request", "GPU families")], False),
        ("no_quota", [fact("quota", "80")], False),
        ("no_minimum_balance", [fact("minimum_balance", "0")], True),
        ("no_minimum_balance", [fact("minimum_balance", "10 USD")], False),
        ("no_waitlist", [fact("waitlist", "false")], True),
        ("payment=card", [fact("payment_methods", "card|crypto")], True),
        ("payment=alipay", [fact("payment_methods", "card|crypto")], False),
        (
            "payment=invoice",
            [fact("payment_methods", "card"), fact("payment_methods", "invoice", "over 5000")],
            UNKNOWN,
        ),
        ("payment=card", [fact("payment_methods", "card", "at least 10 USD")], UNKNOWN),
        ("stock_signal", [fact("stock_signal", "api")], True),
        ("stock_signal", [fact("stock_signal", "none")], False),
        ("stock_signal", [], UNKNOWN),
    ],
)
def test_meets(need, known, answer):
    found = meets_need(known, need)
    assert isinstance(found, Unknown) if answer is UNKNOWN else found is answer


@pytest.mark.parametrize("need", NEEDS)
def test_nothing_known_is_never_a_pass(need):
    assert isinstance(meets_need((), need), Unknown)
    assert parse_need(f" {need.upper().replace('_', '-')} ") == need


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no_qouta", "did you mean no_quota"),
        ("payment", "write payment= and one of"),
        ("payment=gold", "write payment= and one of"),
        ("x", "choose from"),
    ],
)
def test_what_is_no_need(text, said):
    with pytest.raises(ValueError, match=said):
        parse_need(text)
    assert needs([text, "no_quota", "no-quota"]) == ("no_quota",)
