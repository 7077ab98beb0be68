"""Decode: the time of one step that gives each sequence of the batch one more token."""

from __future__ import annotations

from rackrate.speed import mechanisms
from rackrate.speed.communication import tensor_parallel_s
from rackrate.speed.estimate_types import Bound
from rackrate.speed.flops import attended_layer_tokens
from rackrate.speed.network import crossing_s, crossings
from rackrate.speed.replica import STREAM_SHARE, Replica, reading_s, routed_active_params, weight_bytes_touched
from rackrate.speed.roofline import smooth_max

ACTIVATION_BYTES = 2

# Kernels launched in a layer, relative to 16-bit weights, by bitsandbytes (its benchmarking/README.md, T4 and
# RTX 4090 at batch 1, where the host sets the time).
_LAUNCHES = {
    "nf4": "launches_nf4",
    "nf4-dq": "launches_nf4",
    "int8": "launches_int8_outliers",
    "int8-plain": "launches_int8",
}


def decode_terms(replica: Replica, batch: float, context_tokens: float) -> dict[Bound, float]:
    """Seconds that each resource is busy in one decode step of ``batch`` sequences at ``context_tokens``.

    Weights ``W / (BW n e_w q)``; arithmetic ``2 N B / (FL n e_f)``; cache ``B ctx kv /
    (BW e_kv)``, kv being one card's share; host ``L x launch``; collectives of
    tensor and hops of pipeline parallelism. A pipeline's stages work on B /
    stages sequences each; a layer split passes all through one stage after
    another, so that more cards never shorten a step.
    """
    passing = sequences_in_pass(replica, batch)
    bandwidth = replica.rates.bandwidth_bytes_per_s
    return {
        Bound.BANDWIDTH: weights_s(replica, passing),
        Bound.COMPUTE: 2 * (replica.multiplied_params + grouped_loss(replica)) * passing / replica.flop_per_s,
        Bound.CACHE_BANDWIDTH: cache_read_bytes(replica, passing, context_tokens) / (bandwidth * replica.cache_share)
        + elementwise_s(replica, passing)
        + reordered_bytes(replica, passing, context_tokens) / (bandwidth * STREAM_SHARE),
        Bound.HOST: host_s(replica, passing),
        Bound.COMMUNICATION: _communication_s(replica, passing),
    }


def decode_step_s(replica: Replica, batch: float, context_tokens: float) -> float:
    """Seconds of one decode step."""
    return pass_s(replica, decode_terms(replica, batch, context_tokens)) * replica.times.decode


def pass_s(replica: Replica, terms: dict[Bound, float]) -> float:
    """Seconds of one pass: weights and arithmetic overlap, cache reads and communication come on top.

    Eager hosts launch while the card works, so the slower of the two decides;
    with captured graphs what is left are gaps between kernels, and they add.
    """
    card = smooth_max(terms[Bound.BANDWIDTH], terms[Bound.COMPUTE]) + terms[Bound.CACHE_BANDWIDTH]
    launched = max(card, terms[Bound.HOST]) if replica.eager else card + terms[Bound.HOST]
    return launched + terms[Bound.COMMUNICATION]


def sequences_in_pass(replica: Replica, batch: float) -> float:
    """Sequences that go through a stage together, every beam one of its own."""
    passing = batch if replica.layout.layer_split else max(1.0, batch / replica.layout.pipeline)
    return passing * replica.beams


def weights_s(replica: Replica, tokens: float) -> float:
    """Seconds to bring the weights in for a pass over ``tokens`` tokens.

    Quantised kernels of llama.cpp unpack and use each byte on the vector
    units, which holds back cards with much bandwidth for them (A100, V100), not
    GeForce cards: 8B in F16 runs at 54 tokens/s on an A100 80 GB and 55 on an RTX
    4090 with half the bandwidth (XiongjieDai/GPU-Benchmarks-on-LLM-Inference).
    """
    touched = weight_bytes_touched(replica, tokens)
    reading = reading_s(replica, tokens)
    if replica.expands and tokens > 1:
        return replica.expansion_s
    vector = replica.rates.vector_flop_per_s
    if not vector or not replica.vector_kernels:
        return reading
    return smooth_max(reading, mechanisms.FITTED.vector_flop_per_byte * touched / (vector * replica.layout.tensor))


