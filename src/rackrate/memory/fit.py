"""What would make it fit: single changes to a workload, searched one setting at a time."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit_candidates import NO_CANDIDATES, Candidates
from rackrate.memory.fit_search import Case, Change, _first
from rackrate.memory.fit_settings import _image_changes, _serving_changes, _training_changes
from rackrate.memory.fit_surroundings import _format_changes, _other_engines, _wider
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload

RANKS = (
    "images.slicing",
    "images.tiling",
    "images.at_once",
    "images.pipeline_offload",
    "training.cached",
    "training.loss",
    "training.micro_batch",
    "training.checkpointing",
    "training.offload",
    "parallel.zero_stage",
    "serving.concurrency",
    "training.optimizer",
    "serving.draft_model",
    "serving.cache_precision",
    "serving.beams",
    "training.pure_16bit",
    "engine",
    "quantization",
    "task",
    "limits.gpu_counts",
    "serving.context_tokens",
    "training.sequence_tokens",
    "images.width",
    "images.height",
)
"""Workload keys from the smallest change to the largest: what costs time, then numerics, money, the job itself."""


def smallest_changes(
    workload: Workload,
    accelerator: Accelerator,
    layout: Layout,
    engine: Engine,
    candidates: Candidates = NO_CANDIDATES,
) -> tuple[Change, ...]:
    """Single changes that make ``workload`` fit, smallest first; empty when it fits already or nothing known helps.

    Numbers (batch, context, concurrency) go down to the largest value that
    fits, found by bisection because need grows with them. Where no single
    change makes it fit with margin, those that leave it tight are listed.
    """
    case = Case(workload=workload, accelerator=accelerator, layout=layout, engine=engine)
    now = case.estimate()
    if now is None or now.verdict is Verdict.FITS:
        return ()
    for wanted in (Verdict.FITS, Verdict.TIGHT):
        if wanted is now.verdict:
            break
        found = [change for change in _all_changes(case, candidates, wanted) if change is not None]
        if found:
            return tuple(sorted(found, key=lambda c: RANKS.index(c.knob)))
    return ()


def _all_changes(case: Case, candidates: Candidates, wanted: Verdict) -> Iterator[Change | None]:
    if case.workload.training is not None:
        yield from _training_changes(case, case.workload.training, candidates, wanted)
    if case.workload.serving is not None:
        yield from _serving_changes(case, case.workload.serving, wanted)
    if case.workload.images is not None:
        yield from _image_changes(case, case.workload.images, wanted)
    yield from _format_changes(case, candidates, wanted)
    yield _first("engine", case.engine.id, _other_engines(case, candidates), wanted)
    yield _first("limits.gpu_counts", str(case.layout.gpus), _wider(case), wanted)
