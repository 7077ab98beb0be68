"""A file of columns holds the price lists that it was written from."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from rackrate.facts.book import FactBook
from rackrate.offers import catalog, column_file
from rackrate.offers.arrays import coded
from rackrate.offers.columns import Coded
from rackrate.offers.price_list import Reader, Record, ids_of
from rackrate.offers.table import FLAGS, OfferTable
from rackrate.offers.texts import PackedWords, nth_of_base, pack, read_texts
from rackrate.problems import Code, Refused
from rackrate.values import replace

AT = date(2026, 11, 30)
COLUMNS = ("gpus", "share", "prepaid", "granularity_s", "minimum_s", "meter_known", *FLAGS)


@pytest.fixture(scope="module")
def bundled(book: FactBook) -> OfferTable:
    return catalog.load(book, at=AT).table


@pytest.fixture(scope="module")
def path(book: FactBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "offers.columns"
    assert column_file.write(path, *catalog.texts(at=AT)[:2], book) == ()
    return path


def texts_of(lines):
    columns = zip(*lines, strict=True)
    return {field: Coded(*coded(column)) for field, column in zip(Record._fields, columns, strict=True)}


def test_every_bundled_offer_comes_back_with_its_columns_and_its_record(book, bundled, path):
    table, digest = column_file.read(path, book, at=AT)
    assert len(digest) == 64
    assert table.count == len(bundled)
    place = {bundled.record(i).id: i for i in range(len(bundled))}
    for number in range(table.count):
        offer = table.offer(number)
        assert in_any_order(offer) == in_any_order(bundled.offer(place[offer.id]))
        entry = table.lots.entry(number)
        for name in COLUMNS:
            assert getattr(table, name)[entry] == getattr(bundled, name)[place[offer.id]], name
        assert table.shape_sets[table.shape_set[entry]] == offer.shapes


def in_any_order(offer):
    """The offer, with what observations of one thing say in no order."""
    sorted_parts = [
        replace(f, observed="; ".join(sorted(f.observed.split("; "))), source="; ".join(sorted(f.source.split("; "))))
        for f in offer.findings
    ]
    return replace(offer, findings=tuple(sorted_parts))


def test_words_are_made_when_asked_for_and_are_the_words():
    words = PackedWords(*pack(["", "a", "显卡", "", "RTX 4090"]))
    assert list(words) == ["", "a", "显卡", "", "RTX 4090"]
    assert (words[-1], words[1:3], len(words)) == ("RTX 4090", ["a", "显卡"], 5)
    assert "显卡" in words
    with pytest.raises(IndexError):
        words[5]


def test_lines_that_would_be_called_the_same_are_told_apart_as_in_the_list():
    lines = [list(line) for line in catalog_lines()[:200]]
    lines += [list(lines[0]), list(lines[7]), list(lines[0])]
    texts = texts_of(lines)
    nth = nth_of_base(texts).tolist()
    assert [n + 1 for n in nth] == [int([*name.split("~"), "1"][1]) for name in ids_of(lines)]


def catalog_lines():
    texts, _, _ = catalog.texts()
    count = len(texts["price"].codes)
    return [[texts[f].words[texts[f].codes[i]] for f in Record._fields] for i in range(count)]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("price", "cheap"),
        ("price", "0.1234567890123456"),
        ("gpus", "one"),
        ("share", "1/none"),
        ("memory_gb", "80 GB"),
        ("hours_in_term", ""),
        ("prepaid", "yes"),
        ("minimum_terms", "1.5"),
        ("validity_days", "never"),
        ("includes_disk_gb", "some"),
        ("observed_on", "yesterday"),
    ],
)
def test_a_bad_line_is_a_finding_and_never_sinks_the_rest(book, field, text):
    lines = [list(line) for line in catalog_lines()[:20]]
    lines[3][Record._fields.index(field)] = text
    read = read_texts(texts_of(lines), Reader(book.accelerators, {}))
    assert len(read.columns.price_per_term) == 19
    assert [(f.code, f.subject) for f in read.findings] == [(Code.BAD_VALUE, f"{field}, 1 lines")]


def test_the_same_list_makes_the_same_file(book, path, tmp_path):
    column_file.write(tmp_path / "again", *catalog.texts(at=AT)[:2], book)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert [found.name for found in tmp_path.iterdir()] == ["again"]


def test_a_file_of_other_facts_is_refused(book, path):
    with pytest.raises(Refused) as refused:
        column_file.read(path, replace(book, digest="other"), at=AT)
    assert refused.value.findings[0].code is Code.CONFLICT


def test_prices_that_nobody_had_seen_that_day_are_refused_and_can_be_left_out(book, path, tmp_path):
    day = date(2026, 6, 30)
    with pytest.raises(Refused) as refused:
        column_file.read(path, book, at=day)
    assert refused.value.findings[0].code is Code.CONFLICT
    column_file.write(tmp_path / "june", *catalog.texts(at=day)[:2], book)
    table, _ = column_file.read(tmp_path / "june", book, at=day)
    assert table.count == len(catalog.load(book, at=day).table)


@pytest.mark.parametrize("keep", [0, 4, 100, 5000, -64])
def test_a_broken_file_is_refused(book, path, tmp_path, keep):
    broken = tmp_path / "broken"
    broken.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(Refused) as refused:
        column_file.read(broken, book)
    assert refused.value.findings[0].code is Code.FILE_UNREADABLE


def test_a_file_that_is_not_there_is_refused(book, tmp_path):
    with pytest.raises(Refused):
        column_file.read(tmp_path / "none", book)


def test_an_empty_list_is_a_table_of_nothing(book, tmp_path):
    texts, places, _ = catalog.texts()
    nothing = {field: Coded(column.words, column.codes[:0]) for field, column in texts.items()}
    assert column_file.write(tmp_path / "empty", nothing, places, book) == ()
    table, _ = column_file.read(tmp_path / "empty", book, at=AT)
    assert (len(table), table.count, table.sizes.tolist()) == (0, 0, [])
    assert table.up_to(np.zeros(0, dtype=np.intp), np.zeros(0)).tolist() == []
