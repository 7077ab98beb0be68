"""Training: what one card holds in each phase of an optimizer step."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine, TrainingPolicy
from rackrate.memory.activations import (
    FP32_BYTES,
    Pass,
    checkpoint_bytes_per_token,
    element_bytes,
    saved_bytes_per_token,
    selective_bytes_per_token,
)
from rackrate.memory.adapters import adapter_params, expanded
from rackrate.memory.estimate_types import Component, MemoryEstimate, Metric, Phase
from rackrate.memory.logits import loss_bytes
from rackrate.memory.optimizer import state_bytes, step_temporary_bytes
from rackrate.memory.overhead import BUCKET_ELEMENTS, COLLECTIVE_BYTES
from rackrate.memory.phases import TRAINING, by_phase, highest, part, verdict
from rackrate.memory.stages import Stage, stages
from rackrate.memory.weights import ParameterGroups, is_encoder, parameter_groups, params_on, weight_bytes
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Training, Workload

ACTIVATION_SPREAD = (0.12, 0.12)
"""Relative half widths of activations under and over the formula (published rows against it)."""

ZERO_STATES, ZERO_GRADIENTS, ZERO_WEIGHTS = 1, 2, 3
"""What the stages of ZeRO begin to divide (arXiv 1910.02054); FSDP is the third."""

SUB_GROUP_ELEMENTS = 1e9
"""Elements that ZeRO 3 updates at a time (DeepSpeed config: sub_group_size)."""

_FORWARD = (Phase.FORWARD, Phase.LOSS)
_UNTIL_STEP = (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD)


class Setting(Value, frozen=True, kw_only=True):
    """One stage of a training run, with the sizes that every part needs.

    ``trained`` parameters (of which ``embeddings``) are held on this card
    before ZeRO divides them; ``weight_size`` is the bytes of a trained weight,
    ``element_size`` of an activation; ``pure``: no FP32 copies.
    """

    workload: Workload
    training: Training
    policy: TrainingPolicy
    layout: Layout
    stage: Stage
    groups: ParameterGroups
    element_size: int
    weight_size: int
    pure: bool
    trained: float
    embeddings: float
    accumulates: bool

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch."""
        return self.training.micro_batch * self.training.sequence_tokens

    def sharded(self, size: float, stage: int) -> float:
        """``size`` divided over the data-parallel group from ZeRO ``stage`` on."""
        return size / self.layout.data if self.layout.zero_stage >= stage else size


class StageDemand(Value, frozen=True, kw_only=True):
    """What one stage needs of any card: its parts, the allocator's slack among them, and the framework's own peaks."""

    parts: tuple[Component, ...]
    allocated: Range
    reserved: Range


class TrainingDemand(Value, frozen=True, kw_only=True):
    """What a training run needs of its cards, whatever they are."""

    stages: tuple[StageDemand, ...]


