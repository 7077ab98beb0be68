"""Faults of image_tokens.csv: sizes within reason, and what each way of seeing must say."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.validate_cells import Check, Known, day, member, missing, whole
from rackrate.facts.validate_rows import Fault, Row

_EVERY: dict[str, tuple[int, int]] = {
    "patch": (1, 64),
    "merge": (1, 16),
    "marks": (0, 64),
    "frames": (1, 16),
    "width": (64, 10**5),
    "feed": (64, 10**6),
}
_RESIZES: dict[str, tuple[int, int]] = {"least_pixels": (1, 10**8), "most_pixels": (1, 10**9)}
_FIXED: dict[str, tuple[int, int]] = {"side": (64, 8192), "tokens": (1, 10**5)}


def sights_check(known: Known) -> Check:
    """What is wrong with a family of image_tokens.csv."""

    def check(row: Row) -> Iterator[Fault]:
        needed = _RESIZES if row["resizes"] == "true" else _FIXED
        yield from missing(row, "names", *_EVERY, *needed)
        yield from member(row, "resizes", ("true", "false"), "false, true")
        for column, bounds in (_EVERY | _RESIZES | _FIXED | {"tower_params": (10**6, 10**11)}).items():
            yield from whole(row, column, *bounds)
        yield from day(row, "seen_at", known.today)

    return check
