"""Training: what one card holds in each phase of an optimizer step."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.memory.adapters import adapter_params, expanded, magnitude_params
from rackrate.memory.estimate_types import Component, MemoryEstimate, Metric, Phase
from rackrate.memory.layer_pass import FP32_BYTES, Pass, element_bytes
from rackrate.memory.overhead import COLLECTIVE_BYTES, UNNAMED, OnCard
from rackrate.memory.phases import TRAINING, by_phase, highest, part, verdict
from rackrate.memory.saved_modules import Saved, saved_modules
from rackrate.memory.saving import saving_parts
from rackrate.memory.stages import Stage, stages
from rackrate.memory.training_passes import activation_parts, logits_hole, loss_parts
from rackrate.memory.training_states import (
    FORWARD,
    ZERO_GRADIENTS,
    Setting,
    largest_unit,
    state_parts,
    weight_parts,
    widens,
)
from rackrate.memory.weights import key_width, parameter_groups, params_on, query_width, shared_experts_out
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Training, Workload

THREADS = 2
"""Threads that multiply matrices: autograd runs the backward pass in its own."""


class StageDemand(Value, frozen=True, kw_only=True):
    """What one stage needs of any card: its parts, the allocator's slack among them, and the framework's own peaks."""

    parts: tuple[Component, ...]
    allocated: Range
    reserved: Range


class TrainingDemand(Value, frozen=True, kw_only=True):
    """What a training run needs of its cards, whatever they are; ``eager_context`` software loads every kernel."""

    stages: tuple[StageDemand, ...]
    eager_context: bool = False


def training_demand(workload: Workload, layout: Layout, engine: Engine) -> TrainingDemand | Unknown:
    """The needs of every stage of a training run."""
    training, policy = workload.training, engine.training
    if training is None or policy is None:
        return Unknown(f"how {engine.id} trains is not known")
    found = []
    accumulation = -(-training.global_batch // max(1, training.micro_batch * layout.data))
    for stage in stages(workload.model.layers or 1, layout, accumulation):
        setting = _setting(workload, training, policy, layout, stage)
        states = state_parts(setting)
        if isinstance(states, Unknown):
            return states
        held = (*weight_parts(setting), *states, *activation_parts(setting), *loss_parts(setting))
        parts = (*held, *saving_parts(setting))
        found.append(_with_slack(parts, setting))
    return TrainingDemand(stages=tuple(found), eager_context=policy.eager_context)


def train_on(demand: TrainingDemand, card: OnCard) -> MemoryEstimate:
    """The fullest card of a training run, for cards with this much usable memory and this CUDA context."""
    found = [_on_card(stage, card) for stage in demand.stages]
    return found[0] if len(found) == 1 else min(found, key=_headroom)


def _headroom(estimate: MemoryEstimate) -> float:
    return estimate.headroom_bytes


def _setting(workload: Workload, training: Training, policy: TrainingPolicy, layout: Layout, stage: Stage) -> Setting:
    model, whole = workload.model, parameter_groups(workload.model)
    groups = shared_experts_out(whole, layout.expert)
    ties = policy.ties_weights
    spread = params_on(model, whole, stage, ties=ties) / params_on(model, groups, stage, ties=ties)
    size = element_bytes(workload.precision)
    adapts = workload.task.trains_adapters
    pure = size == FP32_BYTES or not policy.master_weights or (training.pure_16bit and not adapts)
    if adapts:
        trained = adapter_params(model, training.lora_rank, training.lora_targets) * stage.fraction
        trained += magnitude_params(model, training.lora_targets) * stage.fraction if training.dora else 0.0
        embeddings = 0.0
        weight_size = max(size, policy.adapter_bytes)
    else:
        trained = params_on(model, groups, stage, ties=ties)
        embeddings = float(groups.embedding) if stage.first else 0.0
        weight_size = size if pure else policy.adapter_bytes
    accumulation = -(-training.global_batch // max(1, training.micro_batch * layout.data))
    kept = _pass(workload, training, policy, layout, weight_size)
    saved = saved_modules(workload, training, policy, stage, widened=kept.quantised and policy.upcasts)
    return Setting(
        workload=workload,
        training=training,
        policy=policy,
        layout=layout,
        stage=stage,
        groups=groups,
        element_size=size,
        weight_size=weight_size,
        pure=pure,
        trained=trained / layout.tensor,
        trained_spread=1.0 if adapts else spread,
        base_spread=spread,
        embeddings=embeddings / layout.tensor,
        accumulates=accumulation > 1,
        kept=kept,
        saved=_divided(saved, layout.tensor),
    )


def _divided(saved: Saved, tensor: int) -> Saved:
    return replace(saved, embedding=saved.embedding / tensor, head=saved.head / tensor)


def _pass(workload: Workload, training: Training, policy: TrainingPolicy, layout: Layout, weight_size: int) -> Pass:
    adapts = workload.task.trains_adapters
    size = element_bytes(workload.precision)
    quantised = adapts and workload.weights.bits_per_weight < 8 * size
    wide = quantised and widens(policy, workload.weights, layout)
    stores = wide and policy.grouped_scores and key_width(workload.model) < query_width(workload.model)
    return Pass(
        element_bytes=FP32_BYTES if wide else size,
        tensor=layout.tensor,
        flash=(training.attention or policy.attention) == "flash" and not stores,
        adapters=expanded(training.lora_targets) if adapts else (),
        adapter_bytes=weight_size,
        tokens_per_sequence=training.written_tokens,
        tokens=training.micro_batch * training.written_tokens,
        code=policy,
        quantised=quantised,
        compiled=training.compiled,
        sequence=layout.sequence,
    )


def _with_slack(parts: tuple[Component, ...], s: Setting) -> StageDemand:
    """Parts with what the allocator holds beyond them and, among several cards, the collectives' buffers."""
    parts = (*parts, part("unnamed", UNNAMED.scaled(highest(by_phase(parts, TRAINING))[1].likely)))
    allocated = highest(by_phase(parts, TRAINING))[1]
    parts = (*parts, *_pool_parts(s))
    ratio, base = s.policy.reserved_over_moving, [p for p in parts if p.name in _MOVING]
    if ratio is None:
        ratio, base = s.policy.reserved_over_allocated, list(parts)
    slack = Range(ratio.low - 1, ratio.likely - 1, ratio.high - 1)
    parts = (*parts, part("allocator_slack", slack.scaled(highest(by_phase(base, TRAINING))[1].likely)))
    reserved = highest(by_phase(parts, TRAINING))[1]
    if s.layout.gpus > 1:
        parts = (*parts, part("collectives", COLLECTIVE_BYTES))
    return StageDemand(parts=parts, allocated=allocated, reserved=reserved)


