"""What a card suits and what it cannot do: written rules over its facts, nothing by name.

A rule whose fact nobody states answers ``unknown``; a missing rate alone
proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Interconnect, Precision
from rackrate.values import Value

FIRST_CAPABILITY: Mapping[str, tuple[int, int]] = {"bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9), "fp4": (10, 0)}
"""First NVIDIA compute capability whose tensor cores know a type (CUDA C++ Programming Guide, feature table)."""

_FP64_SHARE = 0.25
"""FP64 at a quarter of FP32 or more is a rate meant to be used; the others have 1/32 or 1/64."""
_HIGH_BANDWIDTH_BYTES_PER_S = 1.5e12
"""What the first card sold for it has, the A100 of 40 GB; boards with GDDR6 have half of that or less."""
_LOW_POWER_W, _HIGH_POWER_W = 150, 600
"""A PCIe slot with one cable, and the most that a PCIe board draws: beyond is a chassis of its own."""


class Verdict(StrEnum):
    """Whether a card suits a kind of work."""

    SUITED = "suited"
    LIMITED = "limited"
    UNSUITED = "unsuited"
    UNKNOWN = "unknown"


class Suit(Value, frozen=True, kw_only=True):
    """One rule's answer: the work, the verdict, the fact that decides and its number where it has one."""

    work: str
    verdict: Verdict
    because: str
    value: float | None = None


def lacks(card: Accelerator) -> tuple[str, ...]:
    """Arithmetic types that the card surely cannot compute in on matrix units."""
    capability = card.compute_capability
    if capability is None:
        return ()
    return tuple(name for name, first in FIRST_CAPABILITY.items() if capability < first)


def suits(card: Accelerator) -> tuple[Suit, ...]:
    """Every rule's answer for ``card``, in the order in which people ask."""
    return tuple(
        Suit(work=work, verdict=v, because=why, value=n) for work, rule in _RULES.items() for v, why, n in [rule(card)]
    )


Answer = tuple[Verdict, str, float | None]


def _number(card: Accelerator, quantity: str) -> float | None:
    value = card.number(quantity)
    return None if isinstance(value, Unknown) else value


def _decode(card: Accelerator) -> Answer:
    """Generating text reads all weights for every token: bytes per second decide."""
    rate = _number(card, "bandwidth_bytes_per_s")
    if rate is None:
        return Verdict.UNKNOWN, "bandwidth_unknown", None
    high = rate >= _HIGH_BANDWIDTH_BYTES_PER_S
    return (Verdict.SUITED, "high_bandwidth", rate) if high else (Verdict.LIMITED, "low_bandwidth", rate)


def _typed(name: str) -> Callable[[Accelerator], Answer]:
    """A rule for one arithmetic type: by compute capability for NVIDIA, by a stated rate for others."""

    def rule(card: Accelerator) -> Answer:
        rate = _number(card, f"peak_{name}_flop_per_s")
        if name in lacks(card):
            return Verdict.UNSUITED, f"no_{name}", None
        if rate is not None or card.compute_capability is not None:
            return Verdict.SUITED, f"has_{name}", rate
        return Verdict.UNKNOWN, "rate_unknown", None

    return rule


def _half(card: Accelerator) -> Answer:
    """16-bit arithmetic is worth its name when it is faster than FP32."""
    half, single = _number(card, "peak_fp16_flop_per_s"), _number(card, "peak_fp32_flop_per_s")
    if half is None or single is None:
        return Verdict.UNKNOWN, "rate_unknown", None
    return (Verdict.SUITED, "fast_fp16", half) if half > single else (Verdict.UNSUITED, "slow_fp16", half)


def _int8(card: Accelerator) -> Answer:
    """INT8 below the rate of wider types is a cut, not a feature."""
    rate, half = _number(card, "peak_int8_flop_per_s"), _number(card, "peak_fp16_flop_per_s")
    if rate is None or half is None:
        return Verdict.UNKNOWN, "rate_unknown", None
    wider = max(half, _number(card, "peak_fp32_flop_per_s") or 0.0)
    return (Verdict.SUITED, "fast_int8", rate) if rate > wider else (Verdict.UNSUITED, "int8_cut", rate)


