"""What the columns of price lists are: arrays of numbers, truths and codes into vocabularies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rackrate.facts.billing import BillingRules

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Place = tuple[str, str, tuple[str, ...]]
"""A region as sold, its country (ISO 3166 alpha-2, empty when unknown) and its groups of countries."""

RulesOf = Callable[[str], BillingRules]
K = TypeVar("K")


def coded(values: Sequence[K]) -> tuple[tuple[K, ...], Codes]:
    """A vocabulary in order of first use, and a code per value."""
    codes: dict[K, int] = {}
    column = np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int32)
    return tuple(codes), column
