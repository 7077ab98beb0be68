"""Training: the time of one optimizer step."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rackrate.speed.communication import all_reduce_s
from rackrate.speed.estimate_types import Bound, longest
from rackrate.speed.flops import crossing_flop_per_token, trainable_params
from rackrate.speed.replica import STREAM_SHARE, Replica, routed_expert_params
from rackrate.speed.roofline import smooth_max
from rackrate.speed.sides import training_sides
from rackrate.speed.sustained import sustained
from rackrate.speed.training_terms import (
    attended_s,
    attention_s,
    experts_s,
    launching_s,
    matrices_s,
    passes,
    shard_s,
    stages_s,
    stream_s,
    tensor_s,
    tokens_in_micro_batch,
)
from rackrate.values import replace
from rackrate.workload.workload import Training, Workload

HOP_S = 2.4e-6
"""Seconds that each card more adds to a collective of sharded weights, of which a layer has three a micro-batch.

Fitted (tools/rate_numbers.csv): MPT models of 1B to 70B lose 3 to 10 % from
128 to 512 H100 (mosaicml/llm-foundry scripts/train/benchmarking README).
"""

PADDING_PER_ROOT_LOG = 0.5
"""Rows that are not packed are padded to the longest of the micro-batch: 1 + 0.5 sqrt(ln b) times their mean.

The expected maximum of b values with a coefficient of variation of about a half
(normal order statistics); the spread of common instruction data.
"""

# Bytes read and written for each trained parameter by the optimizer's step: mixed precision has FP32 gradient,
# master copy and two moments, and writes 16-bit weights; pure 16-bit training has 2 bytes of each.
_OPTIMIZER_BYTES = {False: 4 + 8 + 16 + 2, True: 2 + 4 + 8}
_SHARDS_WEIGHTS = 3  # ZeRO stage
_BACKWARD_SHARE = 2 / 3  # of a micro-step, during which gradients can be reduced


def useful_share(training: Training) -> float:
    """Tokens that are not padding; windows of sound are all of one length."""
    return 1.0 if training.packed or training.source_positions else 1 / padding(training.micro_batch)


def padding(sequences: int) -> float:
    """The longest of ``sequences`` rows over their mean."""
    return 1 + PADDING_PER_ROOT_LOG * math.sqrt(math.log(max(1, sequences)))


def micro_batches(replica: Replica, training: Training) -> int:
    """Micro-batches that one replica works off for each optimizer step."""
    return max(1, math.ceil(training.global_batch / (training.micro_batch * replica.layout.data)))


def micro_step_terms(replica: Replica, workload: Workload, training: Training) -> dict[Bound, float]:
    """Seconds that each resource of one stage is busy with one micro-batch, forward and backward.

    Matrix products and attention at the rates that the card sustains, or the
    reading of the weights once a pass where that is longer; memory traffic of
    everything between the products; host: launches of each pass; collectives.
    """
    if replica.encoder is not None:
        return _of_both(replica, replica.encoder, workload, training)
    card = sustained(replica.accelerator, replica.rates)
    working = matrices_s(replica, workload, training, card)
    reading = _reading_s(replica, training)
    terms = {
        Bound.COMPUTE: attention_s(replica, training, card),
        Bound.BANDWIDTH: stream_s(replica, workload, training),
        Bound.HOST: launching_s(replica, workload, training),
        Bound.COMMUNICATION: _waited_s(replica, training) + shard_s(replica, workload, training),
    }
    terms[Bound.COMPUTE if working >= reading else Bound.BANDWIDTH] += smooth_max(working, reading)
    return terms


def _of_both(decoder: Replica, encoder: Replica, workload: Workload, training: Training) -> dict[Bound, float]:
    """The same of an encoder-decoder: one side after the other, and attention to what was read.

    Nothing of it was fitted to encoder-decoders; rates are those of decoders.
    """
    (reading, read), (writing, written) = training_sides(workload, training)
    both = (
        micro_step_terms(encoder, reading, read),
        micro_step_terms(replace(decoder, encoder=None), writing, written),
    )
    terms = {bound: both[0][bound] + both[1][bound] for bound in both[0]}
    flop = tokens_in_micro_batch(decoder, written) * crossing_flop_per_token(writing.model, training)
    terms[Bound.COMPUTE] += attended_s(decoder, written, sustained(decoder.accelerator, decoder.rates), flop)
    return terms


def micro_step_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Seconds of one micro-batch: shards are gathered while the card works, other collectives are not hidden."""
    return _together(replica, workload, training, micro_step_terms(replica, workload, training))


