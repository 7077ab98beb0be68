import numpy as np
import pytest
from tests.offers.build import offer, prepaid

from rackrate.offers.offer import Offer
from rackrate.offers.rows import OfferRow, table_of_offers
from rackrate.offers.rows import table_of as table_of_rows


def test_an_empty_table():
    empty = table_of_offers([])
    assert len(empty) == 0
    assert empty.records() == ()
    assert empty.in_regions(["us"]).shape == (0,)
    assert empty.price_per_hour.dtype == np.float64


def test_columns_are_codes_into_vocabularies():
    made = table_of_offers([offer(provider="a"), offer(provider="b", gpus=2), offer(provider="a", name="other")])
    assert made.providers == ("a", "b")
    assert made.provider.tolist() == [0, 1, 0]
    assert made.shape_sets == (offer().shapes, offer(gpus=2).shapes)
    assert made.shape_set.tolist() == [0, 1, 0]


def test_prices_are_per_hour_of_the_term():
    month = offer(price="730", term=prepaid("month", 730))
    assert table_of_offers([offer(), month]).price_per_hour.tolist() == [2.0, 1.0]


def test_an_unknown_card_is_the_empty_set_and_still_its_own_thing():
    unknown = [offer(cards=(), card_label=label, name="same") for label in ("X1", "X2")]
    made = table_of_offers(unknown)
    assert made.shape_sets == ((),)
    assert made.superseded.tolist() == [False, False]


def test_surely_leaves_out_what_could_be_another_card(table, offers):
    sure = table.surely("a100-sxm4-80")
    for made, is_it in zip(offers, sure, strict=True):
        assert is_it == (made.cards == ("a100-sxm4-80",))
    assert len(table.records(sure)) == sure.sum() > 0


def test_records_are_made_only_when_asked_for():
    asked: list[int] = []

    def record(index: int) -> Offer:
        asked.append(index)
        return offer(id=str(index), name=str(index))

    rows = [row(str(i), price=1.0 + i) for i in range(20_000)]
    big = table_of_rows(rows, record)
    assert asked == []
    assert big.offer(7).id == "7"
    assert asked == [7]
    assert big.price_per_hour[-1] == pytest.approx(20_000)
    assert not big.superseded.any()


def row(name, price):
    return OfferRow(
        provider="acme",
        name=name,
        product=f"acme/{name}",
        label="A100",
        shapes=offer().shapes,
        gpus=1,
        share=1.0,
        place=("us-1", "US", ("north-america",)),
        market="on_demand",
        currency="USD",
        price_per_term=price,
        term_unit="hour",
        term_hours=1.0,
        prepaid=False,
        minimum_terms=1,
        validity_hours=float("inf"),
        interruptible=False,
        commitment_unknown=False,
        price_is_from=False,
        excludes_host=False,
        day=1,
        dated=True,
    )
