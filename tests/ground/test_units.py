"""Units: what is parsed and printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200 GB", 200e9), ("48GiB", 48 * 2**30), ("1.5 tib", 1.5 * 2**40), ("512", 512), ("46,068 MiB", 46068 * 2**20)],
)
def test_bytes_are_parsed_with_decimal_and_binary_units_apart(text: str, expected: float) -> None:
    assert units.parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("36 h", 36), ("2 days", 48), ("90 min", 1.5), ("1 week", 168), ("7", 7), ("30 s", 30 / 3600), ("2 hours", 2)],
)
def test_hours_are_parsed(text: str, expected: float) -> None:
    assert units.parse_hours(text) == pytest.approx(expected)


@pytest.mark.parametrize(("text", "expected"), [("30M", 30e6), ("1.5B", 1.5e9), ("3e7", 3e7), ("2_000", 2000)])
def test_counts_are_parsed(text: str, expected: float) -> None:
    assert units.parse_count(text) == pytest.approx(expected)


@pytest.mark.parametrize("parse", [units.parse_bytes, units.parse_hours, units.parse_count])
@pytest.mark.parametrize("text", ["", "GB", "12 parsecs", "-3 GB", "1..2", "nan", "inf"])
def test_nonsense_is_refused(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match=r"unit|number"):
        parse(text)


@given(st.floats(min_value=0, max_value=1e16))
def test_printed_bytes_read_back_within_rounding(count: float) -> None:
    printed = units.format_bytes(count, digits=6)
    assert units.parse_bytes(printed) == pytest.approx(count, rel=1e-4, abs=1)


def test_hours_are_printed_in_the_unit_a_person_would_use() -> None:
    assert [units.format_hours(h) for h in (0.001, 0.5, 5.25, 100)] == ["4 s", "30 min", "5.2 h", "4.2 days"]


def test_counts_are_printed_short() -> None:
    assert [units.format_count(c) for c in (512, 30e6, 13.0e9, 1.5e12)] == ["512", "30M", "13B", "1.5T"]


@pytest.mark.parametrize(
    ("count", "printed"),
    [
        (1023, "1,023 B"),
        (0.9995 * units.KIB, "1.0 KiB"),
        (0.9994 * units.KIB, "1,023 B"),
        (0.9995 * units.GIB, "1.0 GiB"),
        (0.9994 * units.GIB, "1,023.4 MiB"),
        (-2 * units.TIB, "-2.0 TiB"),
        (0, "0 B"),
    ],
)
def test_bytes_change_their_unit_where_they_round_to_one(count: float, printed: str) -> None:
    assert units.format_bytes(count) == printed


@pytest.mark.parametrize(("count", "printed"), [(999, "999"), (999.5, "1k"), (999.4, "999"), (999_500, "1M")])
def test_counts_change_their_unit_where_they_round_to_one(count: float, printed: str) -> None:
    assert units.format_count(count) == printed