def _together(replica: Replica, workload: Workload, training: Training, terms: Mapping[Bound, float]) -> float:
    card = terms[Bound.COMPUTE] + terms[Bound.BANDWIDTH]
    launched = max(card, terms[Bound.HOST]) if replica.eager else card + terms[Bound.HOST]
    shards = shard_s(replica, workload, training)
    return smooth_max(launched, shards) + terms[Bound.COMMUNICATION] - shards


def step_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Seconds of one optimizer step.

    ``m x micro-step x (1 + (p - 1) / (v m))`` with the pipeline's bubble (arXiv
    1811.06965, 2104.04473), the gradients' all-reduce as far as the last
    backward pass does not hide it, and the optimizer's pass over its states.
    """
    layout, pieces = replica.layout, micro_batches(replica, training)
    micro = micro_step_s(replica, workload, training)
    reduce = exposed_reduce_s(replica, workload, training, micro)
    shared = layout.shards / min(layout.expert, layout.shards) if layout.zero_stage else 1
    updated = held_params(replica, workload, training) / max(1.0, shared)
    optimizer = updated * _OPTIMIZER_BYTES[training.pure_16bit] / (replica.rates.bandwidth_bytes_per_s * STREAM_SHARE)
    bubble = micro * (layout.pipeline - 1) / chunks(replica)
    return (pieces * (micro + _hops_s(replica)) + bubble + reduce + optimizer) * replica.times.training


def exposed_reduce_s(replica: Replica, workload: Workload, training: Training, micro: float) -> float:
    """Seconds of the gradients' all-reduce that the last backward pass (``micro`` x 2/3) does not hide.

    None with sharded weights, whose gradients are scattered in every micro-step.
    """
    layout = replica.layout
    if layout.zero_stage >= _SHARDS_WEIGHTS:
        return 0.0
    held = held_params(replica, workload, training)
    return max(0.0, all_reduce_s(replica.link, layout.data, 2 * held) - _BACKWARD_SHARE * micro)


def tokens_per_step(replica: Replica, training: Training) -> float:
    """Tokens of one optimizer step over all replicas, padding left out."""
    sequences = micro_batches(replica, training) * training.micro_batch * replica.layout.data
    return sequences * training.sequence_tokens * useful_share(training)


def busiest(replica: Replica, workload: Workload, training: Training) -> Bound:
    """The resource that takes most of an optimizer step."""
    return longest(busy_s(replica, workload, training), eager=replica.eager)


def busy_s(replica: Replica, workload: Workload, training: Training) -> dict[Bound, float]:
    """Seconds that each resource is busy in an optimizer step, the optimizer's own pass left out."""
    pieces, once = micro_batches(replica, training), micro_step_terms(replica, workload, training)
    terms = {bound: pieces * seconds for bound, seconds in once.items()}
    terms[Bound.COMMUNICATION] += exposed_reduce_s(
        replica, workload, training, _together(replica, workload, training, once)
    )
    return terms


def chunks(replica: Replica) -> int:
    """Chunks of layers that a pipeline stage works off in turns: those of the layout, else the engine's usual ones.

    With v chunks the bubble is ``(p - 1) / v`` micro-steps (arXiv 2104.04473, section 2.2).
    """
    layout = replica.layout
    usual = min(replica.policy.stage_chunks, max(1, replica.layers // layout.pipeline))
    return layout.chunks if layout.chunks > 1 else usual


def held_params(replica: Replica, workload: Workload, training: Training) -> float:
    """Parameters with gradients that one card holds; experts are divided over the cards that share them."""
    layout = replica.layout
    trained = trainable_params(workload, training)
    if not workload.task.trains_adapters:
        trained -= routed_expert_params(replica.model) * (1 - 1 / layout.expert)
    return trained / (layout.tensor * layout.pipeline)


def _waited_s(replica: Replica, training: Training) -> float:
    """What nothing hides; stages that work off chunks in turns send while they work (Megatron-LM overlap_p2p_comm)."""
    sent = stages_s(replica, training) if chunks(replica) == 1 else 0.0
    return tensor_s(replica, training) + experts_s(replica, training) + sent


def _reading_s(replica: Replica, training: Training) -> float:
    layout = replica.layout
    bandwidth = replica.rates.bandwidth_bytes_per_s * replica.policy.decode_bandwidth * replica.stack_share
    touched = replica.read_bytes - replica.expert_bytes * (1 - 1 / layout.expert)
    return passes(training) * touched / (bandwidth * layout.tensor * layout.pipeline)


def _hops_s(replica: Replica) -> float:
    """What many cards add to the collectives of one micro-batch (sharded weights only)."""
    layout = replica.layout
    return 3 * replica.layers * HOP_S * layout.shards if layout.zero_stage >= _SHARDS_WEIGHTS else 0.0