def grouped_loss(replica: Replica) -> float:
    """Parameters by which grouped products of experts are slower than plain ones, as if there were more of them."""
    return routed_active_params(replica.model) * (1 / mechanisms.GROUPED_SHARE - 1)


def elementwise_s(replica: Replica, tokens: float) -> float:
    """Seconds of norms, rotations, activations and residuals, which are bound by memory."""
    moved = mechanisms.FITTED.elementwise_bytes * tokens * replica.layers * (replica.model.hidden_size or 0)
    return moved / (replica.rates.bandwidth_bytes_per_s * STREAM_SHARE)


def cache_read_bytes(replica: Replica, batch: float, context_tokens: float) -> float:
    """Bytes of KV cache that one card reads for ``batch`` sequences of ``context_tokens``.

    Beams that share what the encoder made read it once together.
    """
    shared = 1 - replica.source_copies / replica.beams
    context = context_tokens - shared * replica.source_tokens
    return batch * replica.cache_layer_bytes * attended_layer_tokens(replica.model, context)


def reordered_bytes(replica: Replica, batch: float, context_tokens: float) -> float:
    """Bytes that a search among beams moves in each step to put its caches in their order: all, read and written.

    What the beams have written and what each has of the encoder's; not what they share
    (huggingface/transformers cache_utils.py, EncoderDecoderCache.reorder_cache; OpenNMT/CTranslate2
    src/layers/decoder.cc, Decoder::gather_state).
    """
    if replica.beams <= 1:
        return 0.0
    apart = context_tokens - (replica.source_tokens if replica.source_copies < replica.beams else 0)
    return 2 * batch * replica.cache_layer_bytes * attended_layer_tokens(replica.model, max(0.0, apart))


def launch_s(replica: Replica) -> float:
    """Seconds that the host needs to launch one pass, at the engine's own time a layer."""
    layers = replica.layers * replica.launches.layer + replica.launches.outside
    return layers * replica.policy.launch_s_per_layer * (_kernels(replica) if replica.eager else 1.0)


def host_s(replica: Replica, sequences: float) -> float:
    """Seconds of host work in one pass of inference over ``sequences`` sequences.

    Eager PyTorch launches from Python whatever the engine: what differs is the
    host's cores and how many kernels the weight format takes.
    """
    found = mechanisms.FITTED
    if not replica.eager:
        return launch_s(replica) + replica.policy.step_s + replica.policy.sequence_s * sequences
    layers = replica.layers * replica.launches.layer + replica.launches.outside
    return layers * found.eager_launch_s * _kernels(replica) * (found.server_host if replica.server_host else 1)


def _kernels(replica: Replica) -> float:
    name = _LAUNCHES.get(replica.weights.id)
    return float(getattr(mechanisms.FITTED, name)) if name else 1.0


def _communication_s(replica: Replica, tokens: float) -> float:
    layout, link = replica.layout, replica.link
    payload = tokens * (replica.model.hidden_size or 0) * ACTIVATION_BYTES
    reduces = tensor_parallel_s(replica.tensor_link, layout.tensor, replica.layers, payload)
    if layout.pipeline <= 1:
        return reduces
    hop = mechanisms.FITTED.split_hop_s if layout.layer_split else link.latency_s + payload / link.bytes_per_s
    far = crossings(layout)
    return reduces + (layout.pipeline - 1 - far) * hop + crossed_s(replica, payload)


def crossed_s(replica: Replica, payload_bytes: float) -> float:
    """Seconds in which activations pass from machine to machine, where stages of a pipeline lie on several."""
    far = crossings(replica.layout)
    return far * crossing_s(replica.layout, replica.network, payload_bytes) if far else 0.0
