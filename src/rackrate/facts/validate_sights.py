"""Faults of image_tokens.csv: sizes within reason, and what each rule must say."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.sight_rules import RULES
from rackrate.facts.validate_cells import Check, Known, day, member, missing, whole
from rackrate.facts.validate_rows import Fault, Row

_EVERY: dict[str, tuple[int, int]] = {
    "patch": (1, 64),
    "merge": (1, 16),
    "marks": (0, 64),
    "frames": (1, 16),
    "width": (64, 10**5),
    "feed": (64, 10**6),
    "layers": (1, 1_000),
}
_SOME: dict[str, tuple[int, int]] = {
    "least_pixels": (1, 10**8),
    "most_pixels": (1, 10**9),
    "side": (64, 8192),
    "tokens": (1, 10**5),
    "tiles": (1, 1_000),
    "tiles_a_side": (1, 1_000),
    "least_tiles": (1, 1_000),
    "window": (1, 10**6),
    "full_layers": (1, 1_000),
}
_NEEDED = {"area": ("least_pixels", "most_pixels"), "pool": ("tokens",), "padded": ("most_pixels", "side")}
_NEEDED |= {"one": ("side",), "ended_rows": ("side",), "split": ("side", "tiles_a_side")}
_TILES = ("side", "tiles")


def sights_check(known: Known) -> Check:
    """What is wrong with a family of image_tokens.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from missing(row, "names", *_EVERY, *_NEEDED.get(row["rule"], _TILES))
        yield from member(row, "rule", tuple(RULES), ", ".join(RULES))
        yield from member(row, "gated", ("true", "false"), "false, true")
        for column, bounds in (_EVERY | _SOME).items():
            yield from whole(row, column, *bounds)
        yield from day(row, "seen_at", known.today)

    return check
