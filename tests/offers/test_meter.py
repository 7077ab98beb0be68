from datetime import date
from decimal import Decimal

import pytest

from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.offers.meter import HOUR_S, Meter, bills_stopped, meter_of, narrowed

AT = date(2026, 11, 30)


def rule(key, value, state="running", since=None, confidence="high"):
    return BillingRule(
        provider="acme",
        key=key,
        value=value,
        unit="s",
        state=state,
        effective_from=since,
        seen_at=AT,
        source="docs",
        confidence=confidence,
    )


def rules(*held):
    return BillingRules(provider="acme", rules=held)


def meter(held, name="a100", *, interruptible=False, at=AT):
    return meter_of(held, name, interruptible=interruptible, at=at)


def test_without_a_rule_the_meter_counts_whole_hours_and_says_so():
    unknown = meter(rules())
    assert (unknown.granularity_s, unknown.minimum_s, unknown.is_known) == (HOUR_S, 0, False)


def test_granularity_minimum_and_scope():
    seen = meter(
        rules(rule("granularity_s", "60"), rule("minimum_charge_s", "600"), rule("minimum_scope", "per_resource"))
    )
    assert (seen.granularity_s, seen.minimum_s, seen.per_resource, seen.is_known) == (60, 600, True, True)


def test_a_step_that_is_prose_or_zero_is_unknown():
    assert not meter(rules(rule("granularity_s", "by the minute"))).is_known
    assert not meter(rules(rule("granularity_s", "0"))).is_known


def test_of_two_figures_of_equal_standing_the_coarser_counts():
    assert meter(rules(rule("granularity_s", "1"), rule("granularity_s", "3600"))).granularity_s == 3600


def test_a_rule_for_spot_is_for_spot():
    held = rules(rule("granularity_s", "1", "spot"))
    assert meter(held, interruptible=True).granularity_s == 1
    assert not meter(held).is_known


def test_spot_is_metered_as_running_machines_are_unless_said_otherwise():
    assert meter(rules(rule("granularity_s", "60")), interruptible=True).granularity_s == 60


def test_a_rule_counts_from_its_day():
    held = rules(rule("granularity_s", "3600"), rule("granularity_s", "60", since=date(2026, 1, 1)))
    assert meter(held, at=date(2025, 12, 31)).granularity_s == 3600
    assert meter(held, at=date(2026, 1, 1)).granularity_s == 60


@pytest.mark.parametrize(("name", "seconds"), [("RENDER-S", 3600), ("H100-1-80G", 60)])
def test_a_rule_for_one_product_holds_for_it_alone(name, seconds):
    held = rules(
        rule("granularity_s", "60", "running (GPU except RENDER-S)"),
        rule("granularity_s", "3600", "running (RENDER-S)"),
    )
    assert meter(held, name).granularity_s == seconds


def test_a_rule_until_a_month_ends_with_it():
    held = rules(rule("minimum_charge_s", "3600", "running before 2025-10"))
    assert meter(held, at=date(2025, 9, 30)).minimum_s == 3600
    assert meter(held, at=date(2025, 10, 1)).minimum_s == 0
    assert meter(held, at=None).minimum_s == 0


def test_other_states_stay_as_they_are():
    held = rules(rule("stopped_bills_compute", "true", "stopped, default"), rule("minimum_scope", "per_start"))
    assert narrowed(held, "a100", AT) is held


def test_a_term_that_lapses_on_stop():
    assert meter(rules(rule("prepaid_lost_on_stop", "true", "stopped"))).lapses_on_stop
    assert not meter(rules(rule("prepaid_lost_on_stop", "false", "prepaid"))).lapses_on_stop
    assert meter(rules(rule("granularity_s", "0.000001"))).granularity_s == Decimal("0.000001")


def test_a_meter_of_which_nothing_was_seen_bills_whole_hours_at_each_start_and_nothing_else():
    bare = Meter()
    assert (bare.granularity_s, bare.minimum_s) == (Decimal(3600), Decimal(0))
    assert (bare.per_resource, bare.lapses_on_stop, bare.bills_stopped, bare.is_known) == (False, False, False, False)


def test_ways_of_stopping_that_give_the_machine_back_come_before_those_that_hold_it():
    gives, holds = (
        ("deallocated", "stopped, no-charge mode", "stopped, economical mode"),
        ("stopped, default", "standby"),
    )
    for free in gives:
        for held in holds:
            both = rules(rule("stopped_bills_compute", "true", held), rule("stopped_bills_compute", "false", free))
            assert not bills_stopped(both), (free, held)
    for held in holds:
        assert bills_stopped(rules(rule("stopped_bills_compute", "true", held)))
