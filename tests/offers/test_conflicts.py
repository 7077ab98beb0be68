from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.offers.build import offer, prepaid

from rackrate.offers.rows import table_of_offers
from rackrate.problems import Code, Severity


def series(offers, provider, name, **wanted):
    """The observations of one thing, each with whether it gives way."""
    found = [
        o
        for o in offers
        if o.provider == provider and o.name.startswith(name) and all(getattr(o, k) == v for k, v in wanted.items())
    ]
    return {(o.price.amount, o.observed_on.isoformat()): o.superseded for o in found}, found


def disagreements(found):
    return [f for o in found for f in o.findings if f.code is Code.OFFERS_DISAGREE]


def test_oci_a100_32_against_40(offers):
    seen, found = series(offers, "oci", "BM.GPU.A100-v2.8", region="us-ashburn-1")
    assert seen == {(Decimal(32), "2025-09-10"): True, (Decimal(40), "2026-09-06"): False}
    assert len(disagreements(found)) == 2
    assert "32 USD/h" in disagreements(found)[0].observed
    assert "40 USD/h" in disagreements(found)[0].observed


def test_azure_nc48ads_7_346_against_9_554(offers):
    seen, found = series(offers, "azure", "Standard_NC48ads_A100_v4", region="eastus", market="on_demand")
    assert seen == {(Decimal("7.346"), "2026-06-18"): True, (Decimal("9.554"), "2026-11-09"): False}
    assert {f.severity for f in disagreements(found)} == {Severity.WARNING}


def test_runpod_h100_sxm_secure_3_29_3_49_3_99(offers):
    seen, found = series(offers, "runpod", "H100 80GB SXM5 secure")
    assert seen == {
        (Decimal("3.29"), "2026-08-19"): True,
        (Decimal("3.49"), "2026-09-25"): True,
        (Decimal("3.99"), "2026-11-09"): False,
    }
    assert disagreements(found)[0].subject == next(o.id for o in found if not o.superseded)


def test_vast_h100_sxm_median_6_15_against_2_40_is_one_series_although_the_names_differ(offers):
    seen, found = series(offers, "vast", "H100 SXM median of")
    assert seen == {(Decimal("2.4024"), "2026-10-19"): False, (Decimal("6.1489"), "2026-10-07"): True}
    assert len({o.name for o in found}) == 2
    assert len(disagreements(found)) == 2


def test_verda_1_29_direct_against_1_12_resold_are_both_for_sale(offers):
    _, direct = series(offers, "verda", "1A100.22V", market="on_demand")
    _, resold = series(offers, "primeintellect:verda", "datacrunch 1A100.22V", market="on_demand")
    assert [o.price.amount for o in direct + resold] == [Decimal("1.29"), Decimal("1.12")]
    assert not any(o.superseded for o in direct + resold)
    found = disagreements(direct + resold)
    assert [f.severity for f in found] == [Severity.INFO, Severity.INFO]


def test_all_upfront_and_no_upfront_are_two_products(offers):
    _, found = series(offers, "aws-cn", "p4d.24xlarge", market="reserved_3y")
    assert [(o.product.rpartition("/")[2], o.superseded) for o in found] == [
        ("p4d.24xlarge", False),
        ("p4d.24xlarge, all upfront", False),
    ]


def test_an_undated_price_gives_way_to_a_dated_one(offers):
    seen, _ = series(offers, "AutoDL", "RTX 4090", market="on_demand")
    assert seen == {
        (Decimal("1.88"), "2026-11-30"): True,  # known only to be no newer
        (Decimal("1.98"), "2026-11-30"): True,
        (Decimal("2.18"), "2026-08-30"): False,  # paid that day
    }


def test_the_same_price_seen_twice_is_no_disagreement(offers):
    seen, found = series(offers, "azure", "Standard_NC24ads_A100_v4", region="eastus", market="on_demand")
    assert list(seen.values()) == [True, False]
    assert disagreements(found) == []


def table_of(*offers):
    return table_of_offers(offers)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"price": "0"}, {"price": "2", "observed_on": date(2020, 1, 1)}),
        ({"price": "NaN"}, {"price": "2", "observed_on": date(2020, 1, 1)}),
        ({"observed_how": "not_after"}, {"observed_on": date(2020, 1, 1)}),
        ({"observed_on": date(2026, 1, 1)}, {"observed_on": date(2026, 1, 2), "price": "1"}),
        ({"price": "1"}, {"price": "2"}),
        ({"id": "first"}, {"id": "second"}),
    ],
)
def test_precedence(first, second):
    assert table_of(offer(**first), offer(**second)).superseded.tolist() == [True, False]
    if "id" not in first:
        assert table_of(offer(**second), offer(**first)).superseded.tolist() == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "other", "product": "acme/a100"},
        {"name": "other"},
        {"cards": ("h100-sxm5-80",)},
        {"gpus": 2},
        {"share": 0.5},
        {"region": "us-2"},
        {"market": "spot"},
        {"term": prepaid("month", 730)},
    ],
)
def test_another_thing_does_not_replace_it(change):
    both = table_of(offer(price="1"), offer(price="2", observed_on=date(2026, 11, 2), **change))
    assert both.superseded.tolist() == [False, False]


prices = st.sampled_from(["NaN", "0", "1", "2"])
days = st.integers(1, 4).map(lambda day: date(2026, 1, day))
ways = st.sampled_from(["page_read", "not_after"])
observed = st.tuples(prices, days, ways, st.sampled_from(["a", "b"]))


@given(st.lists(observed, max_size=12))
def test_exactly_one_observation_of_each_thing_is_live_and_order_hardly_matters(seen):
    made = [offer(price=p, observed_on=d, observed_how=w, name=n) for p, d, w, n in seen]
    live = [o for o, gives_way in zip(made, table_of(*made).superseded, strict=True) if not gives_way]
    assert sorted(o.name for o in live) == sorted({o.name for o in made})
    turned = made[::-1]
    again = [o for o, gives_way in zip(turned, table_of(*turned).superseded, strict=True) if not gives_way]
    assert sorted(map(what, live)) == sorted(map(what, again))


def what(seen):
    return (seen.name, str(seen.price.amount), seen.observed_on, seen.observed_how)
