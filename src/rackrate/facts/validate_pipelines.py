"""Faults of pipelines.csv: sizes within reason, and widths that go with the kind of denoiser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackrate.facts.cells import is_whole
from rackrate.facts.validate_cells import Check, Known, day, member, missing, parsed, whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code

DENOISERS = frozenset({"unet", "flux", "sd3"})
FLAGS = frozenset({"true", "false"})
WHOLE: Mapping[str, tuple[int, int]] = {
    "denoiser_params": (10**6, 10**12),
    "text_tokens": (1, 10**5),
    "text_width": (1, 10**5),
    "text_feed": (1, 10**6),
    "text_table": (1, 10**10),
    "layers": (1, 1_000),
    "context": (1, 10**5),
    "patch": (1, 16),
    "scale": (1, 64),
    "vae_params": (10**5, 10**11),
    "vae_tile": (64, 8_192),
    "side": (64, 8_192),
}


def pipelines_check(known: Known) -> Check:
    """What is wrong with a pipeline of pipelines.csv."""

    def check(row: Row) -> Iterator[Fault]:
        if row["id"] not in known.models:
            yield Fault(Code.UNKNOWN_NAME, "id", row["id"], "an id of models.csv", "add the model or mend the spelling")
        yield from missing(row, *WHOLE)
        for column, bounds in WHOLE.items():
            yield from whole(row, column, *bounds)
        yield from member(row, "denoiser", DENOISERS, "flux, sd3, unet")
        for column in ("guided", "vae_widens"):
            yield from member(row, column, FLAGS, "false, true")
        for column in ("text_params", "widths", "vae_widths"):
            yield from parsed(row, column, _wholes, "whole numbers with | between")
        yield from _levels(row)
        yield from day(row, "seen_at", known.today)

    return check


def _levels(row: Row) -> Iterator[Fault]:
    """Each width says whether its level attends; a transformer has one width, a U-Net several."""
    widths, attends = row["widths"].split("|"), row["attends"].split("|")
    if len(widths) != len(attends) or not set(attends) <= FLAGS:
        yield Fault(Code.CONFLICT, "attends", row["attends"], "true or false for each width", "copy the block types")
    if (len(widths) > 1) is not (row["denoiser"] == "unet"):
        yield Fault(Code.CONFLICT, "widths", row["widths"], "several for a unet, else one", "read the configuration")


def _wholes(text: str) -> tuple[int, ...]:
    parts = text.split("|")
    if not all(is_whole(part) and int(part) > 0 for part in parts):
        raise ValueError(text)
    return tuple(map(int, parts))
