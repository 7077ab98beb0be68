"""The right term for a run length: by the hour, day, week or month, from one seller.

A plan rents by one of them: a seller that lets terms run on into each other
would have to say so, and no billing rule that was seen does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.build import SERVICE, offer

from rackrate.offers.offer import Offer, Term
from rackrate.plan.planner import plan
from rackrate.plan.question import Question

Ask = Callable[..., Question]
TERMS = {"hour": (1, 1.0), "day": (24, 20.0), "week": (168, 100.0), "month": (730, 300.0)}
"""Hours and price: a day pays from 20 hours, a week from 5 days, a month from 3 weeks."""


def packages() -> list[Offer]:
    return [
        offer(
            number,
            "a100-sxm4-80",
            str(price),
            provider="runpod",
            name=unit,
            term=Term(unit=unit, hours=Decimal(hours), prepaid=unit != "hour"),
        )
        for number, (unit, (hours, price)) in enumerate(TERMS.items())
    ]


def best(ask: Ask, hours: float) -> tuple[str, float]:
    found = plan(ask({**SERVICE, "use": {"horizon_days": hours / 24, "disk": "0 GB"}}, packages())).plans[0]
    return found.offer.term.unit, float(found.cost.likely.amount)


@pytest.mark.parametrize(
    ("hours", "unit", "cost"),
    [
        (5, "hour", 5),
        (19, "hour", 19),
        (24, "day", 20),
        (26, "hour", 26),
        (45, "day", 40),
        (49, "hour", 49),
        (120, "day", 100),
        (150, "week", 100),
        (170, "day", 160),
        (330, "week", 200),
        (505, "month", 300),
        (800, "week", 500),
        (1300, "month", 600),
    ],
)
def test_the_cheapest_term_for_a_run_length_comes_first(ask: Ask, hours: int, unit: str, cost: float) -> None:
    found = best(ask, hours)
    assert found[1] == cost
    assert found[0] == unit


@given(st.integers(1, 2000))
def test_no_other_single_term_costs_less(ask: Ask, hours: int) -> None:
    assert best(ask, hours)[1] == min(math.ceil(hours / length) * price for length, price in TERMS.values())
