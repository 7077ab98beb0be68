"""Requirements: properties that a card must have, as texts such as ``fp8_compute`` or ``min_memory_gb=40``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Precision

Answer = bool | Unknown
_Test = Callable[[Accelerator, float], Answer]


def parse_requirement(text: str) -> tuple[str, float | None]:
    """The property and the number that a requirement names.

    Raises:
        ValueError: no such property, a number missing, or one too many; the text says what to write.
    """
    name, equals, number = (part.strip() for part in text.partition("="))
    name = name.lower().replace("-", "_")
    if name in _HAS:
        if equals:
            raise ValueError(f"write {name} alone")
        return name, None
    if name not in _AT_LEAST:
        from rackrate.problems import nearest

        close = nearest(name, PROPERTIES)
        raise ValueError(f"did you mean {' or '.join(close)}?" if close else f"choose from {', '.join(PROPERTIES)}")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:  # also false for nan
        raise ValueError(f"write {name}=NUMBER")
    return name, value


def requirements(texts: Iterable[str]) -> tuple[str, ...]:
    """Requirements in the one way in which they are written inside, without those that mean nothing."""
    return tuple(dict.fromkeys(written for text in texts if (written := _canonical(text))))


def _canonical(text: str) -> str:
    try:
        name, value = parse_requirement(text)
    except ValueError:
        return ""
    return name if value is None else f"{name}={value:g}"


def meets(card: Accelerator, requirement: str) -> bool | Unknown:
    """Whether ``card`` has the required property, or why that is not known.

    Memory is compared "as sold"; a compute capability 8.9 as (8, 9).

    Raises:
        ValueError: as ``parse_requirement``.
    """
    name, value = parse_requirement(requirement)
    return _HAS[name](card) if value is None else _AT_LEAST[name](card, value)


def _rate(precision: Precision) -> Callable[[Accelerator], Answer]:
    """The card multiplies matrices in ``precision``: a rate is published, or its compute capability includes it.

    Source: NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities", and PTX ISA, "mma".
    """

    def test(card: Accelerator) -> Answer:
        rate = card.peak_flop_per_s(precision)
        if not isinstance(rate, Unknown):
            return rate > 0
        return rate if card.compute_capability is None else card.compute_capability >= _SINCE[precision]

    return test


_SINCE = {Precision.INT8: (6, 1), Precision.BF16: (8, 0), Precision.FP8: (8, 9), Precision.FP4: (10, 0)}


def _stated(card: Accelerator, name: str, answer: Answer | None) -> Answer:
    return Unknown(f"{name} of {card.id}: no source seen") if answer is None else answer


def _nvlink(card: Accelerator) -> Answer:
    return card.nvswitch or card.nvlink_bridge_max_gpus > 1 or "nvlink_bytes_per_s_one_way" in card.facts


def _capability(card: Accelerator, least: float) -> Answer:
    if card.compute_capability is None:
        return False if card.vendor != "NVIDIA" else Unknown(f"compute capability of {card.id}: no source seen")
    major, _, minor = f"{least:g}".partition(".")
    return card.compute_capability >= (int(major), int(minor or 0))


def _bandwidth(card: Accelerator, least: float) -> Answer:
    bandwidth = card.bandwidth_bytes_per_s
    return bandwidth if isinstance(bandwidth, Unknown) else bandwidth >= least * 1e9


_HAS: dict[str, Callable[[Accelerator], Answer]] = {
    "fp8_compute": _rate(Precision.FP8),
    "fp4_compute": _rate(Precision.FP4),
    "int8_compute": _rate(Precision.INT8),
    "bf16": _rate(Precision.BF16),
    "nvlink": _nvlink,
    "nvswitch": lambda card: card.nvswitch,
    "ecc": lambda card: _stated(card, "ECC", card.ecc),
    "rt_cores": lambda card: _stated(card, "RT cores", None if card.rt_cores is None else card.rt_cores > 0),
    "mig": lambda card: card.mig_instances > 0,
    "unmodified": lambda card: not card.modified,
}
_AT_LEAST: dict[str, _Test] = {
    "min_memory_gb": lambda card, least: card.memory_sold_gb >= least,
    "min_compute_capability": _capability,
    "min_bandwidth_gb_per_s": _bandwidth,
}
PROPERTIES = (*_HAS, *_AT_LEAST)
"""The names of all properties, those that take a number last."""
