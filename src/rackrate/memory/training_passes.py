"""Training passes: activations, recomputation, logits and loss of the micro-batches in flight."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.memory.activations import (
    checkpoint_bytes_per_token,
    final_norm_bytes,
    first_norm_bytes_per_token,
    mlp_bytes,
    running_bytes_per_token,
    saved_bytes_per_token,
    selective_bytes_per_token,
)
from rackrate.memory.adapters import output_widths
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_inputs import left_input_bytes
from rackrate.memory.logits import DIVIDED_PEAK, FULL_PEAK, LISTED_FORWARD, LISTED_LEFT, LOGITS_HOLE, Loss, loss_bytes
from rackrate.memory.phases import part
from rackrate.memory.training_states import FORWARD, UNTIL_STEP, ZERO_GRADIENTS, ZERO_WEIGHTS, Setting
from rackrate.memory.traits import caps_scores
from rackrate.memory.two_sided_training import (
    biased_parts,
    kept_bytes,
    loss_of_both,
    spectrogram_parts,
    tied_parts,
)
from rackrate.memory.weights import is_encoder
from rackrate.workload.workload import Checkpointing

ACTIVATION_SPREAD = (0.08, 0.08)
"""Relative half widths of activations under and over the formula (published rows against it)."""

UNEVEN = 0.25
"""Of the mean, what the fullest card's experts may get beyond it: capacities in use are 1.0 to 1.25 times the mean
(Fedus, Zoph, Shazeer, Switch Transformers, arXiv 2101.03961, page 7)."""

GATHERED_IN_LAYER = 3
"""Gathered hidden states while a layer goes backward: both blocks' inputs and the gradient of one."""

STAGED_LAYERS = 2
"""Layers whose activations are on the card when the rest waits in the host's memory (torchtune OffloadActivations)."""


def activation_parts(s: Setting) -> list[Component]:
    """Activations of the micro-batches in flight, with one layer recomputed or left at the end of the backward pass.

    Gradients grow while activations are freed layer by layer, so the backward
    pass holds the larger of both beside one layer's activations. Gradients that
    accumulate are there all the time.
    """
    kept, layer, name = _kept_and_running(s)
    growing = _growing_gradients(s)
    again = s.training.checkpointing is not Checkpointing.NONE or s.stage.in_flight > 1
    whole = again and not growing
    whole_range = _in_doubt(s, _spread(kept))
    if s.training.checkpointing is not Checkpointing.FULL:
        whole_range = _unevenly_routed(s, whole_range)
    parts = [part(name, whole_range, *(UNTIL_STEP if whole else FORWARD))]
    parts.append(part("backward_layer", _unevenly_routed(s, _spread(layer)), Phase.BACKWARD))
    if again and not whole and kept > growing:
        beyond = Range(*(max(0.0, size - growing) for size in (whole_range.low, whole_range.likely, whole_range.high)))
        parts.append(part(name, beyond, Phase.BACKWARD, note="beyond the gradients"))
    if s.workload.model.is_encoder_decoder:
        return [*parts, *tied_parts(s, layer, growing), *biased_parts(s), *spectrogram_parts(s)]
    parts += _gathered_inputs(s)
    parts += _tied_gradients(s, layer, max(kept, growing) if again else growing, growing)
    return [*parts, *_left_inputs(s)]


def _kept_and_running(s: Setting) -> tuple[float, float, str]:
    """What is kept of the micro-batches in flight, what one layer holds running backward, and the former's name."""
    if s.workload.model.is_encoder_decoder:
        whole = s.training.checkpointing is Checkpointing.NONE
        return *kept_bytes(s), "activations" if whole else "checkpoints"
    layer = (saved_bytes_per_token(s.workload.model, s.kept) + _magnitude_bytes(s)) * s.tokens
    kept, name = _kept_in_flight(s, layer)
    kept += final_norm_bytes(s.workload.model, s.kept) * s.tokens if s.stage.last else 0.0
    if s.saved.head:  # a trained head keeps its input
        kept += (s.workload.model.hidden_size or 0) * s.kept.element_bytes * s.tokens
    layer += running_bytes_per_token(s.workload.model, s.kept) * s.tokens
    return kept, layer, name


def _in_doubt(s: Setting, kept: Range) -> Range:
    """Inputs of recomputed layers, twice on the high side where a frozen base is divided over cards.

    Three tables of FSDP with adapters (torch 2.2 to 2.4) hold about two hidden
    states a layer and token, where one is kept on one card and in a run of torch
    2.13; why is not known (docs/memory-measured.md).
    """
    divided = s.layout.zero_stage >= ZERO_WEIGHTS and s.layout.shards > 1
    doubted = divided and s.policy.hub_code and s.workload.task.trains_adapters
    if not doubted or s.training.checkpointing is not Checkpointing.FULL:
        return kept
    return Range(kept.low, kept.likely, 2.0 * kept.likely)


