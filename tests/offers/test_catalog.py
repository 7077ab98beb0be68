import shutil
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from rackrate.money import Money
from rackrate.offers import catalog
from rackrate.offers.rows import table_of_offers
from rackrate.offers.table import OfferTable
from rackrate.problems import Code


def one(offers, provider, name, market=None, region=None):
    found = [
        offer
        for offer in offers
        if (offer.provider, offer.name) == (provider, name)
        and market in (None, offer.market)
        and region in (None, offer.region)
    ]
    assert len(found) == 1, found
    return found[0]


def test_the_bundled_list_reads_without_a_finding(loaded):
    assert loaded.findings == ()
    lines = (path.read_text("utf-8").count("\n") - 1 for path in catalog.DATA.glob("offers-*.csv"))
    assert len(loaded.table) == sum(lines) > 0
    assert len(loaded.digest) == 64


def test_ids_are_unique(offers):
    assert len({offer.id for offer in offers}) == len(offers)


def test_prices_stay_in_the_currency_and_term_of_the_source(offers):
    t4 = one(offers, "aliyun", "ecs.gn6i-c4g1.xlarge", "monthly_package")
    assert t4.price == Money(Decimal(1774), "CNY")
    assert (t4.term.unit, t4.term.hours, t4.term.prepaid) == ("month", 730, True)
    server = one(offers, "smm-quote", "8x H100 80GB server")
    assert (server.price, server.term.hours) == (Money(Decimal(76000), "CNY"), 720)
    assert server.minimum_terms == 12  # about one year
    reserved = one(offers, "aws", "p4d.24xlarge", "reserved_1y")
    assert reserved.price.amount == Decimal("121948.7834")
    assert reserved.price_per_hour.amount.quantize(Decimal("1e-6")) == Decimal("13.921094")


def test_a_credit_pack_is_a_quantity_of_card_hours_not_a_month(offers):
    pack = one(offers, "AladdinEdu", "初级版 270 DCU, DC100(Hopper) 80G")
    assert (pack.term.unit, pack.term.hours, pack.validity_days) == ("credit_pack", Decimal("105.46875"), 30)


def test_a_slice_is_one_card_with_a_share_and_the_whole_cards_memory(offers):
    sixth = one(offers, "azure", "Standard_NV6ads_A10_v5", region="eastus")
    assert (sixth.gpus, sixth.share, sixth.memory_sold_gb, sixth.cards) == (1, 1 / 6, 24, ("a10",))
    eighth = one(offers, "aws", "g6f.large")
    assert (eighth.gpus, eighth.share, eighth.cards) == (1, 0.125, ("l4",))
    assert sixth.shapes[0].share == 1 / 6


@pytest.mark.parametrize(
    ("provider", "name", "market", "expected"),
    [
        ("gcp", "nvidia-tesla-t4 (GPU add-on only)", "spot", ("host",)),
        ("tensordock", "L4 (starting price)", None, ("host", "disk")),
        ("cudo", "ice-lake-a40-compute_2x16v32gb", None, ("disk", "ip")),
        ("tencent", "GN10X.9XLARGE160", None, ("disk", "traffic")),
        ("aliyun", "ecs.gn8is.2xlarge", "on_demand", ("traffic",)),
    ],
)
def test_what_the_source_says_is_extra_is_excluded(offers, provider, name, market, expected):
    assert one(offers, provider, name, market).excludes == expected


def test_disk_in_the_price_is_counted_in_bytes_of_ten_to_the_ninth(offers):
    assert one(offers, "aliyun", "ecs.gn8is.2xlarge", "on_demand").includes_disk_gb * 10**9 == 100 * 2**30


