"""Roofline: which arithmetic a card uses for a workload, its peaks, and how two limits combine."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.formats import WeightFormat
from rackrate.values import Value
from rackrate.workload.workload import Workload

SHARPNESS = 3.0
"""How sharply the roofline bends: with 3 two equal times give 1.26 times either.

Measured products bend smoothly between the two limits as the number of tokens
grows (ai-dynamo/aiconfigurator, GEMM tables of A100, L40S, H100 and B200).
"""

FLOP_PER_JOULE = {(7, 5): 0.60e12, (8, 0): 0.95e12, (8, 6): 0.40e12, (8, 9): 0.97e12, (9, 0): 1.36e12}
"""16-bit matrix FLOP that a joule pays for, by compute capability.

Best torch matmul over power limit of the cards that the limit holds back: T4 42
TFLOP/s at 70 W, A100 PCIe 240 at 250 W, A10 55 at 150 W and A40 120 at 300 W,
L4 70 at 72 W, H100 PCIe 475 at 350 W (zzc0721/torch-performance-test-data,
chsasank/device-benchmarks, stas00/ml-engineering compute/accelerator). Other
architectures: newer ones as the newest of these, older ones not held back.
"""

_NARROW = {Precision.FP8: 2, Precision.INT8: 2, Precision.FP4: 4, Precision.INT4: 4}  # products a joule, to 16 bits
_UNPOWERED = frozenset({Precision.FP64, Precision.FP32, Precision.TF32})

_PASCAL, _INT8_MATRICES = (6, 1), (7, 5)

# llama.cpp and ExLlama accumulate in FP16, which GeForce does at full rate (ggml-org/llama.cpp ggml-cuda:
# CUBLAS_COMPUTE_16F); since summer 2024 quantised weights go through INT8 units (ggml-cuda/mmq.cuh).
_HALF_ACCUMULATE = ("gguf", "exl2")

# bitsandbytes LLM.int8() splits off outlier columns and scales back: never faster than 16 bits
# (bitsandbytes-foundation/bitsandbytes benchmarking/README.md).
_SLOW_NARROW = "int8"


class Rates(Value, frozen=True, kw_only=True):
    """Published peaks of one card for the arithmetic of one workload.

    ``precision`` is what the matrices are multiplied in and ``flop_per_s`` its
    dense peak; ``powered_flop_per_s`` is what the power limit pays for
    (infinite: not known to hold back); ``vector_flop_per_s`` is the FP32 peak
    outside the matrix units (``None``: not known). ``emulated``: the card lacks
    the arithmetic that was asked for, so that it is done in FP32.
    """

    precision: Precision
    flop_per_s: float
    powered_flop_per_s: float
    vector_flop_per_s: float | None
    bandwidth_bytes_per_s: float
    half_flop_per_s: float = 0.0
    emulated: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether numbers of 8 bits or fewer are multiplied."""
        return self.precision in _NARROW

    @property
    def is_power_known(self) -> bool:
        """Whether it is known what the power limit pays for."""
        return self.powered_flop_per_s != float("inf")

    def reached(self, efficiency: float) -> float:
        """FLOP/s at ``efficiency`` of the peak, under the power limit (two limits with a rounded knee)."""
        return 1 / smooth_max(1 / (self.flop_per_s * efficiency), 1 / self.powered_flop_per_s)


def smooth_max(left: float, right: float) -> float:
    """The longer of two times that overlap, with a rounded knee: ``(left^p + right^p)^(1/p)``, p = 3.

    The roofline (Williams, Waterman and Patterson, CACM 52(4), 2009) is the
    limit p = infinity; near the ridge real kernels overlap incompletely. Never
    less than either argument.
    """
    longest = max(left, right)
    if not longest:
        return 0.0
    shortest = min(left, right) / longest
    return float(longest * (1 + shortest**SHARPNESS) ** (1 / SHARPNESS))