def _unevenly_routed(s: Setting, size: Range) -> Range:
    """What layers keep, with the tokens of the fullest card on the high side where cards divide the experts.

    Tokens choose their experts, so that some cards get more than the mean. Without a
    capacity nothing bounds it; the high side is that of the capacities in use.
    """
    model = s.workload.model
    if s.layout.expert == 1 or not model.is_moe:
        return size
    share = mlp_bytes(model, s.kept) / saved_bytes_per_token(model, s.kept)
    return Range(size.low, size.likely, size.high * (1 + UNEVEN * share))


def _gathered_inputs(s: Setting) -> list[Component]:
    """Hidden states gathered over the cards that divide a layer's sequence: the head's input, and two of one layer.

    torch keeps them for the gradients of the weights (torch/distributed/tensor/
    parallel/style.py ColwiseParallel: Shard to Replicate before the product);
    Megatron gathers them again (arXiv 2205.05198 section 4.2.2).
    """
    if not (s.policy.torch_loss and s.layout.sequence and s.layout.tensor > 1):
        return []
    whole = (s.workload.model.hidden_size or 0) * s.kept.element_bytes * s.tokens
    head = [part("gathered_inputs", whole, *FORWARD)] if s.stage.last else []
    return [*head, part("gathered_inputs", GATHERED_IN_LAYER * whole, Phase.BACKWARD)]


def _magnitude_bytes(s: Setting) -> float:
    """What DoRA keeps of a token in one layer: the base's and the adapter's output of each target.

    Both are multiplied by the scaled magnitude, which is trained (peft
    tuners/lora/dora.py DoraLinearLayer.forward).
    """
    if not (s.training.dora and s.workload.task.trains_adapters):
        return 0.0
    outputs = sum(width for _, width in output_widths(s.workload.model, s.training.lora_targets))
    return 2.0 * outputs * max(s.element_size, s.weight_size) / s.layout.tensor


def _kept_in_flight(s: Setting, layer: float) -> tuple[float, str]:
    """What all layers keep of the micro-batches in flight, and its name."""
    model, batches = s.workload.model, s.stage.layers * s.stage.in_flight
    if s.training.checkpointing is Checkpointing.NONE:
        each, name = layer, "activations"
    elif s.training.checkpointing is Checkpointing.SELECTIVE:
        each, name = selective_bytes_per_token(model, s.kept) * s.tokens, "checkpoints"
    else:
        each, name = checkpoint_bytes_per_token(model, s.kept) * s.tokens, "checkpoints"
    first = 0.0
    if s.training.checkpointing is Checkpointing.NONE and s.stage.first and not s.saved.embedding:
        first = first_norm_bytes_per_token(model, s.kept) * s.tokens
    return each * (min(STAGED_LAYERS, batches) if s.offloads("activations") else batches) - first, name


def _tied_gradients(s: Setting, layer: float, counted: float, growing: float) -> list[Component]:
    """Two gradients of a tied embedding and their sum, at the end of the backward pass, beyond what is ``counted``.

    Autograd keeps the head's gradient until the embedding's is there and adds
    them out of place, because the first has other users (pytorch/pytorch
    torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace). The sum is
    among the gradients that grow, and beside those that accumulate.
    """
    tied = s.workload.model.tie_embeddings and s.policy.ties_weights and s.stage.first and s.stage.last
    if not tied or not s.embeddings or s.training.step_in_backward or s.layout.zero_stage >= ZERO_GRADIENTS:
        return []
    held = (2 if growing else 3) * s.weight_size * s.embeddings
    more = growing + held - counted - layer
    return [part("tied_gradients", more, Phase.BACKWARD)] if more > 0 else []


def _growing_gradients(s: Setting) -> float:
    """Gradients that come into being while activations go; none where they are there already or freed at once."""
    if s.gradients_stay or s.training.step_in_backward:
        return 0.0
    return s.sharded(s.weight_size * s.trained + s.saved.weight_bytes, ZERO_GRADIENTS)


def _left_inputs(s: Setting) -> list[Component]:
    """Inputs of the micro-batch before, as long as the loop's variables refer to its graph."""
    each = left_input_bytes(s.workload.model, s.kept) if s.policy.keeps_batch else 0.0
    if not each:
        return []
    return [part("previous_inputs", _of_the_batch_before(s, each * s.tokens * s.stage.layers), *FORWARD)]