def test_flags(offers):
    headline = one(offers, "paperspace", "H100 (headline)")
    assert headline.commitment_unknown
    assert not headline.term.prepaid
    hyperstack = one(offers, "hyperstack", "L40 PCIe per GPU", "reserved_from")
    assert hyperstack.commitment_unknown
    assert hyperstack.price_is_from
    claimed = one(offers, "coreweave", "H100 reserved 1y")
    assert (claimed.commitment_unknown, claimed.minimum_terms, claimed.term.prepaid) == (False, 8760, True)
    assert one(offers, "thundercompute", "A6000 prototyping").virtual_gpu
    assert one(offers, "晨涧云", "A800 80GB").term.prepaid  # by the hour, in advance
    assert all(offer.interruptible == (offer.market == "spot") for offer in offers)


def test_an_ambiguous_card_keeps_all_that_it_can_be(table, offers):
    a100 = one(offers, "智星云", "A100")
    assert a100.cards == ("a100-pcie-40", "a100-pcie-80", "a100-sxm4-40", "a100-sxm4-80")
    assert [f.code for f in a100.findings if f.code is Code.AMBIGUOUS_CARD]
    row = [offer.id for offer in offers].index(a100.id)
    assert table.shape_sets[table.shape_set[row]] == a100.shapes


def test_unknown_cards_are_kept_and_said_to_be_unknown(offers):
    unknown = [offer for offer in offers if not offer.cards]
    assert {offer.card_label for offer in unknown} == {"Radeon Pro V520", "H-class (DC100)", "H-class (DC100, half)"}
    assert all(Code.UNKNOWN_CARD in {f.code for f in offer.findings} for offer in unknown)


def test_columns_and_records_say_the_same(book, table, offers):
    again = table_of_offers(offers, book.rules_of)
    columns = set(OfferTable.__struct_fields__) - {"record"}
    for name in sorted(columns):
        left, right = getattr(table, name), getattr(again, name)
        if isinstance(left, np.ndarray):
            assert np.array_equal(left, right, equal_nan=left.dtype.kind == "f"), name
        else:
            assert left == right, name


