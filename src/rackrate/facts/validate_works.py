"""Faults of denoisers.csv and render_scores.csv: shapes of diffusion models, scores of rendering benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts import rows
from rackrate.facts.denoiser import denoiser
from rackrate.facts.validate_cells import Check, Known, day, member, number, parsed, whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code

KINDS = frozenset({
    "unet", "unet-linear", "flux", "sd3", "sd3-normed", "cogvideox", "cogvideox-rope", "hunyuan", "wan",
    "wan-tokenwise", "ltx", "mochi",
})  # fmt: skip
_MOST_LAYERS, _MOST_STEPS, _MOST_SIDE, _MOST_SCORE = 1000, 10_000, 65_536, 1e6


def denoisers_check(known: Known) -> Check:
    """What is wrong with a model of denoisers.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "kind", KINDS, ", ".join(sorted(KINDS)))
        faults = [
            *whole(row, "layers", 1, _MOST_LAYERS),
            *whole(row, "steps", 1, _MOST_STEPS),
            *(fault for side in ("width", "height") for fault in whole(row, side, 1, _MOST_SIDE)),
            *whole(row, "passes", 1, 3),
        ]
        yield from faults or _shapes(row)
        yield from day(row, "seen_at", known.today)

    return check


def _shapes(row: Row) -> Iterator[Fault]:
    """Every number reads, and a U-Net says the depth of each level."""
    try:
        found = denoiser(row)
    except ValueError as error:
        yield Fault(Code.BAD_VALUE, "widths", str(error), "whole numbers, lists with |", "copy them from the class")
        return
    if found.is_unet and len(found.depths) != len(found.widths):
        yield Fault(Code.CONFLICT, "depths", row["depths"], f"{len(found.widths)} levels", "one depth a level")
    if found.is_unet is not (len(found.widths) > 1):
        yield Fault(Code.CONFLICT, "widths", row["widths"], "several for a unet, else one", "read the configuration")


def render_check(known: Known) -> Check:
    """What is wrong with a score of render_scores.csv."""

    def check(row: Row) -> Iterator[Fault]:
        if row["accelerator"] not in known.cards:
            expected = "an id of accelerators.csv"
            yield Fault(Code.UNKNOWN_NAME, "accelerator", row["accelerator"], expected, "mend the spelling")
        yield from number(row, "value", 0.001, _MOST_SCORE)
        yield from parsed(row, "higher_is_better", rows.flag, "true or false")
        if row["results"]:
            yield from whole(row, "results", 1, 10**6)
        yield from day(row, "seen_at", known.today)

    return check
