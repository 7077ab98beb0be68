from decimal import Decimal

import pytest
from tests.offers.build import offer, prepaid

from rackrate.offers.gates import DOUBTS, list_findings, memory_fault, row_findings
from rackrate.offers.rows import table_of_offers
from rackrate.problems import Code, Severity


def suspects(findings):
    return [f.observed for f in findings if f.code is Code.PRICE_SUSPECT]


@pytest.mark.parametrize("price", ["0", "-1", "NaN", "Infinity"])
def test_a_price_that_is_no_positive_number_is_an_error_and_not_priced(book, price):
    made = offer(price=price)
    found = row_findings(made, book.accelerators)
    assert [f.severity for f in found] == [Severity.ERROR]
    assert not table_of_offers([made]).priced.any()


def test_a_sound_offer_shows_nothing(book):
    assert row_findings(offer(memory_sold_gb=80.0), book.accelerators) == ()
    assert table_of_offers([offer()]).priced.all()


def test_a_gpu_without_its_host_and_a_commitment_of_unknown_length_are_said(book):
    assert suspects(row_findings(offer(excludes=("host",)), book.accelerators)) == [
        "the price is of the GPU without its host"
    ]
    assert suspects(row_findings(offer(commitment_unknown=True), book.accelerators)) == [
        "the price needs a commitment of unknown length"
    ]


def test_doubts_of_the_source_are_said(book):
    found = row_findings(offer(doubts=("currency_unverified", "approximate")), book.accelerators)
    assert [(f.severity, f.observed) for f in found] == [DOUBTS["currency_unverified"], DOUBTS["approximate"]]


def test_scaleway_and_seeweb_numbers_are_suspect_in_currency_and_kept_as_seen(offers):
    doubtful = [o for o in offers if DOUBTS["currency_unverified"][1] in suspects(o.findings)]
    assert {o.provider for o in doubtful} == {"scaleway", "seeweb"}
    assert {o.price.currency for o in doubtful} == {"USD"}


@pytest.mark.parametrize(
    ("memory", "gpus", "fault"),
    [
        (80.0, 8, ""),
        (84.0, 1, ""),
        (640.0, 8, "is of all cards"),  # skypilot-catalog v8, Vast
        (80 * 64, 8, "is multiplied by the count twice"),  # 5,242,880 MiB, Prime Intellect
        (80 / 1024, 1, "is in the wrong unit"),  # SizeInMiB: 80, RunPod
        (81920.0, 1, "is in the wrong unit"),
        (81920.0 * 8, 8, "is in the wrong unit and of all cards"),
        (0.0, 1, "is missing"),  # Seeweb RTX PRO 6000
        (None, 1, ""),
        (24.0, 1, "is of no such card (80 GB)"),
    ],
)
def test_memory_faults(memory, gpus, fault):
    assert memory_fault(offer(memory_sold_gb=memory, gpus=gpus), [80.0]) == fault


def test_a_memory_fault_is_told_from_an_unknown_card(book):
    wrong = offer(cards=(), card_label="H100", memory_sold_gb=640.0, gpus=8)
    found = row_findings(wrong, book.accelerators)
    assert suspects(found) == ["H100, 640 GB: memory is of all cards"]
    assert Code.UNKNOWN_CARD in {f.code for f in found}


def test_an_ambiguous_card_lists_what_it_can_be(book):
    made = offer(cards=("a100-pcie-80", "a100-sxm4-80"), memory_sold_gb=80.0)
    (found,) = row_findings(made, book.accelerators)
    assert (found.code, found.severity) == (Code.AMBIGUOUS_CARD, Severity.INFO)
    assert "a100-pcie-80" in found.action


def findings_of(*offers):
    return list_findings(table_of_offers(offers))


def spot(price, **changes):
    return offer(id="spot", price=price, market="spot", interruptible=True, **changes)


@pytest.mark.parametrize(("price", "is_suspect"), [("0.86", True), ("0.43", True), ("0.42", False)])
def test_spot_is_cheaper_than_on_demand(price, is_suspect):
    """RunPod's L40S: spot 0.86, on demand 0.43 (columns swapped)."""
    found = findings_of(offer(price="0.43"), spot(price))
    assert [f.subject for f in found] == ["spot"] * is_suspect


@pytest.mark.parametrize("change", [{"region": "us-2"}, {"name": "other"}, {"provider": "other"}, {"gpus": 2}])
def test_spot_of_another_machine_is_not_compared(change):
    assert findings_of(offer(price="0.43"), spot("0.86", **change)) == ()


def test_a_package_is_no_price_on_demand():
    assert findings_of(offer(price="100", term=prepaid("month", 730)), spot("0.86")) == ()


@pytest.mark.parametrize(("price", "is_suspect"), [("9", True), ("10", False), ("20", False)])
def test_eight_cards_do_not_cost_less_than_four(price, is_suspect):
    found = findings_of(offer(price="10", gpus=4), offer(id="eight", price=price, gpus=8, name="x8"))
    assert [f.subject for f in found] == ["eight"] * is_suspect


def test_more_cards_are_compared_with_the_cheapest_machine_of_fewer():
    four, dear_four = offer(price="10", gpus=4), offer(price="30", gpus=4, name="big host")
    assert findings_of(four, dear_four, offer(price="20", gpus=8, name="x8")) == ()


def test_an_auctions_floor_is_far_below_the_others():
    """Mithril in a public catalog: 8 x H200 at 8.00 per hour, others about 4 per card."""
    others = [offer(price=p, gpus=8, provider=f"p{p}") for p in ("28", "32", "34", "40")]
    found = findings_of(*others, offer(id="floor", price="7.9", gpus=8, provider="auction"))
    assert [f.subject for f in found] == ["floor"]
    floor = offer(id="floor", price="1", gpus=8, provider="auction")
    assert [f.subject for f in findings_of(*others[:3], floor)] == ["floor"]
    assert findings_of(*others[:2], floor) == ()  # a median of three says little


def test_superseded_and_unpriced_rows_are_not_compared():
    assert findings_of(offer(price="0"), spot("1")) == ()


def test_the_bundled_list_has_no_swapped_columns_or_counts(table):
    seen = [f for f in list_findings(table) if "per card" not in f.observed]
    assert seen == []


def test_far_below_on_the_bundled_list_is_marketplaces_and_old_catalogs(table, offers):
    found = {f.subject for f in list_findings(table)}
    by_id = {o.id: o for o in offers}
    assert {by_id[i].provider for i in found} <= {"vast", "tensordock", "lium", "verda"}
    assert all(by_id[i].price.amount > Decimal(0) for i in found)
