"""Saving: what a card holds beside the states of a run while a checkpoint is written."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_pass import FP32_BYTES
from rackrate.memory.optimizer import state_bytes
from rackrate.memory.phases import part
from rackrate.memory.training_states import ZERO_WEIGHTS, Setting, largest_matrix, stored_format
from rackrate.memory.weights import weight_bytes

GATHERED, ON_CARD = "gathered", "on_card"
"""Ways to save that put the shards of a card together; ``shards`` are written as they are."""


def saving_parts(s: Setting) -> list[Component]:
    """What is put together of weights that ZeRO 3 divides, on the card that writes them.

    Tensors that a card holds whole go to the host one by one as they are written
    (safetensors, torch.save), and so do shards that every card writes itself
    (torch.distributed.checkpoint; DeepSpeed save_checkpoint; Megatron-LM torch_dist).
    ``gathered``: one tensor at a time is put together and moved to the host, so that the
    largest counts (DeepSpeed runtime/engine.py _zero3_consolidated_16bit_state_dict;
    torch.distributed.checkpoint StateDictOptions with full_state_dict and cpu_offload).
    ``on_card``: all of them are put together on the card before they are written, the
    optimizer's states too (the same without cpu_offload).
    """
    how = s.training.saving or (s.policy.savings[0] if s.policy.savings else "")
    if s.layout.zero_stage < ZERO_WEIGHTS or s.layout.shards <= 1 or how not in {GATHERED, ON_CARD}:
        return []
    if how == GATHERED:
        return [part("saved_weights", _largest_bytes(s), Phase.SAVE, note="one tensor at a time")]
    return [part("saved_weights", _whole_bytes(s), Phase.SAVE, note="the whole model on the card that writes")]


def _largest_bytes(s: Setting) -> float:
    """The largest tensor of the model in the type that it is kept in: embedding, head, or a layer's matrix."""
    if s.workload.task.trains_adapters and s.policy.saves_adapters_alone:
        return 0.0
    size = s.element_size if s.workload.task.trains_adapters else s.weight_size
    ends = max(s.groups.embedding if s.stage.first else 0, s.groups.head if s.stage.last else 0)
    return size * max(ends / s.layout.tensor, largest_matrix(s))


def _whole_bytes(s: Setting) -> float:
    """All that the cards of the data-parallel group hold of this stage: weights, and the states of what is trained."""
    states = state_bytes(s.training.optimizer, s.trained, 0.0, s.weight_size if s.pure else FP32_BYTES)
    moments = 0.0 if isinstance(states, Unknown) else states.likely
    whole = s.weight_size * s.trained + moments
    if not s.workload.task.trains_adapters or s.policy.saves_adapters_alone:
        return whole
    form = stored_format(s.workload.weights, s.policy)
    base = weight_bytes(s.workload.model, s.groups, s.stage, form, ties=s.policy.ties_weights) / s.layout.tensor
    return whole + base