_MOVING = frozenset({"activations", "checkpoints", "backward_layer", "logits", "loss_gradient", "head_gradient"})


def _pool_parts(s: Setting) -> list[Component]:
    """Blocks that the allocator holds and the main stream cannot use.

    The caching allocator keeps a pool for each stream (CUDA semantics notes).
    torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: foreach_reduce
    makes the divided gradients on a stream of its own, foreach_all_gather the
    gathered unit on another, before it is copied out.
    """
    holes = [part("logits_hole", hole, Phase.LOSS)] if (hole := logits_hole(s)) else []
    if not s.policy.stream_pools or s.layout.shards <= 1 or s.layout.zero_stage < ZERO_GRADIENTS:
        return holes
    gradients = s.sharded(s.weight_size * s.trained + s.saved.weight_bytes, ZERO_GRADIENTS)
    if not s.gradients_stay:
        holes.append(part("stream_pools", gradients, *FORWARD))
    return [*holes, part("stream_pools", s.element_size * largest_unit(s))]


def _on_card(stage: StageDemand, card: OnCard) -> MemoryEstimate:
    """The estimate for one card, as the driver sees it."""
    workspace = THREADS * card.workspace
    parts = (*stage.parts, part("workspace", workspace), part("cuda_context", card.context))
    peaks = by_phase(parts, TRAINING)
    phase, peak = highest(peaks)
    return MemoryEstimate(
        components=parts,
        phases=peaks,
        peak_phase=phase,
        peak=peak,
        allocated=stage.allocated.shifted(workspace),
        reserved=stage.reserved.shifted(workspace),
        metric=Metric.DRIVER,
        usable_bytes=card.visible,
        verdict=verdict(peak, card.visible),
    )
