"""Every row of the three lists that the price list was typed from is in it, once."""

import csv
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

LEDGER = Path(__file__).parent / "ledger.csv"


@pytest.fixture(scope="module")
def ledger():
    with LEDGER.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


IDENTITY = ("provider", "name", "region", "market", "observed_on", "source")


def identity(offer):
    return (offer.provider, offer.name, offer.region, offer.market, offer.observed_on.isoformat(), offer.source)


def test_all_716_rows_are_accounted_for(ledger):
    assert Counter(row["list"] for row in ledger) == {"seed": 465, "cn": 115, "committed": 136}
    assert Counter((row["fate"], row["reason"]) for row in ledger) == {
        ("carried", ""): 669,
        ("merged", "same fact as a row of seed"): 13,
        ("merged", "copied from a row of seed"): 34,
    }


def is_priced_as(offer, row):
    price = offer.price_per_hour
    same_price = abs(price.amount / Decimal(row["price_per_hour"]) - 1) < Decimal("2e-4")  # the lists round
    return price.currency == row["currency"] and same_price


def has_cards_of(offer, row):
    cards = 0.5 if "half" in row["card_label"] else float(row["gpus"])
    return offer.gpus * offer.share == pytest.approx(cards, abs=0.001)


def test_each_row_is_one_offer_with_its_price_and_cards(ledger, offers):
    by_identity = {}
    for offer in offers:
        by_identity.setdefault(identity(offer), []).append(offer)
    for row in ledger:
        candidates = by_identity[tuple(row[column] for column in IDENTITY)]
        matches = [offer for offer in candidates if is_priced_as(offer, row) and has_cards_of(offer, row)]
        assert len(matches) == 1, (row, matches)


def test_the_pair_that_the_lists_had_as_a_note_is_there(ledger, offers):
    listed = {tuple(row[column] for column in IDENTITY) for row in ledger}
    added = {(o.provider, o.name, o.region, o.price.amount) for o in offers if identity(o) not in listed}
    assert added >= {("oci", "BM.GPU.A100-v2.8", "us-ashburn-1", Decimal(price)) for price in (32, 40)}
