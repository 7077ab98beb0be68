"""Diffusion in inference: text encoders, denoiser and VAE in turn on one card."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine
from rackrate.facts.pipeline import Pipeline
from rackrate.memory.estimate_types import Component, MemoryEstimate, Metric, Phase
from rackrate.memory.overhead import UNNAMED, OnCard
from rackrate.memory.phases import by_phase, highest, part, verdict
from rackrate.memory.pipeline_activations import (
    decode_bytes,
    denoise_bytes,
    encode_bytes,
    picture_bytes,
    pixels,
    tiled_pixels,
)
from rackrate.memory.video_activations import video_decode_bytes
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Images, Workload

PHASES = (Phase.ENCODE, Phase.DENOISE, Phase.PICTURE)
WIDE = 4.0
HALF_BYTES = 2.0

MOVING_SLACK = Range(0.15, 0.35, 0.5)
"""Reserved over allocated, as a part of the activations: 0.15 to 0.45 in the four ways to run ConsisID
(huggingface/diffusers docs api/pipelines/consisid.md: 44 on 37 GB, 25 on 22, 22 on 16, 7 on 5), read roughly."""

OUTSIDE = frozenset({"cuda_context", "non_torch", "allocator_slack"})


class PipelineDemand(Value, frozen=True, kw_only=True):
    """What a pipeline needs of one card in each of ``phases``, whatever that is."""

    parts: tuple[Component, ...]
    phases: tuple[Phase, ...] = PHASES


def pipeline_demand(workload: Workload, layout: Layout, engine: Engine) -> PipelineDemand | Unknown:
    """The parts of a pipeline that makes its share of the images at once on each card."""
    images, policy = workload.images, engine.serving
    if images is None or policy is None:
        return Unknown(f"how {engine.id} makes images is not known")
    share = math.ceil(images.at_once / layout.data)
    parts = (*weight_parts(workload, images), *activation_parts(workload, images, share))
    return PipelineDemand(parts=(*parts, part("non_torch", policy.non_torch_bytes)))


def picture_on(demand: PipelineDemand, on: OnCard) -> MemoryEstimate:
    """The estimate for a card with this much usable memory and this CUDA context."""
    held = highest(by_phase(demand.parts, demand.phases))[1]
    parts = (
        *demand.parts,
        part("workspace", on.workspace),
        part("unnamed", UNNAMED.scaled(held.likely)),
        part("cuda_context", on.context),
    )
    peaks = by_phase(parts, demand.phases)
    phase, peak = highest(peaks)
    return MemoryEstimate(
        components=parts,
        phases=peaks,
        peak_phase=phase,
        peak=peak,
        allocated=_without(parts, OUTSIDE, demand.phases),
        reserved=_without(parts, OUTSIDE - {"allocator_slack"}, demand.phases),
        metric=Metric.DRIVER,
        usable_bytes=on.visible,
        verdict=verdict(peak, on.visible),
    )


def _without(parts: tuple[Component, ...], names: frozenset[str], phases: tuple[Phase, ...]) -> Range:
    return highest(by_phase([p for p in parts if p.name not in names], phases))[1]


# ---------------------------------------------------------------- weights


def element_bytes(workload: Workload) -> float:
    """Bytes of a value in the pipeline's precision."""
    return WIDE if workload.precision.value == "fp32" else HALF_BYTES


def weight_parts(workload: Workload, images: Images) -> tuple[Component, ...]:
    """The weights of each network, in the phases in which they are on the card.

    Without offload all networks stay. ``model``: each network comes as it is
    called and leaves for the next. ``sequential``: one layer at a time, of
    which the largest matrix counts. The weight format is the denoiser's; the
    others keep the precision. Source: huggingface/diffusers
    pipelines/pipeline_utils.py (enable_model_cpu_offload, enable_sequential_cpu_offload).
    """
    pipe, element = images.pipeline, element_bytes(workload)
    narrow = min(workload.weights.bytes_per_weight, element)
    if images.pipeline_offload == "sequential":
        return (
            part("text_encoders", pipe.text_table * element, Phase.ENCODE, note="largest layer"),
            part("denoiser", _largest_matrix(pipe) * narrow, Phase.DENOISE, note="largest layer"),
            part("vae", _vae_matrix(pipe) * _vae_element(workload, images), Phase.PICTURE, note="largest layer"),
        )
    stays = images.pipeline_offload == "none"
    encode, denoise, picture = ((), (), ()) if stays else ((Phase.ENCODE,), (Phase.DENOISE,), (Phase.PICTURE,))
    texts = (sum if stays else max)(pipe.text_params)
    found = [
        part("text_encoders", texts * element, *encode),
        part("denoiser", (sum if stays else max)(pipe.denoiser_params) * narrow, *denoise),
        part("vae", pipe.vae_params * element, *picture),
    ]
    if _vae_element(workload, images) > element:
        widened = pipe.vae_params * (WIDE - element)
        found.append(part("vae_widened", widened, Phase.PICTURE, note="decodes in FP32"))
    return tuple(found)


def _vae_element(workload: Workload, images: Images) -> float:
    """Bytes of a value in the VAE: an FP16 pipeline that would overflow decodes in FP32 (force_upcast)."""
    widens = images.pipeline.vae_widens in {"16bit", workload.precision.value}
    return WIDE if widens else element_bytes(workload)


def _largest_matrix(pipe: Pipeline) -> float:
    """The largest matrix of a denoiser: GEGLU's projection in a U-Net (8 w^2), a block's shifts elsewhere (6 w^2)."""
    width = max(pipe.denoiser.widths)
    return (8.0 if pipe.denoiser.is_unet else 6.0) * width * width


def _vae_matrix(pipe: Pipeline) -> float:
    """A convolution of 3 x 3 at the VAE's full width."""
    return 9.0 * max(pipe.vae_widths) ** 2


# ---------------------------------------------------------------- activations


def activation_parts(workload: Workload, images: Images, share: int) -> tuple[Component, ...]:
    """What each phase computes with, and what the allocator reserves over it.

    Slicing decodes one image at a time and tiling one tile; the finished pictures stay.
    """
    pipe, element = images.pipeline, element_bytes(workload)
    area, wide = pixels(pipe, images.width, images.height), _vae_element(workload, images)
    at_once = 1 if images.slicing or (images.tiling and pipe.vae == "kl") else share
    decoded = tiled_pixels(pipe, area) if images.tiling else area
    kept = picture_bytes(area, share, wide) if at_once < share or decoded < area else 0.0
    if pipe.vae == "kl":
        decoding = decode_bytes(pipe, decoded, at_once, wide).shifted(kept)
    else:
        each = video_decode_bytes(pipe, (area, images.frames), wide, tiling=images.tiling)
        decoding = each.scaled(at_once).shifted(kept * images.frames)
    moving = {
        Phase.ENCODE: Range.exact(encode_bytes(pipe, share, element)),
        Phase.DENOISE: Range.exact(denoise_bytes(pipe, area, share, element, images.frames)),
        Phase.PICTURE: decoding,
    }
    found = []
    for phase, size in moving.items():
        found.append(part("activations", size, phase))
        found.append(part("allocator_slack", MOVING_SLACK.scaled(size.likely), phase))
    return tuple(found)
