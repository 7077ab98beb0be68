"""Training a diffusion model: the time of an optimizer step, from the work of the denoiser's pass."""

from __future__ import annotations

import math

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.speed.diffusion import diffusion_rates, run_of, step_terms
from rackrate.speed.diffusion_flops import Canvas, pass_work, vae_flop
from rackrate.speed.estimate_types import Bound, SpeedEstimate, TrainingSpeed
from rackrate.speed.spread import within
from rackrate.speed.sustained import sustained
from rackrate.units import SECONDS_PER_HOUR
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Pictured, Training, Workload

SPREAD = 0.60
"""The factor less one by which a time may be off either way. Assumed, twice that of images: no published row is met."""

ENCODER_SHARE = 0.45
"""FLOPs of a VAE's encoder over its decoder's: two residual blocks a level instead of three (class AutoencoderKL)."""

ADAPTER_LAUNCHES = 2.0
"""Kernels of a pass with adapters over those without: each adapted matrix becomes three (peft lora/layer.py)."""


def pictured_training(
    workload: Workload, training: Training, pictured: Pictured, accelerator: Accelerator, layout: Layout
) -> SpeedEstimate | Unknown:
    """The speed of ``layout.data`` cards that train on images, or which rate of the card is unknown.

    A step is its micro-batches: ``passes`` times the work of the denoiser's
    forward pass, and what encodes images and prompts where that is not cached.
    Not calibrated: rates are those of making images, the range twice as wide.
    """
    shape = pictured.pipeline.denoiser
    canvas = Canvas(width=pictured.width, height=pictured.height, batch=training.micro_batch)
    run = run_of(shape, canvas=canvas, steps=1, precision=workload.precision, passes=passes(training))
    rates = diffusion_rates(run, accelerator)
    if isinstance(rates, Unknown):
        return rates
    card = sustained(accelerator, rates)
    busy = step_terms(run, accelerator, rates, card, 1)
    busy[Bound.HOST] *= run.passes * (ADAPTER_LAUNCHES if training.lora_rank else 1.0)
    encoding = _encoding_flop(pictured, canvas) / card.half_flop_per_s
    micro = max(busy[Bound.COMPUTE] + busy[Bound.BANDWIDTH], busy[Bound.HOST]) + encoding
    steps = math.ceil(training.global_batch / (training.micro_batch * layout.data))
    work = pass_work(shape, canvas)
    needed = (work.matrix_flop + work.attention_flop) * passes(training, once=True) / pictured.latents
    tokens = training.global_batch * pictured.latents
    peak = rates.flop_per_s * layout.data
    rate = within(tokens / (steps * micro), SPREAD, peak / needed)
    speed = TrainingSpeed(
        tokens_per_s=rate, step_s=rate.inverse(tokens), model_flop_utilisation=rate.scaled(needed / peak)
    )
    return SpeedEstimate(
        limited_by=max((b for b in busy if b is not Bound.COMMUNICATION), key=busy.__getitem__),
        ceiling_tokens_per_s=peak / needed,
        training=speed,
        work_hours=rate.inverse(training.tokens / SECONDS_PER_HOUR),
        computes_in=rates.precision,
    )


def passes(training: Training, *, once: bool = False) -> int:
    """Forward passes that a step is worth: 2 with adapters, 3 in full, one more where blocks are computed again.

    A backward pass takes the gradients of activations (1) and of trained weights
    (1, next to nothing for adapters; arXiv 2106.09685). ``once``: as the model needs.
    """
    again = training.checkpointing is not Checkpointing.NONE and not once
    return (2 if training.lora_rank else 3) + again


def _encoding_flop(pictured: Pictured, canvas: Canvas) -> float:
    """What encodes the images and prompts of a micro-batch: 2 FLOPs a parameter and token of the text encoders."""
    if pictured.cached == "all":
        return 0.0
    images = ENCODER_SHARE * vae_flop(pictured.pipeline.denoiser, canvas)
    if pictured.cached:
        return images
    return images + 2.0 * sum(pictured.pipeline.text_params) * pictured.pipeline.denoiser.text_tokens * canvas.batch
