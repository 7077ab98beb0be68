"""Offers by the column and in lots are the offers by the row."""

from datetime import date
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.offers.build import offer, prepaid

from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.offers.arrays import coded
from rackrate.offers.columns import Coded, Conditions, Machine, OfferColumns, distinct, table_of
from rackrate.offers.meter import SoldTerm
from rackrate.offers.rows import row_of, table_of_offers
from rackrate.offers.table import FLAGS
from rackrate.values import replace

CARDS = ((), ("a40",), ("a100-sxm4-80",), ("a100-pcie-80", "a100-sxm4-80"))
COLUMNS = ("gpus", "share", "priced", "prepaid", "granularity_s", "minimum_s", "superseded", *FLAGS)
WORDS = (("provider", "providers"), ("place", "places"), ("market", "markets"), ("currency", "currencies"))


@st.composite
def offers(draw):
    made = []
    for number in range(draw(st.integers(0, 25))):
        price = draw(st.sampled_from(["0", "1", "2", "2.5", "NaN"]))
        made.append(
            offer(
                price,
                draw(st.sampled_from(["USD", "CNY"])),
                id=str(number),
                provider=draw(st.sampled_from(["acme", "other"])),
                name=draw(st.sampled_from(["one", "two", "RENDER-S"])),
                cards=draw(st.sampled_from(CARDS)),
                card_label=draw(st.sampled_from(["X1", "X2"])),
                gpus=draw(st.sampled_from([1, 8])),
                share=draw(st.sampled_from([1.0, 0.5])),
                region=draw(st.sampled_from(["", "us-1"])),
                market=draw(st.sampled_from(["spot", "on_demand"])),
                term=draw(st.sampled_from([offer().term, prepaid("month", 730), prepaid("credit_pack", 100)])),
                observed_on=date(2026, 11, draw(st.integers(1, 3))),
                observed_how=draw(st.sampled_from(["page_read", "not_after"])),
                interruptible=draw(st.booleans()),
                excludes=draw(st.sampled_from([(), ("host",)])),
                includes_disk_gb=draw(st.sampled_from([Decimal(0), Decimal(100)])),
                minimum_terms=draw(st.sampled_from([1, 12])),
                validity_days=draw(st.sampled_from([None, 30])),
            )
        )
    return made


def rules_of(provider):
    def rule(value, state):
        day = date(2026, 1, 1)
        return BillingRule(
            provider=provider,
            key="granularity_s",
            value=value,
            unit="s",
            state=state,
            effective_from=None,
            seen_at=day,
            source="",
            confidence="high",
        )

    return BillingRules(provider=provider, rules=(rule("60", "running"), rule("1", "running (RENDER-S)")))


def columns_of(made):
    rows = [row_of(each) for each in made]

    def column(of):
        return Coded(*coded([of(row) for row in rows]))

    return OfferColumns(
        provider=column(lambda r: r.provider),
        name=column(lambda r: r.name),
        product=column(lambda r: r.product),
        machine=column(lambda r: Machine(r.label, r.shapes, r.gpus, r.share)),
        place=column(lambda r: r.place),
        market=column(lambda r: r.market),
        currency=column(lambda r: r.currency),
        term=column(lambda r: SoldTerm(r.term_unit, r.term_hours, r.prepaid, r.minimum_terms, r.validity_hours)),
        conditions=column(
            lambda r: Conditions(
                r.interruptible, r.commitment_unknown, r.price_is_from, r.excludes_host, r.includes_disk_gb
            )
        ),
        price_per_term=np.array([r.price_per_term for r in rows], dtype=np.float64),
        day=np.array([r.day for r in rows], dtype=np.int32),
        dated=np.array([r.dated for r in rows], dtype=np.bool_),
    )


