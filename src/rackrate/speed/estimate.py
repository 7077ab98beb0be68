"""Estimate: how fast one machine does a workload, what limits it, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rackrate.evidence import Unknown, add_independent
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.problems import Code, Finding, Severity
from rackrate.speed import serving, training
from rackrate.speed.calibration import images_at, spreads_of, training_spread
from rackrate.speed.estimate_types import Bound, ServingSpeed, SpeedEstimate, TrainingSpeed
from rackrate.speed.flops import model_flop_per_token
from rackrate.speed.pauses import pauses, read_again
from rackrate.speed.replica import Replica, replica, times_of
from rackrate.speed.spread import Phase, wider, within
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Training, Workload


def estimate(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, memory: MemoryEstimate
) -> SpeedEstimate | Unknown:
    """The speed of ``layout.gpus`` cards in one machine, all replicas together.

    Unknown where the bandwidth or the dense rate of the arithmetic that is
    needed has no source, where the engine does not do the task, and where
    nothing fits in the KV cache. Intervals are of 80 %, as wide as
    published rows scatter, and never above the physical ceiling.
    """
    if workload.images is not None or (workload.training is not None and workload.training.pictured is not None):
        return _of_pictures(workload, accelerator, layout, engine)
    one = replica(workload, accelerator, layout, engine)
    if isinstance(one, Unknown):
        return one
    reached = engine.speed.prefill_flop if workload.training is None else engine.speed.train_flop
    if reached <= 0:
        return Unknown(f"{engine.title} does not do {workload.task}")
    if workload.training is not None:
        found = _trained(one, workload, workload.training, training_spread(workload, accelerator, layout, engine, one))
    elif workload.serving is not None and workload.model.generates_text:
        held = serving.sequences_held(memory.cache, workload.serving, engine)
        if isinstance(held, Unknown):
            return held
        spreads = spreads_of(workload, accelerator, layout, engine, one)
        found = _served(one, workload.serving, engine, held, spreads)
    else:
        return Unknown(f"speed of {workload.task} with {workload.model.id} is not modelled yet")
    remarks = (
        *((_emulation(workload, accelerator),) if one.rates.emulated else ()),
        *((_uncalibrated(workload),) if workload.model.is_encoder_decoder else ()),
        *((_not_timed(workload),) if _steps_on_the_host(workload) else ()),
    )
    return replace(found, findings=remarks)


def _of_pictures(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine
) -> SpeedEstimate | Unknown:
    """The speed of making images, or of training on them."""
    from rackrate.speed.picture_training import pictured_training  # imported here: text needs none of it
    from rackrate.speed.pictures import pictured

    training = workload.training
    if training is not None and training.pictured is not None:
        taught = pictured_training(workload, training, training.pictured, accelerator, layout)
        return taught if isinstance(taught, Unknown) else replace(taught, findings=(_uncalibrated(workload),))
    assert workload.images is not None
    found = pictured(workload, workload.images, accelerator, layout)
    if isinstance(found, Unknown):
        return found
    return images_at(found, times_of(workload, accelerator, layout, engine).images)


def _served(one: Replica, asked: Serving, engine: Engine, held: int, spreads: Mapping[Phase, float]) -> SpeedEstimate:
    most = serving.most_in_flight(one, asked, engine, held)
    load = asked.requests_per_s
    wanted = asked.concurrency if load is None else serving.in_flight_for_load(one, load, most, asked)
    likely = serving.served(one, wanted, held, asked)
    replicas, batch = serving.spread_over(one, likely.concurrency)
    limit = replicas * serving.ceiling_requests_per_s(one, batch, asked)
    rate = within(likely.requests_per_s.likely, spreads[Phase.SERVING], limit)
    full = serving.requests_per_s(one, max(most, likely.concurrency), asked) if asked.online else None
    speed = ServingSpeed(
        first_token_s=wider(likely.first_token_s, spreads[Phase.PREFILL]),
        per_user_tokens_per_s=within(
            likely.per_user_tokens_per_s.likely, spreads[Phase.DECODE], 1 / serving.shortest_step_s(one, batch, asked)
        ),
        output_tokens_per_s=rate.scaled(asked.output_tokens * asked.windows),
        requests_per_s=rate,
        audio_s_per_s=None if asked.audio_seconds is None else rate.scaled(asked.audio_seconds),
        concurrency=likely.concurrency,
        capacity_requests_per_s=None if full is None else within(full, spreads[Phase.SERVING], math.inf),
    )
    capped = likely.concurrency < wanted
    return SpeedEstimate(
        limited_by=Bound.CACHE_ROOM if capped else serving.busiest(one, batch, asked),
        ceiling_tokens_per_s=limit * asked.output_tokens * asked.windows,
        serving=speed,
        work_hours=None if asked.requests is None else rate.inverse(asked.requests / SECONDS_PER_HOUR),
        computes_in=one.rates.precision,
    )


def _trained(one: Replica, workload: Workload, run: Training, spread: float) -> SpeedEstimate:
    needed = model_flop_per_token(workload, run)
    peak = one.rates.flop_per_s * one.layout.gpus
    tokens = training.tokens_per_step(one, run)
    rate = within(tokens / training.step_s(one, workload, run), spread, peak / needed)
    stops = pauses(workload, run, run.tokens / tokens)
    evaluated = read_again(run, stops.evaluated_tokens)
    written = stops.checkpoints_s.scaled(1 / SECONDS_PER_HOUR)
    speed = TrainingSpeed(
        tokens_per_s=rate,
        step_s=rate.inverse(tokens),
        model_flop_utilisation=rate.scaled(needed / peak),
        checkpoint_s=stops.checkpoint_s,
        pauses_hours=add_independent((written, rate.inverse(evaluated / SECONDS_PER_HOUR))),
    )
    return SpeedEstimate(
        limited_by=training.busiest(one, workload, run),
        ceiling_tokens_per_s=peak / needed,
        training=speed,
        work_hours=add_independent((rate.inverse((run.tokens + evaluated) / SECONDS_PER_HOUR), written)),
        computes_in=one.rates.precision,
    )


def _uncalibrated(workload: Workload) -> Finding:
    """No number of it was fitted; published runs of Whisper were looked up afterwards.

    They are in tests/golden/whisper-measured.csv, each with its source.
    """
    seen, range_of = (
        "of training on images no published one was found",
        "1.6 times the likely time either way, as is assumed",
    )
    if workload.model.is_encoder_decoder and workload.training is not None:
        seen = "of training an encoder-decoder no published one was found"
        range_of = "half to twice the likely time, as is assumed"
    elif workload.model.is_encoder_decoder:
        seen, range_of = (
            "published runs of Whisper took half as long again in the median",
            "0.7 to 3.4 times the likely time",
        )
    return Finding(
        code=Code.NOT_CALIBRATED,
        subject=workload.model.id,
        severity=Severity.WARNING,
        observed=f"no number behind this estimate was fitted to a measured speed; {seen}",
        expected=range_of,
        action="measure some minutes of your own work before you rent for long",
    )


def _steps_on_the_host(workload: Workload) -> bool:
    """Whether the optimizer, and so its step, is left to the host."""
    return workload.training is not None and workload.training.offload in {"optimizer", "parameters"}


def _not_timed(workload: Workload) -> Finding:
    """Copies over PCIe and the step on the host's cores are left out: arXiv 2101.06840 section 4 has what they are."""
    return Finding(
        code=Code.OFFLOAD_NOT_TIMED,
        subject=workload.model.id,
        severity=Severity.WARNING,
        observed="gradients and weights that go over PCIe and the optimizer on the host's cores are not in this time",
        expected="a slower run, the more so the fewer tokens a step has",
        action="time one step before you rent for long, or take more cards instead of offloading",
    )


def _emulation(workload: Workload, accelerator: Accelerator) -> Finding:
    return Finding(
        code=Code.PRECISION_EMULATED,
        subject=accelerator.id,
        severity=Severity.WARNING,
        observed=f"no usable {workload.precision} matrix rate; computed in fp32",
        expected=str(workload.precision),
        action="choose a precision that the card multiplies, or another card",
    )
