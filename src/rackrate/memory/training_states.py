"""Training states: weights, adapters, gradients, optimizer states and the buffers that replicas exchange."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.formats import WeightFormat
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_pass import FP32_BYTES, Pass
from rackrate.memory.optimizer import state_bytes, step_temporary_bytes
from rackrate.memory.overhead import BUCKET_ELEMENTS
from rackrate.memory.phases import part
from rackrate.memory.saved_modules import NOT_SAVED, Saved
from rackrate.memory.stages import Stage
from rackrate.memory.weights import ParameterGroups, head_on, params_on, weight_bytes
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Training, Workload

ZERO_STATES, ZERO_GRADIENTS, ZERO_WEIGHTS = 1, 2, 3
"""What the stages of ZeRO begin to divide (arXiv 1910.02054); FSDP is the third."""

LEFT_NARROW = frozenset({"gptq-int4", "gptq-int8"})
"""Formats beside which PEFT's preparation widens nothing."""

SUB_GROUP_ELEMENTS = 1e9
"""Elements that ZeRO 3 updates at a time (DeepSpeed config: sub_group_size)."""

DORA_COPIES = 3
"""FP32 copies of a matrix while the norms of adapted weights are taken: B A, the base and their sum (peft dora.py)."""

FORWARD = (Phase.FORWARD, Phase.LOSS)
PASSES = (Phase.FORWARD, Phase.BACKWARD)
UNTIL_STEP = (Phase.FORWARD, Phase.LOSS, Phase.BACKWARD)


class Setting(Value, frozen=True, kw_only=True):
    """One stage of a training run, with the sizes that every part needs.

    ``trained`` parameters (of which ``embeddings``) are held on this card
    before ZeRO divides them; ``weight_size`` is the bytes of a trained weight,
    ``element_size`` of an activation; ``pure``: no FP32 copies. ``kept`` is how
    a layer is run. ``trained_spread`` and ``base_spread``: what is trained, and
    the base, in proportion to this card's part where cards share experts.
    ``saved`` modules are trained whole beside adapters.
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
    kept: Pass
    trained_spread: float = 1.0
    base_spread: float = 1.0
    saved: Saved = NOT_SAVED

    @property
    def tokens(self) -> int:
        """Tokens of one micro-batch on this card."""
        return -(-self.training.micro_batch * self.training.written_tokens // self.layout.context)

    @property
    def sources(self) -> int:
        """Positions of a micro-batch that an encoder reads beside the decoder; 0 without one."""
        return self.training.micro_batch * self.training.read_tokens

    @property
    def gradients_stay(self) -> bool:
        """Whether gradients are there in the forward pass: they accumulate, or are zeroed and not freed."""
        stay = self.accumulates or self.policy.zeroes_gradients or self.policy.gradient_bytes > 0
        return stay and not self.training.step_in_backward

    @property
    def gradient_size(self) -> float:
        """Bytes of one gradient."""
        return self.policy.gradient_bytes or self.weight_size

    def sharded(self, size: float, stage: int) -> float:
        """``size`` of what is trained, divided over the data-parallel group from ZeRO ``stage`` on.

        Experts that cards share are divided among those that hold the same ones
        alone: a card's part of all of them is what it would be without sharing
        (Megatron-LM core/optimizer, expert data-parallel groups).
        """
        return self._divided(size, stage, self.trained_spread)

    def sharded_base(self, size: float) -> float:
        """``size`` of the frozen base, divided over the data-parallel group by ZeRO 3."""
        return self._divided(size, ZERO_WEIGHTS, self.base_spread)

    def _divided(self, size: float, stage: int, spread: float) -> float:
        return size * spread / self.layout.shards if self.layout.zero_stage >= stage else size

    def offloads(self, what: str) -> bool:
        """Whether ``what`` waits in the host's memory (parameters go with the optimizer)."""
        if what == "activations" and self.policy.checkpoints_on_host:
            return self.training.checkpointing is Checkpointing.FULL or self.training.offload == what
        said = self.training.offload
        return said == what or (what == "optimizer" and said == "parameters")