def training_demand(workload: Workload, layout: Layout, engine: Engine) -> TrainingDemand | Unknown:
    """The needs of every stage of a training run."""
    training, policy = workload.training, engine.training
    if training is None or policy is None:
        return Unknown(f"how {engine.id} trains is not known")
    found = []
    accumulation = -(-training.global_batch // max(1, training.micro_batch * layout.data))
    for stage in stages(workload.model.layers or 1, layout, accumulation):
        setting = _setting(workload, training, policy, layout, stage)
        states = _state_parts(setting)
        if isinstance(states, Unknown):
            return states
        parts = (*_weight_parts(setting), *states, *_activation_parts(setting), *_loss_parts(setting))
        found.append(_with_slack(parts, setting))
    return TrainingDemand(stages=tuple(found))


def train_on(demand: TrainingDemand, visible: float, context: Range) -> MemoryEstimate:
    """The fullest card of a training run, for cards with ``visible`` bytes and this CUDA context."""
    found = [_on_card(stage, visible, context) for stage in demand.stages]
    return found[0] if len(found) == 1 else min(found, key=_headroom)


def _headroom(estimate: MemoryEstimate) -> float:
    return estimate.headroom_bytes


def _setting(workload: Workload, training: Training, policy: TrainingPolicy, layout: Layout, stage: Stage) -> Setting:
    model = workload.model
    groups = parameter_groups(model)
    size = element_bytes(workload.precision)
    pure = (
        size == FP32_BYTES or not policy.master_weights or (training.pure_16bit and not workload.task.trains_adapters)
    )
    if workload.task.trains_adapters:
        trained = adapter_params(model, training.lora_rank, training.lora_targets) * stage.fraction
        embeddings = 0.0
        weight_size = max(size, policy.adapter_bytes)
    else:
        whole = params_on(model, groups, stage, ties=policy.ties_weights)
        embeddings = float(groups.embedding) if stage.first else 0.0
        trained = whole
        weight_size = size if pure else policy.adapter_bytes
    accumulation = -(-training.global_batch // max(1, training.micro_batch * layout.data))
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
        embeddings=embeddings / layout.tensor,
        accumulates=accumulation > 1,
    )


def _weight_parts(s: Setting) -> list[Component]:
    """Frozen base and adapters, or the trained weights in the type they are computed in."""
    model, layout, ties = s.workload.model, s.layout, s.policy.ties_weights
    if s.workload.task.trains_adapters:
        form = s.workload.weights
        base = weight_bytes(model, s.groups, s.stage, form, ties=ties) / layout.tensor
        parts = [
            part("weights", s.sharded(base, ZERO_WEIGHTS)),
            part("adapters", s.sharded(s.weight_size * s.trained, ZERO_WEIGHTS)),
        ]
        if form.bits_per_weight < 8 * s.element_size:
            parts.append(part("dequantised_matrix", _largest_matrix_bytes(s), *_UNTIL_STEP))
        return [*parts, *_gathered(s, base)]
    compute = s.element_size * s.trained
    if s.weight_size == s.element_size:
        return [part("weights", s.sharded(compute, ZERO_WEIGHTS)), *_gathered(s, compute)]
    if layout.zero_stage >= ZERO_WEIGHTS and layout.data > 1:
        return _gathered(s, compute)
    return [part("weights", compute, *_FORWARD, note="autocast copies")]


def _largest_matrix_bytes(s: Setting) -> float:
    """A quantised matrix is unpacked to the compute type for each product (bitsandbytes MatMul4Bit)."""
    model = s.workload.model
    width = max(model.intermediate_size or 0, model.hidden_size or 0) if not model.is_moe else model.hidden_size or 0
    return (model.hidden_size or 0) * width * s.element_size / s.layout.tensor


def _gathered(s: Setting, whole: float) -> list[Component]:
    """Weights gathered under ZeRO 3: embedding, head and norms throughout, and two layers, one prefetched.

    PyTorch FSDP keeps its root unit gathered and prefetches one unit
    (docs.pytorch.org fully_shard: reshard_after_forward, prefetch); DeepSpeed's
    estimator counts 4 bytes x the largest layer (runtime/zero/stage3.py).
    """
    if s.layout.zero_stage < ZERO_WEIGHTS or s.layout.data <= 1:
        return []
    share = whole / max(1.0, params_on(s.workload.model, s.groups, s.stage, ties=s.policy.ties_weights))
    layers = (s.groups.layer_matrices + s.groups.norms) / s.stage.of * share
    root = max(0.0, whole - layers * s.stage.layers)
    return [part("gathered_layers", root + 2 * layers, *_UNTIL_STEP)]


def _state_parts(s: Setting) -> list[Component] | Unknown:
    """Gradients, optimizer states, FP32 copies and the step's working copy of the trained parameters."""
    training, n = s.training, s.trained
    moment = s.weight_size if s.pure else FP32_BYTES
    states = state_bytes(training.optimizer, n - s.embeddings, s.embeddings, moment)
    if isinstance(states, Unknown):
        return states
    gradient = s.sharded(s.weight_size * n, ZERO_GRADIENTS)
    when = () if s.accumulates else (Phase.BACKWARD, Phase.STEP)
    divide = s.sharded(1.0, ZERO_STATES)
    parts = [part("gradients", gradient, *when), part("optimizer_states", states.scaled(divide))]
    if not s.pure and not (s.workload.task.trains_adapters and s.weight_size == FP32_BYTES):
        parts.append(part("master_weights", FP32_BYTES * n * divide))
        if s.weight_size < FP32_BYTES:
            parts.append(part("fp32_gradients", _fp32_gradient_bytes(s, n * divide), Phase.STEP))
    if s.policy.optimizer_temporary:
        extra = step_temporary_bytes(training.optimizer, n * divide, s.weight_size)
        parts.append(part("optimizer_temporary", extra, Phase.STEP))
    return [*parts, *_bucket_parts(s, gradient)]


def _fp32_gradient_bytes(s: Setting, shard: float) -> float:
    """16-bit gradients are widened before they meet FP32 weights: the whole shard, or a sub-group at a time in ZeRO 3.

    deepspeedai/DeepSpeed runtime/zero/stage_1_and_2.py step; stage3.py
    _prepare_fp32_grad_for_sub_group, sub_group_size.
    """
    return FP32_BYTES * (min(shard, SUB_GROUP_ELEMENTS) if s.layout.zero_stage >= ZERO_WEIGHTS else shard)


def _bucket_parts(s: Setting, gradient: float) -> list[Component]:
    """Buffers in which replicas exchange gradients.

    Plain data parallelism copies all gradients into buckets (torch DDP without
    gradient_as_bucket_view: peak memory rises by the size of the gradients);
    ZeRO 1 and 2 use one flat buffer; ZeRO 3 works a layer at a time, whose
    whole gradients exist before they are scattered.
    """
    if s.layout.data <= 1:
        return []
    if s.layout.zero_stage == 0:
        return [part("gradient_buckets", gradient)]
    if s.layout.zero_stage < ZERO_WEIGHTS:
        return [part("gradient_buckets", min(BUCKET_ELEMENTS, s.trained) * s.weight_size, Phase.BACKWARD)]
    layer = s.weight_size * s.trained / s.stage.layers
    return [part("gradient_buckets", layer, Phase.BACKWARD)]


def _pass(s: Setting) -> Pass:
    names = expanded(s.training.lora_targets) if s.workload.task.trains_adapters else ()
    return Pass(
        element_bytes=s.element_size,
        tensor=s.layout.tensor,
        flash=s.policy.attention == "flash",
        adapters=names,
        adapter_bytes=s.weight_size,
        tokens_per_sequence=s.training.sequence_tokens,
        tokens=s.tokens,
    )


def _activation_parts(s: Setting) -> list[Component]:
    """Activations of the micro-batches in flight, with one layer recomputed or left at the end of the backward pass.

    Gradients grow while activations are freed layer by layer, so the backward
    pass holds the larger of both beside one layer's activations. Gradients that
    accumulate are there all the time.
    """
    model, how = s.workload.model, _pass(s)
    layer = saved_bytes_per_token(model, how) * s.tokens
    batches = s.stage.layers * s.stage.in_flight
    if s.training.checkpointing is Checkpointing.NONE:
        kept, name = layer * batches, "activations"
    elif s.training.checkpointing is Checkpointing.SELECTIVE:
        kept, name = selective_bytes_per_token(model, how) * s.tokens * batches, "checkpoints"
    else:
        kept, name = checkpoint_bytes_per_token(model, how) * s.tokens * batches, "checkpoints"
    growing = 0.0 if s.accumulates else s.sharded(s.weight_size * s.trained, ZERO_GRADIENTS)
    again = s.training.checkpointing is not Checkpointing.NONE or s.stage.in_flight > 1
    whole = again and not growing
    parts = [part(name, _spread(kept), *(_UNTIL_STEP if whole else _FORWARD))]
    parts.append(part("backward_layer", _spread(layer), Phase.BACKWARD))
    if again and not whole and kept > growing:
        parts.append(part(name, _spread(kept - growing), Phase.BACKWARD, note="beyond the gradients"))
    return parts


def _spread(size: float) -> Range:
    below, above = ACTIVATION_SPREAD
    return Range.around(size, below=below, above=above)


def _loss_parts(s: Setting) -> list[Component]:
    """Logits after the forward pass and at the peak of the loss, vocabulary divided by tensor parallelism."""
    model = s.workload.model
    if not s.stage.last or is_encoder(model):
        return []
    vocabulary = (model.vocab_size or 0) / s.layout.tensor
    kept, peak = loss_bytes(s.policy.loss, s.tokens, vocabulary, model.hidden_size or 0)
    return [part("logits", kept, *_FORWARD), part("loss_gradient", peak - kept, Phase.LOSS)]


def _with_slack(parts: tuple[Component, ...], s: Setting) -> StageDemand:
    """Parts with what the allocator holds beyond them and, among several cards, the collectives' buffers."""
    allocated = highest(by_phase(parts, TRAINING))[1]
    ratio = s.policy.reserved_over_allocated
    slack = Range(ratio.low - 1, ratio.likely - 1, ratio.high - 1).scaled(allocated.likely)
    parts = (*parts, part("allocator_slack", slack))
    reserved = highest(by_phase(parts, TRAINING))[1]
    if s.layout.gpus > 1:
        parts = (*parts, part("collectives", COLLECTIVE_BYTES))
    return StageDemand(parts=parts, allocated=allocated, reserved=reserved)


def _on_card(stage: StageDemand, visible: float, context: Range) -> MemoryEstimate:
    """The estimate for one card, as the driver sees it."""
    parts = (*stage.parts, part("cuda_context", context))
    peaks = by_phase(parts, TRAINING)
    phase, peak = highest(peaks)
    return MemoryEstimate(
        components=parts,
        phases=peaks,
        peak_phase=phase,
        peak=peak,
        allocated=stage.allocated,
        reserved=stage.reserved,
        metric=Metric.DRIVER,
        usable_bytes=visible,
        verdict=verdict(peak, visible),
    )
