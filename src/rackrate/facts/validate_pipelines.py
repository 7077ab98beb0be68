"""Faults of pipelines.csv: sizes within reason, and a denoiser of the same id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackrate.facts.cells import is_whole
from rackrate.facts.validate_cells import Check, Known, day, member, missing, parsed, whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code

VAES = frozenset({"kl", "cogvideox", "hunyuan", "wan", "wan-residual", "ltx", "mochi"})
WIDENS = frozenset({"", "fp16", "16bit"})
WHOLE: Mapping[str, tuple[int, int]] = {
    "text_width": (1, 10**5),
    "text_feed": (1, 10**6),
    "text_table": (1, 10**10),
    "vae_params": (10**5, 10**11),
    "vae_tile": (64, 8_192),
}


def pipelines_check(known: Known) -> Check:
    """What is wrong with a pipeline of pipelines.csv."""

    def check(row: Row) -> Iterator[Fault]:
        if row["id"] not in known.models:
            yield Fault(Code.UNKNOWN_NAME, "id", row["id"], "an id of models.csv", "add the model or mend the spelling")
        yield from missing(row, *WHOLE)
        for column, bounds in WHOLE.items():
            yield from whole(row, column, *bounds)
        if row["id"] not in known.denoisers:
            yield Fault(Code.UNKNOWN_NAME, "id", row["id"], "an id of denoisers.csv", "add the shape of its denoiser")
        yield from member(row, "vae", VAES, ", ".join(sorted(VAES)))
        yield from member(row, "vae_widens", WIDENS, "fp16, 16bit or empty")
        for column in ("denoiser_params", "text_params", "vae_widths"):
            yield from parsed(row, column, _wholes, "whole numbers with | between")
        yield from day(row, "seen_at", known.today)

    return check


def _wholes(text: str) -> tuple[int, ...]:
    parts = text.split("|")
    if not all(is_whole(part) and int(part) > 0 for part in parts):
        raise ValueError(text)
    return tuple(map(int, parts))