@given(offers())
def test_every_offer_has_the_columns_that_its_row_has(made):
    by_row = table_of_offers(made, rules_of)
    by_column, order = table_of(columns_of(made), made.__getitem__, rules_of)
    assert sorted(order.tolist()) == list(range(len(made)))
    assert (by_column.count, int(by_column.sizes.sum())) == (len(made), len(made))
    for number, place in enumerate(order.tolist()):
        entry = by_column.lots.entry(number)
        assert by_column.record(number) is made[place]
        for name in COLUMNS:
            assert getattr(by_column, name)[entry] == getattr(by_row, name)[place], name
        for name, words in WORDS:
            mine, its = (getattr(t, words)[getattr(t, name)[i]] for t, i in ((by_column, entry), (by_row, place)))
            assert mine == its
        assert by_column.shape_sets[by_column.shape_set[entry]] == made[place].shapes
        classes = (t.billing_classes[t.billing[i]] for t, i in ((by_column, entry), (by_row, place)))
        assert len({replace(each, name="") for each in classes}) == 1
        np.testing.assert_equal(by_column.prices_of(np.array([number]))[0], by_row.price_per_hour[place])
        mine, its = by_column.offer(number), by_row.offer(place)
        assert (mine.id, len(mine.findings), mine.superseded) == (its.id, len(its.findings), its.superseded)


@given(offers())
def test_a_lot_is_alike_but_for_its_price_and_comes_cheapest_first(made):
    table, _ = table_of(columns_of(made), made.__getitem__, rules_of)
    for entry in range(len(table)):
        numbers = range(table.number(entry), table.number(entry) + int(table.sizes[entry]))
        lot = [table.record(number) for number in numbers]
        asked = {(o.provider, o.shapes, o.gpus, o.region, o.market, o.term, o.interruptible, o.excludes) for o in lot}
        assert len(asked) == 1
        prices = [(float(o.price.amount), -o.observed_on.toordinal()) for o in lot]
        assert all(np.isnan(p) for p, _ in prices) or prices == sorted(prices)
        np.testing.assert_equal(table.price_per_hour[entry], table.prices_of(np.array(numbers))[0])


@given(offers(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.4, 9.0]))
def test_how_many_of_a_lot_cost_at_most_a_price(made, most):
    table, _ = table_of(columns_of(made), made.__getitem__, rules_of)
    entries = np.flatnonzero(table.priced)
    expected = []
    for entry in entries.tolist():
        numbers = np.arange(table.number(entry), table.number(entry) + table.sizes[entry])
        expected.append(int((table.prices_of(numbers) <= most).sum()))
    assert table.up_to(entries, np.full(len(entries), most)).tolist() == expected


def test_no_record_is_made_before_it_is_asked_for():
    asked = []

    def record(place):
        asked.append(place)
        return offer(id=str(place))

    made = [offer(name=str(n)) for n in range(100)]
    table, _ = table_of(columns_of(made), record)
    assert asked == []
    assert table.offer(7).id in {str(n) for n in range(100)}
    assert len(asked) == 1


def test_a_hundred_thousand_hosts_of_one_kind_are_one_lot():
    made = columns_of([offer()])
    count = 100_000
    rng = np.random.default_rng(1)
    many = OfferColumns(
        **{name: Coded(getattr(made, name).words, np.zeros(count, dtype=np.int32)) for name in CODED},
        name=Coded([f"host {n}" for n in range(count)], np.arange(count, dtype=np.int32)),
        product=Coded([f"acme/host {n}" for n in range(count)], np.arange(count, dtype=np.int32)),
        price_per_term=np.rint(rng.random(count) * 1e4) / 1e4 + 1,
        day=np.ones(count, dtype=np.int32),
        dated=np.ones(count, dtype=np.bool_),
    )
    table, order = table_of(many, lambda place: offer(id=str(place)))
    assert (len(table), table.count, table.sizes.tolist()) == (1, count, [count])
    assert table.offer(0).id == str(order[0])
    assert table.price_per_hour[0] == many.price_per_term.min()


CODED = ("provider", "machine", "place", "market", "currency", "term", "conditions")


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 2)), max_size=20))
def test_distinct_codes_are_in_the_order_of_the_combinations_however_large(rows):
    columns = [np.array([row[n] for row in rows], dtype=np.int64) for n in range(3)]
    codes = distinct(*columns).tolist()
    assert codes == [sorted(set(rows)).index(row) for row in rows]
