"""Drops: where nothing is listed, each filter that would let something in if it alone were not asked for."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.plan.listing import Listing, listed
from rackrate.values import Value, replace
from rackrate.workload.workload import Limits

_ANY_OF = ("gpus", "vendors", "gpu_counts", "max_gpus", "providers", "exclude_providers", "regions", "markets")
_ALL_OF = ("require", "access")
_OWN = {"min_gpus": None, "max_price": None, "max_price_per_gpu": None, "currencies": (), "seen_since": None}


class Drop(Value, frozen=True, kw_only=True):
    """A filter (``knob``) and what of it is asked for; without it ``found`` offers are listed, ``first`` the first."""

    knob: str
    asked: str
    found: int
    first: int


def drops(listing: Listing) -> list[Drop]:
    """The filters that would let something in, the one that lets most in first."""
    tried = [(knob, asked, listed(other, ["per_gpu"])) for knob, asked, other in _without_one(listing)]
    found = [
        Drop(knob=knob, asked=asked, found=answer.found, first=int(answer.numbers[0]))
        for knob, asked, answer in tried
        if answer.found
    ]
    return sorted(found, key=lambda drop: -drop.found)


def _without_one(listing: Listing) -> Iterator[tuple[str, str, Listing]]:
    """The same list without one filter; of those that must all hold without one of their parts."""
    limits, free = listing.limits, Limits()
    for name in _ANY_OF:
        asked = getattr(limits, name)
        if asked != getattr(free, name):
            yield (
                f"limits.{name}",
                _written(asked),
                replace(listing, limits=replace(limits, **{name: getattr(free, name)})),
            )
    for name in _ALL_OF:
        parts = getattr(limits, name)
        for part in parts:
            rest = tuple(other for other in parts if other != part)
            yield f"limits.{name}", part, replace(listing, limits=replace(limits, **{name: rest}))
    for name, nothing in _OWN.items():
        asked = getattr(listing, name)
        if asked != nothing:
            yield name, _written(asked), replace(listing, **{name: nothing})


def _written(asked: object) -> str:
    if isinstance(asked, tuple):
        return ", ".join(map(str, asked))
    return f"{asked:g}" if isinstance(asked, float) else str(asked)
