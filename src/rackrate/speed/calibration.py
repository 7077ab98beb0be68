"""Calibration: one speed from the user's own machine corrects what shares its mechanism, and narrows its range."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rackrate.evidence import Range
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.engine_speed import Times
from rackrate.speed import spread
from rackrate.speed.estimate_types import ImageSpeed, SpeedEstimate
from rackrate.speed.replica import Replica
from rackrate.speed.spread import SPREADS, Phase
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload

NEAR = {Phase.DECODE: 0.05, Phase.PREFILL: 0.12}
"""Half widths of the 80 % interval once the same model was measured on as many of the same cards: 80 % of published
rows are as near to their estimate that one other row of theirs corrects (tools/score_measured.py). Serving as a
whole is known no better by it: where another number of users is in flight, other things decide."""

NEAR_EAGER = 0.18
"""The same of decode where the host launches kernel by kernel."""

NEAR_TRAINING = 0.13
"""The same of training."""


def elsewhere(near: Times, engine: Engine) -> Times:
    """What holds for other models, formats and numbers of cards."""
    return Times(
        prefill=shared(near.prefill, SPREADS[Phase.PREFILL]),
        decode=shared(near.decode, SPREADS[Phase.DECODE]),
        training=shared(near.training, engine.speed.train_spread),
        images=shared(near.images, engine.speed.train_spread),
    )


def shared(factor: float, usual: float) -> float:
    """What of ``factor`` lies beyond the usual spread: no model explains that part, so that it is the machine's.

    Within the spread it is the model's own: of published rows of one engine on
    one machine, another model's error is no smaller after any part of it
    (tools/score_measured.py; docs/speed.md, "One measurement of your own").
    """
    whole, edge = math.log(factor), math.log1p(usual)
    return math.exp(whole - max(-edge, min(edge, whole)))


def spreads_of(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, one: Replica
) -> Mapping[Phase, float]:
    """The spread of each phase of inference: what was measured itself is known better."""
    usual = {phase: spread.inference_spread(phase, engine, accelerator, one) for phase in Phase}
    found = engine.calibration
    if found is None or not found.is_near(accelerator.id, layout.gpus, workload.model.id, workload.weights.id):
        return usual
    known = {**NEAR, Phase.DECODE: NEAR_EAGER} if one.eager else NEAR
    return {
        phase: min(wide, known.get(phase, wide)) if str(phase) in found.phases else wide
        for phase, wide in usual.items()
    }


def training_spread(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, one: Replica
) -> float:
    """The same of training."""
    usual, found = spread.spread_of(engine, accelerator, one), engine.calibration
    if found is None or not found.is_near(accelerator.id, layout.gpus, workload.model.id, workload.weights.id):
        return usual
    return min(usual, NEAR_TRAINING) if "training" in found.phases else usual


def images_at(found: SpeedEstimate, times: float) -> SpeedEstimate:
    """A job of images that takes ``times`` as long as expected, never faster than the ceiling."""
    images = found.images
    if images is None or times == 1.0:
        return found
    ceiling, steps = images.ceiling_images_per_s, images.steps_per_s.likely / images.images_per_s.likely
    slower = max(times, images.images_per_s.likely / ceiling)
    pace = _below(images.images_per_s.scaled(1 / slower), ceiling)
    cards = images.images_per_s.likely * images.s_per_image.likely
    return replace(
        found,
        images=ImageSpeed(
            images_per_s=pace,
            s_per_image=pace.inverse(cards),
            steps_per_s=_below(images.steps_per_s.scaled(1 / slower), ceiling * steps),
            ceiling_images_per_s=ceiling,
            encode_s=images.encode_s.scaled(slower),
            denoise_s=images.denoise_s.scaled(slower),
            decode_s=images.decode_s.scaled(slower),
        ),
        work_hours=None if found.work_hours is None else found.work_hours.scaled(slower),
    )


def _below(rate: Range, ceiling: float) -> Range:
    return Range(min(rate.low, ceiling), min(rate.likely, ceiling), min(rate.high, ceiling))
