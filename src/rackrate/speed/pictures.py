"""Pictures: the speed of a job that makes images, from the time of its denoising steps."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.speed.diffusion import diffusion, diffusion_rates, run_of
from rackrate.speed.diffusion_flops import Canvas
from rackrate.speed.estimate_types import ImageSpeed, SpeedEstimate
from rackrate.speed.replica import STREAM_SHARE
from rackrate.speed.roofline import Rates
from rackrate.speed.spread import within
from rackrate.speed.sustained import sustained
from rackrate.units import SECONDS_PER_HOUR
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Images, Workload

ENCODE_SPREAD = 1.0
"""The factor less one by which the text encoders' time may be off either way: launches are not counted. Assumed."""


def pictured(workload: Workload, images: Images, accelerator: Accelerator, layout: Layout) -> SpeedEstimate | Unknown:
    """The speed of ``layout.data`` cards, each of which makes images of its own, or why it is not known.

    Classifier-free guidance doubles the passes where the pipeline uses it.
    Kernels are launched one by one, as Diffusers does unless it is compiled.
    """
    refusal = _refusal(images, layout)
    if refusal is not None:
        return refusal
    canvas = Canvas(width=images.width, height=images.height, frames=images.frames, batch=images.at_once)
    run = run_of(images.pipeline.denoiser, canvas=canvas, steps=images.steps, precision=workload.precision)
    found, rates = diffusion(run, accelerator), diffusion_rates(run, accelerator)
    if isinstance(found, Unknown):
        return found
    if isinstance(rates, Unknown):
        return rates
    text = encode_s(images, accelerator, rates)
    each = found.s_per_result.shifted(text.likely)
    pace = each.inverse(layout.data)
    return SpeedEstimate(
        limited_by=found.limited_by,
        images=ImageSpeed(
            images_per_s=pace,
            s_per_image=each,
            steps_per_s=found.step_s.inverse(1.0),
            ceiling_images_per_s=layout.data / found.least_s_per_result,
            encode_s=text,
            denoise_s=found.step_s.scaled(images.steps / images.at_once),
            decode_s=found.decode_s,
        ),
        work_hours=pace.inverse(images.count / SECONDS_PER_HOUR),
        computes_in=rates.precision,
    )


def encode_s(images: Images, accelerator: Accelerator, rates: Rates) -> Range:
    """Seconds in which the text encoders read the prompt of one image, and its empty one where it is guided.

    The larger of their arithmetic, 2 FLOPs a parameter and token (arXiv
    2001.08361), and one reading of their 16-bit weights for the batch.
    """
    params, shape = sum(images.pipeline.text_params), images.pipeline.denoiser
    tokens = shape.text_tokens * shape.passes
    arithmetic = 2.0 * params * tokens / sustained(accelerator, rates).half_flop_per_s
    reading = 2.0 * params / (rates.bandwidth_bytes_per_s * STREAM_SHARE) / images.at_once
    return within(1 / max(arithmetic, reading), ENCODE_SPREAD, math.inf).inverse(1.0)


def _refusal(images: Images, layout: Layout) -> Unknown | None:
    if images.pipeline_offload != "none":
        return Unknown(f"speed with pipeline_offload {images.pipeline_offload} is not modelled")
    if layout.gpus != layout.data:
        return Unknown(f"speed of one image over {layout.gpus // layout.data} cards is not part of plans yet")
    return None