def _of_the_batch_before(s: Setting, size: float) -> Range:
    """``size`` if the batch before was as long; where the longest sample alone is, likely none of it."""
    return _spread(size) if s.training.packed else Range(0.0, 0.0, size)


def _spread(size: float) -> Range:
    below, above = ACTIVATION_SPREAD
    return Range.around(size, below=below, above=above)


def loss_parts(s: Setting) -> list[Component]:
    """Logits after the forward pass and at the peak of the loss, vocabulary divided by tensor parallelism."""
    model = s.workload.model
    if not s.stage.last or is_encoder(model):
        return []
    if model.is_encoder_decoder:
        return loss_of_both(s)
    vocabulary, hidden = (model.vocab_size or 0) / s.layout.tensor, model.hidden_size or 0
    kind = s.training.loss or s.policy.loss
    loss = _loss(s, kind)
    kept, peak = loss_bytes(loss, s.tokens, vocabulary, hidden)
    if caps_scores(model) and s.policy.hub_code and kind == "full":  # capped logits keep the tangent
        kept, peak = (size + s.element_size * s.tokens * vocabulary for size in (kept, peak))
    if s.policy.keeps_batch and kind == "chunked":
        return _listed_parts(s, vocabulary, hidden, peak)
    peaks = _with_held_logits(s, kind, peak, s.tokens * vocabulary)
    parts = [part("logits", kept, *FORWARD), part("loss_gradient", peaks.shifted(-kept), Phase.LOSS)]
    return [*parts, *_head_gradient(s, vocabulary * hidden)] if kind == "chunked" else parts


def _loss(s: Setting, kind: str) -> Loss:
    """The loss of this engine: torch's own has steps of its own where it is divided, and may not be compiled."""
    own, compiled = s.policy.torch_loss, s.training.compiled
    return Loss(
        kind=kind,
        chunked_bytes=s.policy.chunked_bytes,
        compiled=compiled and not own,
        full_bytes=DIVIDED_PEAK if own and s.layout.tensor > 1 else s.policy.full_bytes,
        fused_compile=compiled and own and s.policy.compiles_loss,
    )


def logits_hole(s: Setting) -> float:
    """What the allocator holds beyond the peak of torch's full loss, uncompiled, whose logits are freed early."""
    training, last = s.training, s.stage.last
    if (
        not s.policy.torch_loss
        or not last
        or (training.loss or s.policy.loss) != "full"
        or is_encoder(s.workload.model)
    ):
        return 0.0
    if training.compiled and s.policy.compiles_loss:
        return 0.0
    return LOGITS_HOLE * s.tokens * (s.workload.model.vocab_size or 0) / s.layout.tensor


def _with_held_logits(s: Setting, kind: str, peak: float, entries: float) -> Range:
    """The peak of the loss with the logits that a loop's own variable still holds while gradients are made.

    ``output = model(...); output.loss.backward()`` keeps the logits, in FP32 where
    everything is widened; a Trainer frees them before (transformers trainer.py
    compute_loss), so there they count on the high side alone.
    """
    if kind == "full" and s.policy.torch_loss:
        return Range.exact(peak + s.policy.held_logit_bytes * entries)
    if kind != "full" or not s.policy.hub_code:
        return Range.exact(peak)
    held = max(s.policy.held_logit_bytes or s.element_size, s.kept.element_bytes)
    backward = min(peak, FULL_PEAK * entries) + held * entries
    return Range(peak, max(peak, backward) if s.policy.held_logit_bytes else peak, max(peak, backward))


def _head_gradient(s: Setting, weights: float) -> list[Component]:
    """The gradient of a head that is used in chunks, and the next chunk's share added to it, beside the logits."""
    if s.workload.task.trains_adapters:
        return []
    return [part("head_gradient", 2 * s.weight_size * weights, Phase.LOSS)]


def _listed_parts(s: Setting, vocabulary: float, hidden: int, peak: float) -> list[Component]:
    """Logits in a list of chunks, the list of the batch before beside them until the forward pass ends.

    A quantised head is unpacked for each chunk: while 16-bit logits are made,
    and in the backward pass beside the list and the gradients of its chunks in
    16 bits.
    """
    entries = vocabulary * s.tokens
    made = LISTED_FORWARD * entries
    if s.kept.quantised and s.policy.quantises_head:
        unpacked = s.policy.unpacked_bytes * vocabulary * hidden
        made = max(made, s.element_size * entries + unpacked)
        peak = max(peak, (LISTED_LEFT + s.element_size) * entries + unpacked)
    before = _of_the_batch_before(s, LISTED_LEFT * entries)
    return [
        part("logits", made, Phase.FORWARD),
        part("previous_logits", before, Phase.FORWARD),
        part("loss_gradient", peak, Phase.LOSS),
    ]
