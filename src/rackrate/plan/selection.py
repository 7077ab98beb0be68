"""Selection: the few smallest of very many numbers, in passes that do not sort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Codes = NDArray[np.intp] | NDArray[np.int32]

_STRIDES = 64
"""How many numbers share a minimum; more make the first pass cheaper and let more through."""


def among_smallest(values: Floats, count: int) -> Rows:
    """Where the ``count`` smallest of ``values`` are, and a few more (all where there are no more).

    Of the minima of disjoint parts, the ``count`` smallest are ``count``
    different values: the largest of them is a limit that at least so many keep.
    The parts are strides, since the smallest lie together in a sorted table.
    """
    parts = len(values) // _STRIDES
    if parts > count:
        minima = values[: parts * _STRIDES].reshape(_STRIDES, parts).min(axis=0)
        return np.flatnonzero(values <= np.partition(minima, count - 1)[count - 1])
    if len(values) > count:
        return np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return np.arange(len(values))


def first_smallest(values: Floats, groups: Codes, count: int) -> Rows:
    """Where the smallest value of each of ``count`` groups is, the first of equals; -1 for a group without values."""
    least = np.full(count, np.inf)
    np.minimum.at(least, groups, values)
    found = np.full(count, -1)
    smallest = np.flatnonzero(values == least[groups])[::-1]
    found[groups[smallest]] = smallest
    return found