def weight_parts(s: Setting) -> list[Component]:
    """Frozen base and adapters, or the trained weights in the type they are computed in.

    Where the optimizer waits in the host's memory its FP32 weights do too, and
    the 16-bit ones stay on the card, divided by ZeRO 3 alone (ZeRO-Offload,
    arXiv 2101.06840 section 4).
    """
    if s.workload.task.trains_adapters:
        return _frozen_parts(s)
    layout = s.layout
    compute = s.element_size * s.trained
    if s.offloads("parameters"):
        return [_passing(s, compute)]
    if s.weight_size == s.element_size or s.offloads("optimizer"):
        return [part("weights", s.sharded(compute, ZERO_WEIGHTS)), *_gathered(s, compute)]
    if layout.zero_stage >= ZERO_WEIGHTS and layout.shards > 1:
        return _gathered(s, compute)
    return [part("weights", compute, *FORWARD, note="autocast copies")]


def _frozen_parts(s: Setting) -> list[Component]:
    form = stored_format(s.workload.weights, s.policy)
    base = weight_bytes(s.workload.model, s.groups, s.stage, form, ties=s.policy.ties_weights) / s.layout.tensor
    adapters = part("adapters", s.sharded(s.weight_size * s.trained, ZERO_WEIGHTS))
    copies = s.sharded(s.saved.weight_bytes, ZERO_WEIGHTS)
    trained = [adapters, part("saved_modules", copies)] if copies else [adapters]
    waits = s.offloads("parameters")
    parts = [_passing(s, base) if waits else part("weights", s.sharded_base(base)), *trained]
    if s.kept.quantised and widens(s.policy, s.workload.weights, s.layout):
        parts.append(part("upcast_weights", _widened_bytes(s)))
    if s.kept.quantised:
        parts.append(part("dequantised_matrix", s.policy.unpacked_bytes * largest_matrix(s), *UNTIL_STEP))
    if s.training.dora:
        parts.append(part("weight_norms", DORA_COPIES * FP32_BYTES * largest_matrix(s), *UNTIL_STEP))
    return parts if waits else [*parts, *_gathered(s, base, s.saved.weight_bytes)]


def widens(policy: TrainingPolicy, form: WeightFormat, layout: Layout) -> bool:
    """Whether everything beside a quantised base is widened to FP32.

    peft utils/other.py prepare_model_for_kbit_training does so beside bitsandbytes
    and AWQ and leaves GPTQ in 16 bits; trl models/utils.py does not call it where
    FSDP or ZeRO 3 divides the base, nor for AWQ, which is too much there.
    """
    divided = layout.zero_stage >= ZERO_WEIGHTS and layout.shards > 1
    return policy.upcasts and form.id not in LEFT_NARROW and not divided


def _widened_bytes(s: Setting) -> float:
    """What embedding, head and norms take in FP32 beyond their 16 bits (peft prepare_model_for_kbit_training)."""
    model = s.workload.model
    head = head_on(model, s.groups, s.stage, ties=s.policy.ties_weights)
    wide = (s.groups.embedding if s.stage.first else 0) + head + s.groups.norms * s.stage.fraction
    return (FP32_BYTES - 2) * wide / s.layout.tensor


def stored_format(form: WeightFormat, policy: TrainingPolicy) -> WeightFormat:
    """The format as this engine applies it: to every linear layer, the head among them, or not to the head."""
    return replace(form, head_16bit=False) if policy.quantises_head else form


def largest_matrix(s: Setting) -> float:
    """Weights of the largest matrix of a layer on one card: what is unpacked or updated at a time."""
    model = s.workload.model
    hidden = model.hidden_size or 0
    width = hidden if model.is_moe else max(model.intermediate_size or 0, hidden)
    return float(hidden * width) / s.layout.tensor


