"""Lots: the offers behind the entries of a very long table."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from rackrate.offers.arrays import Codes, Floats
from rackrate.values import Value


class Lots(Value, frozen=True, kw_only=True, eq=False):
    """The offers behind a table's entries, where an entry stands for several that differ in nothing a plan asks.

    They can differ in price, product, name and date. Offers are numbered by
    entry, then from the cheapest up, of one price the newest first; ``first``
    has the number of each entry's first offer and, last, how many there are.
    ``by_thing`` has the numbers of the offers in order of ``thing``.
    """

    first: Codes
    price_per_hour: Floats
    thing: Codes
    by_thing: Codes
    observed_day: Codes

    def entry(self, number: int) -> int:
        """The entry that the offer ``number`` belongs to."""
        return bisect_right(self.first, number) - 1

    def up_to(self, entries: NDArray[np.intp], price: Floats) -> NDArray[np.intp]:
        """How many offers of each of ``entries`` have at most that ``price`` per hour (a bisection of all at once)."""
        first, after = self.first[entries].astype(np.intp), self.first[entries + 1].astype(np.intp)
        within = self.price_per_hour[after - 1] <= price
        counts = np.where(within, after - first, 0)
        open_ = np.flatnonzero(~within & (after - first > 1))
        low, high = first[open_], after[open_] - 1
        while (searching := low < high).any():
            middle = (low + high) // 2
            within = searching & (self.price_per_hour[middle] <= price[open_])
            low, high = np.where(within, middle + 1, low), np.where(searching & ~within, middle, high)
        counts[open_] = low - first[open_]
        return counts

    def same_thing(self, number: int) -> list[int]:
        """The numbers of all observations of the thing that ``number`` is one of."""
        code = int(self.thing[number])
        begin, end = (find(self.by_thing, code, key=self.thing.__getitem__) for find in (bisect_left, bisect_right))
        found: list[int] = self.by_thing[begin:end].tolist()
        return sorted(found)
