"""Diffusion rows: a published measurement becomes the run that it was made with, and its metric."""

from __future__ import annotations

import math
import re

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Precision
from rackrate.facts.book import FactBook
from rackrate.facts.bundled import denoisers
from rackrate.speed.diffusion import DiffusionRun, diffusion, run_of
from rackrate.speed.diffusion_flops import Canvas
from scoring.cells import Row
from scoring.memory_rows import NotScored

NARROW = {"fp8": Precision.FP8, "fp8dq": Precision.FP8, "fp8dqrow": Precision.FP8, "int8dq": Precision.INT8}
"""Arithmetic by weight format, where activations are quantised too; other formats are expanded to 16 bits."""

EAGER = frozenset({"diffusers-eager", "xdit-eager", "a1111", "sdnext"})
HALF_SUMS = frozenset({"stable-fast", "tensorrt"})
HOST_TIMES = {"a1111": 1.6, "sdnext": 1.6}
"""Launching of the web interfaces relative to Diffusers: samplers, hooks and previews in each step."""

WHOLE_RUN = frozenset({"a1111", "sdnext"})
"""Engines whose iterations a second are steps over the time of the whole image."""


def predicted(row: Row, book: FactBook) -> Range:
    """The estimate in the metric of the row.

    Raises:
        NotScored: it is not known.
    """
    run = run_of_row(row)
    card = book.accelerators.get(row.text("gpu_id"))
    if card is None:
        raise NotScored("card not known")
    found = diffusion(run, card, cards_of(row))
    if isinstance(found, Unknown):
        raise NotScored(found.reason)
    metric = row.text("norm_metric")
    if metric == "images_per_s":
        return found.s_per_result.inverse(1.0)
    if metric in {"s_per_image", "s_per_video"}:
        return found.s_per_result
    if metric == "it_per_s":
        whole = row.text("norm_engine") in WHOLE_RUN
        return found.s_per_result.inverse(run.steps) if whole else found.step_s.inverse(1.0)
    raise NotScored(f"metric {metric}")


def cards_of(row: Row) -> int:
    """Cards that work on one result: the count, or the product of the layout."""
    layout = math.prod(max(1, row.whole(each, 1)) for each in ("dp", "tp", "pp", "cp"))
    return max(1, row.whole("gpu_count", layout))


def run_of_row(row: Row) -> DiffusionRun:
    """The run of a row; what it does not say is usual, but for the frames of a video.

    Raises:
        NotScored: the model is not known, or the size of what is made.
    """
    model = next((m for m in denoisers() if m.id == row.text("model_id")), None)
    if model is None:
        raise NotScored("diffusion model not known")
    steps = re.match(r"(\d+) steps", row.text("output_len"))
    engine = row.text("norm_engine")
    return run_of(
        model,
        canvas=canvas_of(row),
        steps=int(steps.group(1)) if steps else model.steps,
        precision=NARROW.get(row.text("weight_format").partition("+")[0], Precision.FP16),
        compiled=engine not in EAGER,
        half_accumulate=engine in HALF_SUMS,
        host_times=HOST_TIMES.get(engine, 1.0),
    )


def canvas_of(row: Row) -> Canvas:
    """What is made: pixels, frames and how many at a time.

    Raises:
        NotScored: the row does not say, or not in numbers.
    """
    size = re.fullmatch(r"(\d{1,5})x(\d{1,5})", row.text("input_len"))
    if size is None:
        raise NotScored("no size in pixels stated (input_len)")
    frames = re.search(r"(\d{1,5}) frames", f"{row.text('output_len')}; {row.text('note')}")
    if frames is None and row.text("norm_metric") == "s_per_video":
        raise NotScored("no number of frames stated (output_len)")
    return Canvas(
        width=max(1, int(size.group(1))),
        height=max(1, int(size.group(2))),
        frames=max(1, int(frames.group(1))) if frames else 1,
        batch=max(1, row.whole("batch", row.whole("concurrency", 1))),
    )