def _several(card: Accelerator) -> Answer:
    """Training over eight cards wants a switch; a bridge joins a pair, PCIe makes all-reduce the bottleneck."""
    link = _number(card, "nvlink_bytes_per_s_one_way")
    best = card.interconnect(8)
    if best is Interconnect.NVSWITCH:
        return Verdict.SUITED, "nvswitch", link
    if best is Interconnect.OTHER:
        return Verdict.LIMITED, "vendor_link", link
    if card.nvlink_bridge_max_gpus:
        return Verdict.LIMITED, "bridge", float(card.nvlink_bridge_max_gpus)
    return Verdict.UNSUITED, "pcie_only", None


def _double(card: Accelerator) -> Answer:
    double, single = _number(card, "peak_fp64_flop_per_s"), _number(card, "peak_fp32_flop_per_s")
    if double is None or single is None:
        return Verdict.UNKNOWN, "rate_unknown", None
    enough = double >= _FP64_SHARE * single
    return (Verdict.SUITED, "fast_fp64", double) if enough else (Verdict.UNSUITED, "slow_fp64", double)


def _render(card: Accelerator) -> Answer:
    if card.rt_cores is None:
        return Verdict.UNKNOWN, "rt_cores_unknown", None
    return (
        (Verdict.SUITED, "rt_cores", float(card.rt_cores)) if card.rt_cores else (Verdict.UNSUITED, "no_rt_cores", None)
    )


def _video(card: Accelerator) -> Answer:
    """Encoding needs an encoder of its own; a card that only decodes leaves that to the host."""
    encoders, decoders = _number(card, "video_encoders"), _number(card, "video_decoders")
    if encoders is None:
        return Verdict.UNKNOWN, "media_engines_unknown", None
    if encoders:
        return Verdict.SUITED, "encoders", encoders
    return (Verdict.LIMITED, "decoders_only", decoders) if decoders else (Verdict.UNSUITED, "no_encoders", None)


def _unattended(card: Accelerator) -> Answer:
    if card.modified:
        return Verdict.UNSUITED, "modified", None
    if card.ecc is None:
        return Verdict.UNKNOWN, "ecc_unknown", None
    if card.ecc and card.ecc_default == "off":
        return Verdict.LIMITED, "ecc_off", None
    return (Verdict.SUITED, "ecc", None) if card.ecc else (Verdict.LIMITED, "no_ecc", None)


def _shared(card: Accelerator) -> Answer:
    if card.mig_instances:
        return Verdict.SUITED, "mig", float(card.mig_instances)
    return Verdict.LIMITED, "no_mig", None


def _workstation(card: Accelerator) -> Answer:
    if card.form_factor != "PCIe":
        return Verdict.UNSUITED, "socket", None
    if not card.cooling:
        return Verdict.UNKNOWN, "cooling_unknown", None
    return (Verdict.SUITED, "fan", None) if card.cooling == "active" else (Verdict.UNSUITED, "passive", None)


def _power(card: Accelerator) -> Answer:
    watts = _number(card, "power_limit_w")
    if watts is None:
        return Verdict.UNKNOWN, "power_unknown", None
    if watts <= _LOW_POWER_W:
        return Verdict.SUITED, "low_power", watts
    return (
        (Verdict.LIMITED, "usual_power", watts) if watts <= _HIGH_POWER_W else (Verdict.UNSUITED, "high_power", watts)
    )


def _cuda(card: Accelerator) -> Answer:
    return (Verdict.SUITED, "cuda", None) if card.vendor == "NVIDIA" else (Verdict.UNSUITED, "no_cuda", None)


_RULES: Mapping[str, Callable[[Accelerator], Answer]] = {
    "text_generation": _decode,
    "half_precision": _half,
    **{f"{name}_arithmetic": _typed(name) for name in (Precision.BF16, Precision.FP8, Precision.FP4)},
    "int8_arithmetic": _int8,
    "training_over_eight": _several,
    "double_precision": _double,
    "rendering": _render,
    "video": _video,
    "unattended_runs": _unattended,
    "sharing": _shared,
    "workstation": _workstation,
    "tight_power": _power,
    "cuda_programs": _cuda,
}
