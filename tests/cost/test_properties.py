"""What must hold of every bill."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cost.build import AT, GB, bill, rule, rules
from tests.offers.build import offer, prepaid

from rackrate.cost.bounds import SLACK, Timelines, billed_hours
from rackrate.cost.rounding import billed_seconds, ceil_to
from rackrate.cost.usage import Usage
from rackrate.offers.meter import Meter
from rackrate.offers.rows import table_of_offers

seconds = st.decimals(min_value=0, max_value=10_000_000, places=2)
starts = st.lists(seconds, min_size=1, max_size=5).map(tuple)
steps = st.sampled_from([Decimal(s) for s in ("0.000001", "1", "60", "600", "3600")])
minimums = st.sampled_from([Decimal(s) for s in ("0", "60", "3600", "86400")])
used = st.builds(Usage, run_seconds=starts, stopped_seconds=seconds)
kinds = st.lists(st.tuples(seconds, st.integers(1, 5)), min_size=1, max_size=3)
in_kinds = st.tuples(kinds, st.one_of(st.just(Decimal(0)), seconds), st.one_of(st.just(Decimal(0)), seconds))
"""Starts by kind (seconds, how many), seconds stopped between and kept after."""


def usage_of(case):
    of_kinds, paused, kept = case
    runs = tuple(each for each, count in of_kinds for _ in range(count))
    return Usage(run_seconds=runs, stopped_seconds=paused + kept, kept_seconds=kept)


COMPUTE = {"compute", "compute_stopped", "term"}


@given(starts, steps, st.integers(1, 100), minimums, st.booleans())
def test_a_granularity_that_divides_another_never_costs_more(runs, step, factor, minimum, once):
    fine = Meter(granularity_s=step, minimum_s=minimum, per_resource=once)
    coarse = Meter(granularity_s=step * factor, minimum_s=minimum, per_resource=once)
    assert billed_seconds(runs, fine) <= billed_seconds(runs, coarse)


@given(starts, steps, minimums, st.booleans())
def test_what_is_billed_covers_what_ran(runs, step, minimum, once):
    meter = Meter(granularity_s=step, minimum_s=minimum, per_resource=once)
    billed = billed_seconds(runs, meter)
    assert sum(runs) <= billed
    assert billed <= sum(runs) + len(runs) * max(step, minimum)


@given(seconds, steps)
def test_rounding_up_is_the_next_step(amount, step):
    rounded = ceil_to(amount, step)
    assert rounded - step < amount <= rounded
    assert rounded % step == 0


@st.composite
def held_rules(draw):
    """Rules of one provider, some of them missing."""
    values = {
        ("granularity_s", "running", "s"): st.sampled_from(["1", "60", "3600"]),
        ("minimum_charge_s", "running", "s"): st.sampled_from(["60", "3600"]),
        ("minimum_scope", "running", ""): st.sampled_from(["per_start", "per_resource"]),
        ("prepaid_lost_on_stop", "stopped", "bool"): st.sampled_from(["true", "false"]),
        ("stopped_bills_compute", "stopped", "bool"): st.sampled_from(["true", "false"]),
        ("stopped_bills_disk", "stopped", "bool"): st.sampled_from(["true", "false"]),
        ("stopped_disk_multiplier", "stopped", ""): st.sampled_from(["2", "much"]),
        ("disk_price", "any", "USD/GB-month"): st.sampled_from(["0.1", "per_host"]),
        ("free_disk_gb", "any", "GB"): st.sampled_from(["100", "by plan"]),
        ("egress_price_tiers", "any", "upper GB:USD/GB"): st.sampled_from(["inf:0", "1024:0.12|inf:0.08", "per_host"]),
        ("egress_free_gb", "any", "GB/month"): st.sampled_from(["100", "0"]),
        ("ingress_price", "any", "USD/GB"): st.sampled_from(["0", "0.01"]),
        ("ip_price", "any", "USD/h"): st.sampled_from(["0.005", "billed_apart"]),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(values)), unique=True))
    return rules(*(rule(key, draw(values[key, state, unit]), state, unit) for key, state, unit in chosen))


terms = st.sampled_from(
    [
        {},
        {"term": prepaid("hour", 1)},
        {"term": prepaid("month", 730)},
        {"term": prepaid("month", 720), "minimum_terms": 12},
        {"term": prepaid("credit_pack", "7.8125"), "validity_days": 30},
        {"term": prepaid("hour", 1), "minimum_terms": 8760},
    ]
)
made_offers = st.builds(
    lambda price, term, gb: offer(price, includes_disk_gb=gb, **term),
    st.sampled_from(["0.0001", "1.29", "98.32"]),
    terms,
    st.sampled_from([Decimal(0), Decimal(50)]),
)
full_usage = st.builds(
    Usage,
    run_seconds=starts,
    stopped_seconds=seconds,
    disk_bytes=st.integers(0, 1000).map(lambda gb: gb * GB),
    data_in_bytes=st.integers(0, 5000).map(lambda gb: gb * GB),
    data_out_bytes=st.integers(0, 5000).map(lambda gb: gb * GB),
)


@given(held_rules(), made_offers, full_usage)
def test_the_total_is_the_exact_sum_of_lines_that_each_multiply_out(held, machine, spent):
    charged = bill(held, machine, spent)
    assert charged.total.amount == sum(line.amount.amount for line in charged.lines)
    for line in charged.lines:
        assert line.amount.amount == line.quantity * line.unit_price.amount
        assert line.amount.amount >= 0
        assert line.rule
        assert line.amount.currency == charged.currency == machine.price.currency


@given(held_rules(), made_offers, full_usage)
def test_every_part_in_use_is_priced_or_said_to_be_unknown(held, machine, spent):
    charged = bill(held, machine, spent)
    covered = {line.name for line in charged.lines} | {f.subject.rpartition(": ")[2] for f in charged.unknown}
    assert covered & {"compute", "term"}
    for amount, name in ((spent.data_in_bytes, "data_in"), (spent.data_out_bytes, "data_out")):
        assert not amount or name in covered
    assert not spent.disk_bytes or "disk_running" in covered
    assert not (spent.disk_bytes and spent.stopped_seconds) or "disk_stopped" in covered
    assert not spent.stopped_seconds or machine.term.prepaid or {"compute_stopped", "stopped_bills_compute"} & covered


@given(held_rules(), made_offers, full_usage, st.decimals(min_value=0, max_value=100_000, places=2))
def test_more_time_never_costs_less(held, machine, spent, extra):
    """Traffic is left out: its free part begins again each month."""
    longer = (spent.run_seconds[0] + extra, *spent.run_seconds[1:])
    for more in (
        Usage(run_seconds=longer, stopped_seconds=spent.stopped_seconds, disk_bytes=spent.disk_bytes),
        Usage(
            run_seconds=spent.run_seconds, stopped_seconds=spent.stopped_seconds + extra, disk_bytes=spent.disk_bytes
        ),
        Usage(
            run_seconds=(*spent.run_seconds, extra), stopped_seconds=spent.stopped_seconds, disk_bytes=spent.disk_bytes
        ),
    ):
        less = Usage(run_seconds=spent.run_seconds, stopped_seconds=spent.stopped_seconds, disk_bytes=spent.disk_bytes)
        assert bill(held, machine, less).total <= bill(held, machine, more).total


# ---------------------------------------------------------------- columns


def compute_amount(charged):
    return sum((line.amount.amount for line in charged.lines if line.name in COMPUTE), Decimal(0))


def column(table, rows, case):
    clocks, clock_of_class = table.clocks
    of_kinds, paused, kept = case
    start_s = np.array([[float(each)] for each, _ in of_kinds])
    times = Timelines(start_s, tuple(count for _, count in of_kinds), float(paused + kept), float(kept))
    hours = billed_hours(clocks, times)[:, 0]
    return hours[clock_of_class[table.billing[rows]]] * table.price_per_hour[rows]


@given(held_rules(), made_offers, in_kinds)
def test_the_column_of_compute_costs_is_the_exact_one_but_for_rounding(held, machine, case):
    made = table_of_offers([machine], lambda _: held, at=AT)
    found = column(made, np.arange(1), case)
    exact = float(compute_amount(bill(held, machine, usage_of(case))))
    assert found[0] * (1 - SLACK) <= exact <= found[0] * (1 + SLACK)


@settings(max_examples=10)
@given(case=in_kinds)
def test_it_is_for_every_bundled_offer(book, table, offers, case):
    rows, spent = np.flatnonzero(table.priced), usage_of(case)
    exact = [float(compute_amount(bill(book.rules_of(offers[i].provider), offers[i], spent))) for i in rows]
    np.testing.assert_allclose(column(table, rows, case), exact, rtol=SLACK)


@pytest.mark.parametrize(("hours", "terms"), [("730", 1), ("1460", 2), ("1460.0003", 3), ("0.3", 1), ("8760", 12)])
def test_a_time_that_is_a_whole_number_of_terms_is_not_one_more(hours, terms):
    made = table_of_offers([offer("100", term=prepaid("month", "730"))])
    assert column(made, np.arange(1), ([(Decimal(hours) * 3600, 1)], 0, 0))[0] == pytest.approx(100 * terms)


def test_no_estimate_gives_no_cost():
    made = table_of_offers([offer("2")])
    assert np.isnan(column(made, np.arange(1), ([(Decimal("NaN"), 1)], 0, 0))[0])
