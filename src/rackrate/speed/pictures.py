"""Pictures: the speed of a job that makes images, from the time of its denoising steps."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.speed.diffusion import diffusion, diffusion_rates, run_of
from rackrate.speed.diffusion_flops import Canvas
from rackrate.speed.estimate_types import ImageSpeed, SpeedEstimate
from rackrate.units import SECONDS_PER_HOUR
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Images, Workload


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
    pace = found.s_per_result.inverse(layout.data)
    return SpeedEstimate(
        limited_by=found.limited_by,
        images=ImageSpeed(
            images_per_s=pace,
            s_per_image=found.s_per_result,
            steps_per_s=found.step_s.inverse(1.0),
            ceiling_images_per_s=layout.data / found.least_s_per_result,
        ),
        work_hours=pace.inverse(images.count / SECONDS_PER_HOUR),
        computes_in=rates.precision,
    )


def _refusal(images: Images, layout: Layout) -> Unknown | None:
    if images.pipeline_offload != "none":
        return Unknown(f"speed with pipeline_offload {images.pipeline_offload} is not modelled")
    if layout.gpus != layout.data:
        return Unknown(f"speed of one image over {layout.gpus // layout.data} cards is not part of plans yet")
    return None
