"""Energy: what the cards draw while they work, and watt-hours for each million tokens."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown, multiply_independent
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.speed.estimate_types import ImageSpeed, ServingSpeed, SpeedEstimate
from rackrate.speed.flops import model_flop_per_token
from rackrate.speed.replica import Replica, replica, weight_bytes_touched
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

AWAKE_SHARE = 0.40
"""Of the power limit, what a card draws at full clocks whose units mostly wait: fitted.

With the two shares below on 104 rows of vLLM, TensorRT-LLM and DeepSpeed-MII on
A100, H100 and B200 (ml-energy/leaderboard; argonne-lcf/LLM-Inference-Bench).
"""

MEMORY_SHARE = 0.13
"""What memory adds that is read at its full bandwidth: times the root of the share that is used. Fitted."""

ARITHMETIC_SHARE = 1.0
"""What arithmetic adds at the dense 16-bit peak: times the root of the share that is used. Fitted."""

SPREAD = 0.22
"""The factor less one by which power may be off either way: 80 % of those rows."""

TOKENS = 1e6
"""Tokens that watt-hours are given for."""


class Energy(Value, frozen=True, kw_only=True):
    """What a machine's cards draw while they work, as the driver measures it, and watt-hours of a million tokens.

    Tokens as in the speed: output tokens, or tokens trained on; of images the
    watt-hours of one instead. Hosts, fans, cooling and losses of supplies come on
    top and are not known.
    """

    watts_per_gpu: Range
    watts: Range
    wh_per_million_tokens: Range | None = None
    wh_per_image: Range | None = None


def energy(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, speed: SpeedEstimate
) -> Energy | Unknown:
    """Power and energy at the speed of ``speed``, or why they are not known.

    ``limit x min(1, a + b sqrt(memory share) + c sqrt(arithmetic share))``. The
    roots are those of clocks that rise where there is power to spare. Measured
    for serving alone; of training, whose arithmetic share is higher, it says
    that cards draw close to their limit.
    """
    limit = accelerator.number("power_limit_w")
    if isinstance(limit, Unknown):
        return limit
    if speed.images is not None and workload.images is not None:
        return _of_images(workload, speed.images, accelerator, layout)
    if workload.training is not None and workload.training.pictured is not None:
        return Unknown("energy of training on images is not modelled yet")
    one = replica(workload, accelerator, layout, engine)
    if isinstance(one, Unknown):
        return one
    rate = (
        speed.training.tokens_per_s if speed.training else speed.serving.output_tokens_per_s if speed.serving else None
    )
    if rate is None:
        return Unknown(f"energy of {workload.task}: no speed")
    memory, arithmetic = used_shares(one, workload, speed)
    each = drawn(limit, memory, arithmetic)
    watts = each.scaled(layout.gpus)
    return Energy(
        watts_per_gpu=each,
        watts=watts,
        wh_per_million_tokens=multiply_independent(watts, rate.inverse(TOKENS / SECONDS_PER_HOUR)),
    )


def _of_images(workload: Workload, speed: ImageSpeed, accelerator: Accelerator, layout: Layout) -> Energy | Unknown:
    """Power and watt-hours of one image or video: the arithmetic of its steps and decoding over its time.

    The shares were fitted on language models; of images nothing was measured.
    """
    from rackrate.speed.diffusion import diffusion_rates, run_of  # imported here: text needs none of it
    from rackrate.speed.diffusion_flops import Canvas, pass_work, vae_flop

    images, limit = workload.images, accelerator.number("power_limit_w")
    assert images is not None
    shape = images.pipeline.denoiser
    canvas = Canvas(width=images.width, height=images.height, frames=images.frames)
    rates = diffusion_rates(run_of(shape, canvas=canvas, steps=1, precision=workload.precision), accelerator)
    if isinstance(rates, Unknown):
        return rates
    if isinstance(limit, Unknown):
        return limit
    work = pass_work(shape, canvas)
    flop = images.steps * shape.passes * (work.matrix_flop + work.attention_flop) + vae_flop(shape, canvas)
    each = drawn(limit, 0.0, min(1.0, flop / speed.s_per_image.likely / rates.flop_per_s))
    hours = speed.s_per_image.scaled(1 / SECONDS_PER_HOUR)
    return Energy(watts_per_gpu=each, watts=each.scaled(layout.gpus), wh_per_image=multiply_independent(each, hours))


def drawn(limit: float, memory: float, arithmetic: float) -> Range:
    """Watts of one card whose memory and arithmetic are used by these shares of their peaks; never above its limit."""
    likely = AWAKE_SHARE + MEMORY_SHARE * math.sqrt(memory) + ARITHMETIC_SHARE * math.sqrt(arithmetic)
    ends = (likely / (1 + SPREAD), likely, likely * (1 + SPREAD))
    low, middle, high = (limit * min(1.0, share) for share in ends)
    return Range(low, middle, high)


def used_shares(one: Replica, workload: Workload, speed: SpeedEstimate) -> tuple[float, float]:
    """Shares of memory bandwidth (weights alone) and of the dense peak that the work uses in the mean."""
    peak = one.rates.flop_per_s * one.layout.gpus
    if speed.training is not None and workload.training is not None:
        done = speed.training.tokens_per_s.likely * model_flop_per_token(workload, workload.training)
        return 0.0, min(1.0, done / peak)
    assert speed.serving is not None
    assert workload.serving is not None
    return _serving_shares(one, workload.serving, speed.serving, peak)


def _serving_shares(one: Replica, asked: Serving, speed: ServingSpeed, peak: float) -> tuple[float, float]:
    rate, batch = speed.output_tokens_per_s.likely, max(1.0, speed.concurrency / one.layout.data)
    steps = rate / speed.concurrency
    read = weight_bytes_touched(one, batch) * steps * one.layout.data
    tokens = rate * (1 + asked.prompt_tokens / max(1, asked.output_tokens))
    bandwidth = one.rates.bandwidth_bytes_per_s * one.layout.gpus
    return min(1.0, read / bandwidth), min(1.0, 2 * one.multiplied_params * tokens / peak)
