"""How fast an engine is: its efficiencies, and what measured speeds say of them."""

from __future__ import annotations

from enum import StrEnum

from rackrate.values import Value


class Host(StrEnum):
    """How the host feeds the card: eagerly launched kernels, or captured graphs / compiled code."""

    EAGER = "eager"
    GRAPHS = "graphs"


class SpeedPolicy(Value, frozen=True, kw_only=True):
    """Efficiencies of an engine, each a fraction of the published peak (medians of published rows).

    ``launch_s_per_layer``: host or launch time per layer and step.
    ``decode_bandwidth``: of memory bandwidth while reading weights;
    ``cache_bandwidth``: while reading the KV cache. ``prefill_flop``: of
    the dense matrix peak; ``train_flop``: of what the card sustains in training
    (1 unless something else was measured, 0: it does not train). ``quantised_kernel``: relative
    efficiency of 4-bit kernels. ``spread``: relative half width of the 80 %
    interval for decode, prefill and training. ``source`` names the evidence.
    ``vector_kernels``: one-token products go through the engine's own kernels
    outside the matrix units, which accumulate in FP16 (llama.cpp).
    ``hopper_attention``: attention in training uses the matrix instructions that
    came with Hopper. ``stage_chunks``: chunks of layers that a pipeline stage of
    training usually has, interleaved. ``train_spread``: as ``spread``, of training.
    ``attention_flop``: what attention of prompts reaches relative to matrix
    products (0: as kernels that never store the scores). ``unpack_flop``: in
    multiples of the FP32 peak, the rate at which quantised weights are unpacked
    for products in INT8 (0: they are expanded to 16 bits first). ``sequence_s``:
    host time that a step takes for each sequence in it, ``step_s`` for the step itself. ``split_stages``: how many
    stages of a layer split work on the next piece of a prompt before the last
    one is done with the piece before (0: all of them). ``early_rocm``: kernels and
    collectives for other makers' cards are those of 2024. ``cache_per_head``:
    attention reads the cache once for each query head that shares it. ``crossed_launches``: kernels of a
    decoder's layer that also attends to an encoder, over those of a layer that does not. ``measured_on``: kinds of
    cards (compute capabilities, other makers) with published rows of inference.
    """

    host: Host
    launch_s_per_layer: float
    decode_bandwidth: float
    cache_bandwidth: float
    prefill_flop: float
    train_flop: float
    quantised_kernel: float
    spread: float
    source: str
    vector_kernels: bool = False
    hopper_attention: bool = False
    stage_chunks: int = 1
    train_spread: float = 0.3
    attention_flop: float = 0.0
    unpack_flop: float = 0.0
    sequence_s: float = 0.0
    step_s: float = 0.0
    split_stages: int = 0
    early_rocm: bool = False
    cache_per_head: bool = False
    crossed_launches: float = 1.5
    measured_on: frozenset[str] = frozenset()


class Times(Value, frozen=True, kw_only=True):
    """Times of the phases of work over those expected; ``images``: of denoising steps and all else."""

    prefill: float = 1.0
    decode: float = 1.0
    training: float = 1.0
    images: float = 1.0


EXPECTED = Times()
"""As expected."""


class Calibration(Value, frozen=True, kw_only=True):
    """What one measured speed says of an engine on one card.

    ``near``: of ``model`` in the format ``weights`` on ``gpus`` of ``accelerator``,
    as it was measured; ``elsewhere``: of other models, formats and numbers of
    that card. ``phases`` are those that were measured apart, or ``serving`` as a whole.
    """

    accelerator: str
    gpus: int
    model: str
    weights: str
    phases: frozenset[str]
    near: Times
    elsewhere: Times

    def is_near(self, accelerator: str, gpus: int, model: str, weights: str) -> bool:
        """Whether this is what was measured."""
        return (self.accelerator, self.gpus, self.model, self.weights) == (accelerator, gpus, model, weights)