def layer_and_root(s: Setting, whole: float) -> tuple[float, float]:
    """``whole`` weights as one layer, and embedding, head and final norm together."""
    share = whole / max(1.0, params_on(s.workload.model, s.groups, s.stage, ties=s.policy.ties_weights))
    layer = (s.groups.layer_matrices + s.groups.norms) / s.stage.of * share
    return layer, max(0.0, whole - layer * s.stage.layers)


def keeps_stage(s: Setting) -> bool:
    """Whether a pipeline stage stays gathered: several micro-batches pass before gradients are exchanged.

    torchtitan reshards after the forward pass only without pipelines
    (distributed/fsdp.py, "default"), and torch's schedules defer the reduction to
    the last micro-batch (torch/distributed/pipelining/stage.py), so gradients
    grow whole, in the type of the reduction (FSDPParam.accumulate_unsharded_grad).
    """
    return s.policy.gathers_stage and s.layout.pipeline > 1 and s.accumulates


def _gathered(s: Setting, whole: float, outside: float = 0.0) -> list[Component]:
    """Weights gathered under ZeRO 3: the root and what is ``outside`` throughout, and two layers, one prefetched.

    PyTorch FSDP keeps its root unit gathered and prefetches one unit, none at the loss
    (docs.pytorch.org fully_shard: reshard_after_forward, prefetch); DeepSpeed's
    estimator counts 4 bytes x the largest layer (runtime/zero/stage3.py).
    """
    if s.layout.zero_stage < ZERO_WEIGHTS or s.layout.shards <= 1:
        return []
    if keeps_stage(s):
        return [part("gathered_layers", whole, *UNTIL_STEP, note="gathered for all micro-batches")]
    layer, root = layer_and_root(s, whole)
    if not s.policy.stream_pools:
        return [part("gathered_layers", root + outside + 2 * layer, *UNTIL_STEP)]
    held = kept_root(s, root) + outside + layer
    return [part("gathered_layers", held, *UNTIL_STEP), part("gathered_layers", layer, *PASSES, note="prefetched")]


def kept_root(s: Setting, root: float) -> float:
    """What of the ``root`` is gathered at once: the larger of embedding and head where they are units of their own."""
    embedding, head = s.groups.embedding if s.stage.first else 0, s.groups.head if s.stage.last else 0
    return root * max(embedding, head) / (embedding + head) if s.policy.splits_root and embedding and head else root


def _passing(s: Setting, whole: float) -> Component:
    """Weights that wait in the host's memory: two layers and the root pass through (arXiv 2104.07857)."""
    layer, root = layer_and_root(s, whole)
    return part("gathered_layers", root + 2 * layer, *UNTIL_STEP, note="the rest waits in the host's memory")


def state_parts(s: Setting) -> list[Component] | Unknown:
    """Gradients, optimizer states, FP32 copies and the step's working copy of the trained parameters."""
    training, n = s.training, s.trained
    moment = s.weight_size if s.pure else FP32_BYTES
    states = state_bytes(training.optimizer, n - s.embeddings, s.embeddings, moment)
    beside = s.saved.state_bytes(training.optimizer)
    if isinstance(states, Unknown):
        return states
    if isinstance(beside, Unknown):
        return beside
    divide = s.sharded(1.0, ZERO_STATES)
    parts = _gradient_parts(s)
    if s.offloads("optimizer"):
        return parts
    parts.append(part("optimizer_states", _together(states, beside).scaled(divide)))
    if s.saved.master_bytes:
        parts.append(part("saved_masters", s.saved.master_bytes * divide))
    if not s.pure and not (s.workload.task.trains_adapters and s.weight_size == FP32_BYTES):
        parts.append(part("master_weights", FP32_BYTES * n * divide))
        if s.gradient_size < FP32_BYTES:
            parts.append(part("fp32_gradients", _fp32_gradient_bytes(s, n * divide), Phase.STEP))
    at_once = largest_tensor(s)
    if not s.policy.optimizer_temporary and training.optimizer in {"adamw", "adam"}:
        return parts
    if training.step_in_backward:
        extra, when = step_temporary_bytes(training.optimizer, at_once, s.weight_size, at_once), Phase.BACKWARD
    else:
        extra, when = step_temporary_bytes(training.optimizer, n * divide, s.weight_size, at_once), Phase.STEP
        size = FP32_BYTES if s.saved.masters else s.saved.element_bytes
        copies = s.saved.params * divide  # tensors of another type are another group of the step
        extra = max(extra, step_temporary_bytes(training.optimizer, copies, size, at_once))
    return [*parts, part("optimizer_temporary", extra, when)] if extra else parts


