"""The few smallest of many are among those that are selected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.plan.selection import among_smallest, first_smallest


@pytest.mark.parametrize("length", [0, 1, 5, 63, 64, 500, 5_000, 64_001])
@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal"])
def test_the_smallest_are_among_the_selected(length: int, count: int, order: str) -> None:
    values = np.random.default_rng(length).random(length)
    values = {"random": values, "ascending": np.sort(values), "descending": -np.sort(-values)}.get(order, values * 0)
    found = among_smallest(values, count)
    assert sorted(values[found])[:count] == sorted(values)[:count]
    assert order == "equal" or len(found) <= max(64 * count, length // 8)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.5, 1.0, 2.0])), max_size=30))
def test_the_first_of_the_smallest_of_each_group(pairs: list[tuple[int, float]]) -> None:
    groups = np.array([group for group, _ in pairs], dtype=np.int32)
    values = np.array([value for _, value in pairs])
    expected = []
    for group in range(6):
        mine = [(value, place) for place, (other, value) in enumerate(pairs) if other == group]
        expected.append(min(mine)[1] if mine else -1)
    assert first_smallest(values, groups, 6).tolist() == expected
