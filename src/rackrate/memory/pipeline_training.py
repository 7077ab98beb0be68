"""Training a diffusion model: what one card holds while images are encoded, and in each phase of a step."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine
from rackrate.memory.denoiser_training import (
    Adapted,
    again_bytes,
    kept_bytes,
    lora_params,
    running_bytes,
)
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.optimizer import FP32_BYTES, state_bytes, step_temporary_bytes
from rackrate.memory.phases import TRAINING, part
from rackrate.memory.pipeline import MOVING_SLACK, PipelineDemand
from rackrate.memory.pipeline_activations import encoder_bytes
from rackrate.memory.training_states import FORWARD, UNTIL_STEP
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Pictured, Training, Workload

PHASES = (Phase.ENCODE, *TRAINING)

WITHIN = 0.08
"""Half width of the activations: the closed form is within 8 % of simulated steps of the classes."""


def pictured_demand(workload: Workload, layout: Layout, engine: Engine) -> PipelineDemand | Unknown:
    """The parts of a training run of a diffusion model with data parallel cards, each with all weights."""
    training, policy = workload.training, engine.serving
    if training is None or training.pictured is None or policy is None:
        return Unknown(f"how {engine.id} trains on images is not known")
    states = state_parts(workload, training, training.pictured, layout)
    if isinstance(states, Unknown):
        return states
    weights = weight_parts(workload, training.pictured)
    parts = (*weights, *states, *activation_parts(workload, training, training.pictured))
    return PipelineDemand(parts=(*parts, part("non_torch", policy.non_torch_bytes)), phases=PHASES)


def adapted(training: Training) -> Adapted:
    """What of the denoiser is trained."""
    return Adapted(rank=training.lora_rank, targets=training.lora_targets)


def trained_params(training: Training, pictured: Pictured) -> float:
    """Trained parameters: the adapters', or the denoiser's."""
    pipe = pictured.pipeline
    return lora_params(pipe.denoiser, adapted(training)) if training.lora_rank else float(pipe.denoiser_params[0])


# ---------------------------------------------------------------- weights and states


def weight_parts(workload: Workload, pictured: Pictured) -> list[Component]:
    """Networks that stay on the card; a denoiser trained in full is in FP32, with autocast's copies of it.

    SDXL's VAE encodes in FP32 (huggingface/diffusers examples/text_to_image
    train_text_to_image_lora_sdxl.py); what is cached is not on the card.
    """
    pipe, element = pictured.pipeline, element_bytes(workload)
    frozen = workload.task.trains_adapters
    each = min(workload.weights.bytes_per_weight, element) if frozen else FP32_BYTES
    parts = [part("denoiser", pipe.denoiser_params[0] * each)]
    if not frozen and element < FP32_BYTES:
        parts.append(part("weights", pipe.denoiser_params[0] * element, *UNTIL_STEP, note="autocast copies"))
    if not pictured.cached:
        parts.append(part("text_encoders", sum(pipe.text_params) * element))
    if pictured.cached != "all":
        parts.append(part("vae", pipe.vae_params * _vae_element(workload, pictured)))
    return parts


def element_bytes(workload: Workload) -> float:
    """Bytes of a value in the precision that is computed in."""
    return float(FP32_BYTES) if workload.precision.value == "fp32" else 2.0


def _vae_element(workload: Workload, pictured: Pictured) -> float:
    return FP32_BYTES if pictured.pipeline.vae_widens else element_bytes(workload)


def state_parts(
    workload: Workload, training: Training, pictured: Pictured, layout: Layout
) -> list[Component] | Unknown:
    """Adapters in FP32, gradients, the optimizer's states and its work at the step, on every card alike."""
    count = trained_params(training, pictured)
    states = state_bytes(training.optimizer, count, 0.0, FP32_BYTES)
    if isinstance(states, Unknown):
        return states
    stay = math.ceil(training.global_batch / (training.micro_batch * layout.data)) > 1
    parts = [part("adapters", FP32_BYTES * count)] if workload.task.trains_adapters else []
    parts.append(part("gradients", FP32_BYTES * count, *(() if stay else (Phase.BACKWARD, Phase.STEP))))
    parts.append(part("optimizer_states", states))
    temporary = step_temporary_bytes(training.optimizer, count, FP32_BYTES, count)
    if temporary:
        parts.append(part("optimizer_temporary", temporary, Phase.STEP))
    if layout.data > 1:
        parts.append(part("gradient_buckets", FP32_BYTES * count))
    return parts


# ---------------------------------------------------------------- activations


def activation_parts(workload: Workload, training: Training, pictured: Pictured) -> list[Component]:
    """What the VAE's encoder and the denoiser's passes hold, and what the allocator reserves over it."""
    shape, images, what = pictured.pipeline.denoiser, training.micro_batch, adapted(training)
    wide = element_bytes(workload) / 2  # kept bytes are counted for 16-bit states
    latents = pictured.latents
    moving: list[tuple[str, float, tuple[Phase, ...]]] = []
    if pictured.cached != "all":
        encoded = encoder_bytes(pictured.pipeline, pictured.width * pictured.height, _vae_element(workload, pictured))
        moving.append(("activations", images * encoded, (Phase.ENCODE,)))
    if training.checkpointing is Checkpointing.NONE:
        kept = kept_bytes(shape, latents, images, what) * wide
        moving.append(("activations", kept, UNTIL_STEP))
        moving.append(("backward_layer", running_bytes(shape, latents, images) * wide, FORWARD))
    else:
        again = again_bytes(shape, latents, images, what) * wide
        moving.append(("checkpoints", again, (Phase.BACKWARD,)))
        moving.append(("checkpoints", running_bytes(shape, latents, images) * wide, FORWARD))
    found = [part(name, Range.around(size, below=WITHIN, above=WITHIN), *phases) for name, size, phases in moving]
    found += [part("allocator_slack", MOVING_SLACK.scaled(size), *phases) for _, size, phases in moving]
    return [*found, *_unpacked(workload, pictured)]


def _unpacked(workload: Workload, pictured: Pictured) -> list[Component]:
    """The largest matrix of a quantised denoiser in 16 bits, as it is expanded for each product."""
    if not workload.task.trains_adapters or workload.weights.bits_per_weight >= 16:  # noqa: PLR2004 - plain types
        return []
    width = max(pictured.pipeline.denoiser.widths)
    return [part("dequantised_matrix", 2.0 * 6 * width * width, *UNTIL_STEP)]
