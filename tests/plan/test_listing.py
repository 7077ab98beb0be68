"""A list of offers against the same tests made one by one on exact records."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest

from rackrate.app.context import context
from rackrate.offers import catalog
from rackrate.offers.columns import table_of as table_of_columns
from rackrate.offers.price_list import Reader
from rackrate.offers.texts import read_texts
from rackrate.plan.answer import Reason
from rackrate.plan.listing import _GROUPS, _SORTS, Listing, listed
from rackrate.plan.listing_words import GROUP_KEYS, SORT_KEYS
from rackrate.workload.workload import Limits

AT = date(2026, 11, 30)
HERE = context(AT)


def listing(**given):
    return Listing(**{"limits": Limits(), "offers": HERE.catalog.table, "book": HERE.book, "currency": "USD"} | given)


def price(offer, currency="USD"):
    """The price per hour of the offer, and of a whole card, in a currency; None without a rate."""
    if not HERE.book.rates.knows(offer.price.currency):
        return None, None
    whole = HERE.book.rates.convert(offer.price_per_hour, currency).amount
    return whole, whole / (offer.gpus * Decimal(repr(offer.share)))


def sold_gb(offer):
    """GB as sold of one card; None where the cards that it can be differ or are not known."""
    sizes = {HERE.book.accelerators[card].memory_sold_gb for card in offer.cards}
    return Decimal(repr(sizes.pop())) if len(sizes) == 1 else None


@dataclass
class Case:
    given: dict
    holds: object


CASES = {
    "all": Case({}, lambda o: True),
    "gpu": Case({"limits": Limits(gpus=("a40", "l4"))}, lambda o: set(o.cards) <= {"a40", "l4"} and bool(o.cards)),
    "count": Case(
        {"limits": Limits(gpu_counts=(2, 4, 8), max_gpus=4), "min_gpus": 3},
        lambda o: o.gpus in {2, 4, 8} and 3 <= o.gpus <= 4,
    ),
    "memory": Case(
        {"limits": Limits(require=("min_memory_gb=80",))},
        lambda o: bool(o.cards) and all(HERE.book.accelerators[c].memory_sold_gb >= 80 for c in o.cards),
    ),
    "provider": Case({"limits": Limits(providers=("runpod", "google"))}, lambda o: o.provider in {"runpod", "gcp"}),
    "currency": Case({"currencies": ("CNY",)}, lambda o: o.price.currency == "CNY"),
    "price": Case({"max_price": 1.0}, lambda o: price(o)[0] is not None and price(o)[0] <= 1),
    "per gpu": Case(
        {"max_price_per_gpu": 2.0, "currency": "EUR"},
        lambda o: price(o, "EUR")[1] is not None and price(o, "EUR")[1] <= 2,
    ),
    "four or more": Case({"min_gpus": 4}, lambda o: o.gpus >= 4),
    "seen from the day on": Case({"seen_since": date(2026, 7, 20)}, lambda o: o.observed_on >= date(2026, 7, 20)),
    "both prices": Case(
        {"max_price": 8.0, "max_price_per_gpu": 2.0},
        lambda o: None not in price(o) and price(o)[0] <= 8 and price(o)[1] <= 2,
    ),
    "seen": Case({"seen_since": date(2026, 6, 1)}, lambda o: o.observed_on >= date(2026, 6, 1)),
    "spot": Case({"limits": Limits(markets=("spot",))}, lambda o: o.market == "spot"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("history", [False, True])
def test_what_is_listed_is_what_passes(name, history):
    case = CASES[name]
    found = listed(listing(**case.given, history=history), ["per_gpu"])
    table = HERE.catalog.table
    expected = {
        i
        for i in range(table.count)
        if (offer := table.offer(i)) and case.holds(offer) and (history or not offer.superseded)
    }
    assert set(found.numbers.tolist()) == expected
    assert len(found.numbers) == found.found == len(expected)
    assert found.found + sum(one.count for one in found.left_out) == table.count


@pytest.mark.parametrize("name", CASES)
def test_what_a_test_alone_keeps_out_comes_in_without_it(name):
    """Each change that is named is made, and the offer that it is named for is then listed."""
    given = CASES[name].given
    for one in listed(listing(**given), ["per_gpu"]).left_out:
        assert 0 <= one.alone <= one.count
        assert (one.nearest is None) == (one.alone == 0 or one.reason is Reason.PRICE_INVALID)
        if one.reason is Reason.SUPERSEDED and one.alone:
            assert one.nearest in listed(listing(**given, history=True), ["per_gpu"]).numbers
        if one.reason is Reason.PRICE_ABOVE and one.change:
            loosened = given | {one.change.knob: float(one.change.after)}
            assert one.nearest in listed(listing(**loosened), ["per_gpu"]).numbers


def test_the_words_are_those_that_there_are():
    assert tuple(_SORTS) == SORT_KEYS
    assert tuple(_GROUPS) == GROUP_KEYS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("price", lambda o: price(o)[0]),
        ("per_gpu", lambda o: price(o)[1]),
        ("gpus", lambda o: o.gpus),
        ("memory", sold_gb),
        ("per_gb", lambda o: price(o)[1] / sold_gb(o) if price(o)[1] and sold_gb(o) else None),
        ("seen", lambda o: o.observed_on.toordinal()),
        ("provider", lambda o: o.provider.casefold()),
        ("market", lambda o: o.market),
        ("region", lambda o: o.region.casefold() or None),
        ("card", lambda o: "|".join(o.cards) or None),
    ],
)
@pytest.mark.parametrize("down", [False, True])
def test_order_with_the_unknown_last(key, value, down):
    found = listed(listing(), [f"-{key}" if down else key])
    values = [value(HERE.catalog.table.offer(number)) for number in found.numbers.tolist()]
    known = [each for each in values if each is not None]
    assert values[: len(known)] == known
    if isinstance(known[0], Decimal):
        known = [round(each, 9) for each in known]
    assert known == sorted(known, reverse=down)


def test_the_second_key_decides_among_equals():
    numbers = listed(listing(), ["-gpus", "price"]).numbers.tolist()
    pairs = [(-(o := HERE.catalog.table.offer(n)).gpus, round(price(o)[0], 9)) for n in numbers]
    assert pairs == sorted(pairs)


@pytest.mark.parametrize("by", GROUP_KEYS)
def test_groups_hold_every_offer_once_and_show_their_first(by):
    found = listed(listing(), ["per_gpu"], by)
    whole = listed(listing(), ["per_gpu"])
    assert sum(group.count for group in found.groups) == found.found == whole.found
    order = {number: place for place, number in enumerate(whole.numbers.tolist())}
    places = [order[number] for number in found.numbers.tolist()]
    assert places == sorted(places)
    for group, number in zip(found.groups, found.numbers.tolist(), strict=True):
        assert group.low == pytest.approx(float(price(HERE.catalog.table.offer(number))[1]))
        assert group.low <= group.median <= group.high


def test_lots_are_listed_by_their_offers():
    """A list in lots gives the offers that the plain one does."""
    texts, places, _ = catalog.texts(at=AT)
    reader = Reader(HERE.book.accelerators, places)
    table, _ = table_of_columns(read_texts(texts, reader).columns, HERE.catalog.table.record, HERE.book.rules_of, at=AT)
    assert len(table) < table.count
    for given in ({}, {"seen_since": date(2026, 6, 1), "max_price": 2.0}):
        plain, lots = listed(listing(**given), ["price"]), listed(listing(offers=table, **given), ["price"])
        assert (lots.found, len(lots.numbers)) == (plain.found, len(plain.numbers))
        assert [(one.reason, one.count, one.alone) for one in lots.left_out] == [
            (one.reason, one.count, one.alone) for one in plain.left_out
        ]


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ({"max_price": 0.05}, True),
        ({"max_price_per_gpu": 0.05}, False),
        ({"max_price_per_gpu": 0.7, "limits": Limits(gpus=("h100-sxm5-80",))}, False),
        ({"max_price": 5.0, "limits": Limits(gpus=("h100-sxm5-80",), gpu_counts=(8,))}, True),
        ({"max_price": 500.0, "max_price_per_gpu": 0.05, "limits": Limits(gpus=("a10",))}, False),
    ],
)
def test_the_price_that_would_let_an_offer_in_is_its_own_rounded_up_to_four_digits(given, whole):
    (left_out,) = (one for one in listed(listing(**given), ["per_gpu"]).left_out if one.reason is Reason.PRICE_ABOVE)
    assert left_out.nearest is not None
    assert left_out.change.knob == ("max_price" if whole else "max_price_per_gpu")
    asked = price(HERE.catalog.table.offer(left_out.nearest))[0 if whole else 1]
    after = Decimal(left_out.change.after)
    assert asked * (1 - Decimal("1e-12")) <= after <= asked * Decimal("1.001")
    assert len(after.normalize().as_tuple().digits) <= 4
    assert Decimal(left_out.change.before) == Decimal(str(given[left_out.change.knob]))


@pytest.mark.parametrize("most", [None, 4])
def test_the_number_of_cards_to_ask_for_is_that_of_the_offer(most):
    """The least where the offer has fewer, else the most."""
    given = {"limits": Limits(gpus=("h100-sxm5-80",), max_gpus=most), "min_gpus": 4}
    (left_out,) = (one for one in listed(listing(**given), ["per_gpu"]).left_out if one.reason is Reason.GPU_COUNT)
    offer = HERE.catalog.table.offer(left_out.nearest)
    assert left_out.change.after == str(offer.gpus)
    assert left_out.change.knob == ("min_gpus" if offer.gpus < 4 else "limits.max_gpus")
    eight = listing(limits=Limits(gpus=("h100-sxm5-80",), max_gpus=4, providers=("aws",)), min_gpus=1)
    (above,) = (one for one in listed(eight, ["per_gpu"]).left_out if one.reason is Reason.GPU_COUNT)
    assert (above.change.knob, above.change.after) == ("limits.max_gpus", "8")
