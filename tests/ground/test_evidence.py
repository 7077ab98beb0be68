"""Ranges and unknowns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.evidence import Range, Unknown, add_independent, envelope, known, multiply_independent

positive = st.floats(min_value=1e-3, max_value=1e12)


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, likely, high = sorted(draw(st.tuples(positive, positive, positive)))
    return Range(low, likely, high)


def test_a_range_must_be_ordered() -> None:
    with pytest.raises(ValueError, match="ordered"):
        Range(2, 1, 3)
    with pytest.raises(ValueError, match="ordered"):
        Range(math.nan, 1, 3)


@given(st.lists(ranges(), min_size=1, max_size=8))
def test_independent_parts_add_narrower_than_their_ends(parts: list[Range]) -> None:
    result = add_independent(parts)
    assert result.likely == pytest.approx(sum(p.likely for p in parts))
    assert result.high <= sum(p.high for p in parts) * (1 + 1e-9)
    assert result.low >= sum(p.low for p in parts) - 1e-9 * result.likely


@given(ranges(), ranges())
def test_products_stay_ordered_and_keep_the_likely_product(left: Range, right: Range) -> None:
    assert multiply_independent(left, right).likely == pytest.approx(left.likely * right.likely)


def test_exact_parts_leave_no_doubt() -> None:
    assert add_independent([Range.exact(2), Range.exact(3)]) == Range.exact(5)


@given(ranges())
def test_a_time_is_the_inverse_of_a_speed(speed: Range) -> None:
    time = speed.inverse(10)
    assert (time.low, time.high) == (10 / speed.high, 10 / speed.low)


def test_an_envelope_covers_every_alternative() -> None:
    assert envelope([Range(1, 2, 3), Range(4, 6, 9)]) == Range(1, 4, 9)
    with pytest.raises(ValueError, match="at least one"):
        envelope([])


def test_an_unknown_says_why() -> None:
    with pytest.raises(ValueError, match="nobody measured it"):
        known(Unknown("nobody measured it"))
    assert known(3) == 3


def test_relative_widths_of_a_product_combine_as_roots_of_squares() -> None:
    """3 and 4 in a hundred below make 5, 6 and 8 above make 10."""
    product = multiply_independent(Range(97, 100, 106), Range(9.6, 10, 10.8))
    assert (product.low, product.likely, product.high) == pytest.approx((950, 1000, 1100))


def test_a_product_of_wide_factors_is_not_below_nothing() -> None:
    assert multiply_independent(Range(1, 10, 20), Range(1, 10, 20)).low == 0


def test_a_product_with_nothing_is_nothing_at_the_likely_end() -> None:
    assert multiply_independent(Range(0, 0, 2), Range(1, 2, 3)) == Range(0, 0, 6)
