"""Training: the time of one optimizer step."""

from __future__ import annotations

import math

from rackrate.facts.accelerator import Precision
from rackrate.speed.communication import all_reduce_s, gather_s, tensor_parallel_s
from rackrate.speed.decode import ACTIVATION_BYTES, launch_s
from rackrate.speed.estimate_types import Bound, longest
from rackrate.speed.flops import (
    attention_training_flop_per_token,
    matrix_training_flop_per_token,
    trainable_params,
)
from rackrate.speed.replica import STREAM_SHARE, Replica, is_packed
from rackrate.speed.roofline import smooth_max
from rackrate.workload.workload import Checkpointing, Training, Workload

ELEMENTWISE_BYTES = 200.0
"""Bytes that norms, activations, rotations and residuals move for each token, layer and hidden unit, both ways.

About 34 bytes are stored for the backward pass (Korthikanti et al., arXiv
2205.05198, equation 1) and each is written and read in both passes; the value is
the one that makes MPT models of 125M to 30B agree (mosaicml/llm-foundry
scripts/train/benchmarking, A100 and H100). Small hidden sizes feel it most.
"""

ATTENTION_SHARE = 0.45
"""What attention reaches forward and backward, relative to matrix products.

Long sequences of MPT models (mosaicml/llm-foundry, 16k to 64k tokens) lose half
of the utilisation once the causal half is not counted.
"""

LOGIT_BYTES = 16.0
"""Bytes moved for each token and vocabulary entry: logits in 16 and 32 bits, softmax, gradient."""

NARROW_SHARE = 0.7
"""Of the doubled FP8 rate, what training keeps: about 1.3 to 1.4 times the 16-bit speed, not 2 times.

1.28 times on H100 (pytorch/torchtitan performance docs): casts, scales and the
parts that stay in 16 bits take the rest.
"""

ADAPTER_LAUNCHES = 2.0
"""Kernels of a layer with adapters, relative to the plain layer: each target gets two small products more.

LoRA with PEFT takes at least 1.2 ms a layer and pass on A100 servers (QwenLM/Qwen README, profiles of 1.8B, 7B and
14B at 256 tokens), where plain eager layers take 0.6.
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
    """Tokens that are not padding."""
    if training.packed or training.micro_batch <= 1:
        return 1.0
    return 1 / (1 + PADDING_PER_ROOT_LOG * math.sqrt(math.log(training.micro_batch)))


def micro_batches(replica: Replica, training: Training) -> int:
    """Micro-batches that one replica works off for each optimizer step."""
    return max(1, math.ceil(training.global_batch / (training.micro_batch * replica.layout.data)))


def micro_step_terms(replica: Replica, workload: Workload, training: Training) -> dict[Bound, float]:
    """Seconds that each resource of one stage is busy with one micro-batch, forward and backward.

    Matrix products ``tokens x FLOPs / (FL n e)``, or the reading of the weights
    once a pass where that is longer; memory traffic of everything between the
    products; host: launches of each pass; collectives.
    """
    matrices, bound = _matrices_s(replica, workload, training)
    terms = {
        Bound.COMPUTE: 0.0,
        Bound.BANDWIDTH: _stream_s(replica, training),
        Bound.HOST: _launching_s(replica, workload, training),
        Bound.COMMUNICATION: _tensor_s(replica, training) + _shard_s(replica, workload, training),
    }
    terms[bound] += matrices
    return terms


def micro_step_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Seconds of one micro-batch: shards are gathered while the card works, tensor-parallel reduces are not hidden."""
    terms = micro_step_terms(replica, workload, training)
    card = terms[Bound.COMPUTE] + terms[Bound.BANDWIDTH]
    launched = max(card, terms[Bound.HOST]) if replica.eager else card + terms[Bound.HOST]
    return smooth_max(launched, _shard_s(replica, workload, training)) + _tensor_s(replica, training)


def step_s(replica: Replica, workload: Workload, training: Training) -> float:
    """Seconds of one optimizer step.

    ``m x micro-step x (1 + (p - 1) / m)`` with the pipeline's bubble (arXiv
    1811.06965), the gradients' all-reduce as far as the last backward pass does
    not hide it, and the optimizer's pass over its states.
    """
    layout, pieces = replica.layout, micro_batches(replica, training)
    micro = micro_step_s(replica, workload, training)
    trained = trainable_params(workload, training) / (layout.tensor * layout.pipeline)
    reduce = exposed_reduce_s(replica, workload, training, micro)
    updated = trained / (layout.data if layout.zero_stage else 1)
    optimizer = updated * _OPTIMIZER_BYTES[training.pure_16bit] / (replica.rates.bandwidth_bytes_per_s * STREAM_SHARE)
    return micro * (pieces + layout.pipeline - 1) + reduce + optimizer