def test_a_bad_line_becomes_a_finding_and_sinks_nothing(book, tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "offers-clouds.csv"
    header, first, second, *_ = path.read_text("utf-8").splitlines()
    broken = first.replace(",USD,hour,", ",USD,hour,x", 1)
    assert broken != first
    path.write_text(f"{header}\n{broken}\n{second}\ntoo,short", "utf-8")
    loaded = catalog.load(book, data=tmp_path / "data")
    assert [(f.code, f.subject) for f in loaded.findings] == [
        (Code.BAD_VALUE, "offers-clouds.csv:2"),
        (Code.BAD_VALUE, "offers-clouds.csv:4"),
    ]
    assert second.split(",")[1] in {offer.name for offer in loaded.table.records()}


def test_a_file_with_other_columns_is_refused_whole(book, tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "offers-clouds.csv"
    path.write_text(path.read_text("utf-8").replace("provider,", "vendor,", 1), "utf-8")
    loaded = catalog.load(book, data=tmp_path / "data")
    assert [(f.code, f.subject) for f in loaded.findings] == [(Code.BAD_SYNTAX, "offers-clouds.csv:1")]
    assert "verda" not in loaded.table.providers


def test_the_digest_follows_the_files(book, loaded, tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    assert catalog.load(book, data=tmp_path / "data").digest == loaded.digest
    path = tmp_path / "data" / "regions.csv"
    path.write_text(path.read_text("utf-8") + "vast,Norway,NO,europe\n", "utf-8")
    assert catalog.load(book, data=tmp_path / "data").digest != loaded.digest


def test_meters_come_from_the_rules_of_the_provider_and_the_product(table, offers):
    meters = {
        offer.id: (table.granularity_s[i], table.minimum_s[i], bool(table.meter_known[i]))
        for i, offer in enumerate(offers)
    }
    assert meters[one(offers, "aws", "g5.xlarge", "on_demand").id] == (1, 60, True)
    assert meters[one(offers, "lambda", "gpu_1x_a10").id] == (60, 0, True)
    assert meters[one(offers, "scaleway", "H100-1-80G").id] == (60, 0, True)
    assert meters[one(offers, "scaleway", "RENDER-S").id] == (3600, 0, True)
    assert meters[one(offers, "oci", "BM.GPU4.8").id] == (3600, 0, False)


def test_before_october_2025_scaleway_had_a_minimum_of_an_hour(book):
    before = catalog.load(book, at=date(2025, 9, 1)).table
    rows = [i for i, offer in enumerate(before.records()) if offer.name == "H100-1-80G"]
    assert before.minimum_s[rows].tolist() == [3600]
    assert before.minimum_once[rows].all()


@pytest.fixture
def copied(book, tmp_path):
    """A copy of the price lists; the file of the clouds is written anew by what is called."""
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "offers-clouds.csv"

    def write(change):
        path.write_bytes(change(path.read_bytes()))
        return catalog.load(book, data=tmp_path / "data", at=date(2026, 11, 30))

    return write


def test_a_byte_order_mark_and_other_line_ends_change_nothing(copied, loaded):
    read = copied(lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    assert read.findings == ()
    assert read.table.records() == loaded.table.records()


def test_a_file_that_is_not_utf8_is_told_and_sinks_no_other(copied):
    read = copied(lambda content: content.replace(b"provider", b"\xff\xfe", 1))
    assert [(f.code, f.subject) for f in read.findings] == [(Code.FILE_UNREADABLE, "offers-clouds.csv")]
    assert "aws" in read.table.providers


def test_a_quote_left_open_ends_with_its_line(copied, loaded):
    def spoil(content):
        header, first, *rest = content.split(b"\n")
        return b"\n".join([header, b'"' + first, *rest])

    read = copied(spoil)
    assert [f.subject for f in read.findings] == ["offers-clouds.csv:2"]
    assert len(read.table) == len(loaded.table) - 1


def cell(column, value):
    """Write ``value`` into a column of the first line; the line has no quotes."""

    def change(content):
        header, first, *rest = content.decode().split("\n")
        cells = first.split(",")
        assert len(cells) == len(catalog.Record._fields)
        cells[catalog.Record._fields.index(column)] = value
        return "\n".join([header, ",".join(cells), *rest]).encode()

    return change


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("observed_on", "20261101"),
        ("observed_on", "2026-W44-1"),
        ("observed_on", "1.11.2026"),
        ("price", "1e999"),
        ("gpus", "0"),
        ("gpus", "-1"),
        ("share", "3/2"),
        ("share", "0"),
        ("hours_in_term", "0"),
        ("hours_in_term", "nan"),
        ("vcpus", "few"),
        ("host_memory_gb", "much"),
    ],
)
def test_a_cell_that_no_offer_could_be_made_of_is_told(copied, loaded, column, value):
    read = copied(cell(column, value))
    assert [(f.code, f.subject) for f in read.findings] == [(Code.BAD_VALUE, "offers-clouds.csv:2")]
    assert len(read.table.records()) == len(loaded.table) - 1


def test_the_texts_are_those_of_the_lines(loaded):
    texts, _, findings = catalog.texts(at=date(2026, 11, 30))
    lines = [row for rows in catalog.listed().values() for row in rows]
    assert findings == ()
    assert len(loaded.table) == len(lines)
    for field, column in texts.items():
        assert [column.words[code] for code in column.codes.tolist()] == [line[field] for line in lines]


def test_a_line_of_regions_that_is_none_is_told(book, tmp_path):
    shutil.copytree(catalog.DATA, tmp_path / "data")
    path = tmp_path / "data" / "regions.csv"
    path.write_text(path.read_text("utf-8") + "vast,Norway,NO\n", "utf-8")
    assert [f.subject.partition(":")[0] for f in catalog.load(book, data=tmp_path / "data").findings] == ["regions.csv"]