def rates(
    accelerator: Accelerator, workload: Workload, *, half_accumulate: bool = False, packed_int8: bool = False
) -> Rates | Unknown:
    """The peaks that ``workload`` meets on ``accelerator``, or why they are unknown.

    ``half_accumulate``: the engine's kernels accumulate in FP16; ``packed_int8``: they
    multiply packed weights in INT8 (unpacking takes what a joule saves in the products).
    """
    bandwidth = accelerator.bandwidth_bytes_per_s
    if isinstance(bandwidth, Unknown):
        return bandwidth
    found = arithmetic(accelerator, workload, half_accumulate=half_accumulate, packed_int8=packed_int8)
    if isinstance(found, Unknown):
        return found
    vector = accelerator.peak_flop_per_s(Precision.FP32)
    precision, flop_per_s = found
    return Rates(
        precision=precision,
        flop_per_s=flop_per_s,
        powered_flop_per_s=_powered(
            accelerator, Precision.FP16 if packed_int8 and precision is Precision.INT8 else precision
        ),
        vector_flop_per_s=None if isinstance(vector, Unknown) else vector,
        bandwidth_bytes_per_s=bandwidth,
        half_flop_per_s=_half(accelerator, precision, flop_per_s),
        emulated=precision is Precision.FP32 and workload.precision not in _UNPOWERED,
    )


def arithmetic(
    accelerator: Accelerator, workload: Workload, *, half_accumulate: bool = False, packed_int8: bool = False
) -> tuple[Precision, float] | Unknown:
    """The arithmetic in which the matrices are multiplied, with its dense peak in FLOP/s.

    In this order: the arithmetic of the weight format (FP8, INT8, FP4) where the
    card has it; the workload's own precision, which weight-only formats are
    expanded to; FP32, in which cards without the 16-bit type (BF16 before
    Ampere), or with a token rate for it (FP16 on Pascal GP102), emulate it.
    Measured BF16 products are 2.3 TFLOP/s on T4 and 9.4 on V100, whose FP32
    peaks are 8.1 and 15.7 (chsasank/device-benchmarks README).
    """
    fallback = accelerator.peak_flop_per_s(Precision.FP32)
    slowest = 0.0 if isinstance(fallback, Unknown) else fallback
    if workload.precision is Precision.FP64:
        slowest = 0.0
    for precision in _preferred(accelerator, workload, half_accumulate=half_accumulate, packed_int8=packed_int8):
        rate = accelerator.peak_flop_per_s(precision)
        if not isinstance(rate, Unknown) and rate >= slowest:
            return precision, rate
    if slowest:
        return Precision.FP32, slowest
    return Unknown(f"dense {workload.precision} rate of {accelerator.id}: no source seen")


def _half(accelerator: Accelerator, precision: Precision, flop_per_s: float) -> float:
    """The 16-bit peak beside narrower arithmetic."""
    if precision not in _NARROW:
        return flop_per_s
    for wide in (Precision.BF16, Precision.FP16):
        found = accelerator.peak_flop_per_s(wide)
        if not isinstance(found, Unknown):
            return found
    return flop_per_s / _NARROW[precision]


def has_arithmetic(accelerator: Accelerator, weights: WeightFormat) -> bool:
    """Whether the card multiplies in the format's own arithmetic (else the weights are expanded to 16 bits)."""
    have, need = accelerator.compute_capability, weights.min_compute_capability
    return have is None or need is None or have >= need


def _preferred(
    accelerator: Accelerator, workload: Workload, *, half_accumulate: bool, packed_int8: bool
) -> tuple[Precision, ...]:
    weights = workload.weights
    if weights.computes_in is not None and weights.id != _SLOW_NARROW and has_arithmetic(accelerator, weights):
        return (weights.computes_in, workload.precision)
    packed = weights.id.startswith(_HALF_ACCUMULATE)
    if accelerator.vendor == "NVIDIA" and packed:
        plain = (Precision.FP16_ACC16, workload.precision)
        scalar = accelerator.compute_capability == _PASCAL  # INT8 dot products, no matrix units
        matrix = packed_int8 and (accelerator.compute_capability or (0, 0)) >= _INT8_MATRICES
        return (Precision.INT8, *plain) if scalar or matrix else plain
    if accelerator.vendor == "NVIDIA" and half_accumulate and workload.precision is not Precision.FP32:
        return (Precision.FP16_ACC16, workload.precision)
    return (workload.precision,)


def flop_per_joule(accelerator: Accelerator) -> float | None:
    """What a joule pays for; newer than all that were measured: as the newest of them (None: not known)."""
    have = accelerator.compute_capability or (0, 0)
    newest = max(FLOP_PER_JOULE)
    return FLOP_PER_JOULE[newest] if have > newest else FLOP_PER_JOULE.get(have)


def _powered(accelerator: Accelerator, precision: Precision) -> float:
    per_joule = flop_per_joule(accelerator)
    watts = accelerator.number("power_limit_w")
    if per_joule is None or isinstance(watts, Unknown) or precision in _UNPOWERED:
        return float("inf")
    return watts * per_joule * _NARROW.get(precision, 1)