def exposed_reduce_s(replica: Replica, workload: Workload, training: Training, micro: float) -> float:
    """Seconds of the gradients' all-reduce that the last backward pass (``micro`` x 2/3) does not hide.

    None with sharded weights, whose gradients are scattered in every micro-step.
    """
    layout = replica.layout
    if layout.zero_stage >= _SHARDS_WEIGHTS:
        return 0.0
    trained = trainable_params(workload, training) / (layout.tensor * layout.pipeline)
    return max(0.0, all_reduce_s(replica.link, layout.data, 2 * trained) - _BACKWARD_SHARE * micro)


def tokens_per_step(replica: Replica, training: Training) -> float:
    """Tokens of one optimizer step over all replicas, padding left out."""
    sequences = micro_batches(replica, training) * training.micro_batch * replica.layout.data
    return sequences * training.sequence_tokens * useful_share(training)


def busiest(replica: Replica, workload: Workload, training: Training) -> Bound:
    """The resource that takes most of an optimizer step."""
    return longest(busy_s(replica, workload, training), eager=replica.eager)


def busy_s(replica: Replica, workload: Workload, training: Training) -> dict[Bound, float]:
    """Seconds that each resource is busy in an optimizer step, the optimizer's own pass left out."""
    pieces = micro_batches(replica, training)
    terms = {bound: pieces * seconds for bound, seconds in micro_step_terms(replica, workload, training).items()}
    micro = micro_step_s(replica, workload, training)
    terms[Bound.COMMUNICATION] += exposed_reduce_s(replica, workload, training, micro)
    return terms


def _passes(training: Training) -> int:
    """Forward passes' worth of work: forward, backward (two) and, under full checkpointing, forward again."""
    return 4 if training.checkpointing is Checkpointing.FULL else 3


def _matrices_s(replica: Replica, workload: Workload, training: Training) -> tuple[float, Bound]:
    cards = replica.layout.tensor * replica.layout.pipeline
    efficiency = replica.policy.train_flop * replica.stack_share
    if replica.rates.precision in {Precision.FP8, Precision.FP4}:
        efficiency *= NARROW_SHARE
    tokens = training.micro_batch * training.sequence_tokens
    attention = attention_training_flop_per_token(replica.model, training) / ATTENTION_SHARE
    flop = tokens * (matrix_training_flop_per_token(workload, training) + attention)
    working = flop / (replica.rates.reached(efficiency) * cards)
    bandwidth = replica.rates.bandwidth_bytes_per_s * replica.policy.decode_bandwidth * replica.stack_share
    reading = _passes(training) * replica.read_bytes / (bandwidth * cards)
    return smooth_max(working, reading), Bound.COMPUTE if working >= reading else Bound.BANDWIDTH


def _stream_s(replica: Replica, training: Training) -> float:
    """Element-wise work, the loss, and packed weights expanded forward, backward and when recomputed."""
    model, layout = replica.model, replica.layout
    tokens = training.micro_batch * training.sequence_tokens
    each = ELEMENTWISE_BYTES * replica.layers * (model.hidden_size or 0) + LOGIT_BYTES * (model.vocab_size or 0)
    cards = layout.tensor * layout.pipeline
    streamed = tokens * each / (replica.rates.bandwidth_bytes_per_s * STREAM_SHARE * cards)
    if is_packed(replica.weights):
        streamed += (_passes(training) - 1) * replica.expansion_s / layout.pipeline
    return streamed


def _launching_s(replica: Replica, workload: Workload, training: Training) -> float:
    kernels = ADAPTER_LAUNCHES if workload.task.trains_adapters else 1.0
    return _passes(training) * launch_s(replica) * kernels / replica.layout.pipeline


def _tensor_s(replica: Replica, training: Training) -> float:
    """Tensor-parallel all-reduces: two a layer forward, two backward, two when recomputed (arXiv 1909.08053)."""
    payload = training.micro_batch * training.sequence_tokens * (replica.model.hidden_size or 0) * ACTIVATION_BYTES
    forward = tensor_parallel_s(replica.tensor_link, replica.layout.tensor, replica.layers, payload)
    return (_passes(training) - 1) * forward / replica.layout.pipeline


def _shard_s(replica: Replica, workload: Workload, training: Training) -> float:
    """ZeRO stage 3 (FSDP): weights gathered forward and backward, gradients scattered.

    About ``3 x bytes`` of the weights a micro-step where all are trained
    (Rajbhandari et al., arXiv 1910.02054, section 7.2).
    """
    layout = replica.layout
    if layout.zero_stage < _SHARDS_WEIGHTS:
        return 0.0
    cards = layout.tensor * layout.pipeline
    gradients = 2 * trainable_params(workload, training) / cards
    weights = gather_s(replica.link, layout.data, replica.read_bytes / cards)
    return 2 * weights + gather_s(replica.link, layout.data, gradients)