def _together(one: Range, other: Range) -> Range:
    """Two sizes that are in memory or not together."""
    return Range(one.low + other.low, one.likely + other.likely, one.high + other.high)


def largest_tensor(s: Setting) -> float:
    """Parameters of the largest tensor that is trained: the embedding or head, or a matrix of a layer."""
    if s.workload.task.trains_adapters:
        return max(s.saved.embedding, s.saved.head)
    ends = max(s.groups.embedding if s.stage.first else 0, s.groups.head if s.stage.last else 0)
    return max(ends / s.layout.tensor, largest_matrix(s))


def _gradient_parts(s: Setting) -> list[Component]:
    """Gradients of all trained weights, or of one tensor where each is used as soon as it is there.

    Where the optimizer waits in the host's memory, gradients follow it as they
    are made, a layer at a time (ZeRO-Offload, arXiv 2101.06840 section 4).
    """
    if s.training.step_in_backward:
        return [part("gradients", s.weight_size * largest_tensor(s), Phase.BACKWARD, note="one tensor at a time")]
    if s.offloads("optimizer"):
        layer, _ = layer_and_root(s, s.trained)
        unit = s.gradient_size * max(layer, largest_tensor(s))
        return [part("gradients", unit, Phase.BACKWARD, note="the rest goes to the host's memory")]
    gradient = s.sharded(s.gradient_size * s.trained + s.saved.weight_bytes, ZERO_GRADIENTS)
    when = () if s.gradients_stay else (Phase.BACKWARD, Phase.STEP)
    return [part("gradients", gradient, *when), *_bucket_parts(s, gradient)]


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
    whole gradients exist before they are scattered; FSDP copies those of a unit
    into one FP32 buffer first (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py foreach_reduce).
    """
    if s.policy.bucket_elements and ZERO_STATES <= s.layout.zero_stage < ZERO_WEIGHTS:
        return [part("gradient_buckets", s.policy.bucket_elements * s.weight_size)]
    if s.layout.shards <= 1 or s.policy.gradient_bytes:  # a buffer of gradients is what replicas exchange
        return []
    if s.layout.zero_stage == 0:
        return [part("gradient_buckets", gradient)]
    if s.layout.zero_stage < ZERO_WEIGHTS:
        return [part("gradient_buckets", min(BUCKET_ELEMENTS, s.trained) * s.weight_size, Phase.BACKWARD)]
    if keeps_stage(s):
        return [part("gradient_buckets", FP32_BYTES * s.trained, *UNTIL_STEP, note="whole, of all micro-batches")]
    unit = s.weight_size * s.trained / s.stage.layers
    if s.policy.stream_pools:
        unit = (s.element_size + FP32_BYTES) * largest_unit(s)
    return [part("gradient_buckets", unit, Phase.BACKWARD)]


def largest_unit(s: Setting) -> float:
    """Trained parameters of the largest unit that is gathered and whose gradients are divided at once."""
    layer, root = layer_and_root(s, s.trained)
    return max(layer, kept_root(s, root))
