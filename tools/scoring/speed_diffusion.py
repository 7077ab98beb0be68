"""Diffusion rows: a published measurement becomes the run that it was made with, and its metric."""

from __future__ import annotations

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
    found = diffusion(run, card, row.whole("gpu_count", 1))
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


def run_of_row(row: Row) -> DiffusionRun:
    """The run of a row; what it does not say is usual.

    Raises:
        NotScored: the model is not known, or a format whose kernels no arithmetic stands for.
    """
    model = next((m for m in denoisers() if m.id == row.text("model_id")), None)
    if model is None:
        raise NotScored("diffusion model not known")
    width, _, height = row.text("input_len").partition("x")
    said = row.text("output_len")
    frames, steps = re.search(r"(\d+) frames", said), re.match(r"(\d+) steps", said)
    engine = row.text("norm_engine")
    return run_of(
        model,
        canvas=Canvas(
            width=int(width), height=int(height), frames=int(frames.group(1)) if frames else 1,
            batch=row.whole("batch", 1),
        ),
        steps=int(steps.group(1)) if steps else model.steps,
        precision=NARROW.get(row.text("weight_format").partition("+")[0], Precision.FP16),
        compiled=engine not in EAGER,
        half_accumulate=engine in HALF_SUMS,
        host_times=HOST_TIMES.get(engine, 1.0),
    )  # fmt: skip
