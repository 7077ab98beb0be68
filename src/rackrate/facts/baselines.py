"""Baselines: what cards reached in public measurements and health checks, beside what is published of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from enum import StrEnum

from rackrate.evidence import Fact, Kind
from rackrate.facts.accelerator import Accelerator
from rackrate.units import GB, MIB, TERA, parse_day
from rackrate.values import Value, replace


class BaselineKind(StrEnum):
    """How a figure was come by; kinds are never mixed.

    ``best``: the best of many matrix shapes; ``crowd``: the same, by one person
    in a single run; ``sustained``: the mean of a long load; ``measured``: any
    other measurement; ``floor``: what a health check wants at least (often 0.75
    of a measurement); ``target``: power that a diagnostic must draw; ``stated``:
    said by the vendor; ``reported``: read from the driver.
    """

    BEST = "best"
    CROWD = "crowd"
    SUSTAINED = "sustained"
    MEASURED = "measured"
    FLOOR = "floor"
    TARGET = "target"
    STATED = "stated"
    REPORTED = "reported"


class Mark(StrEnum):
    """What is special about a figure: ``suspect`` ones are kept in the file and never used.

    ``above_peak``: more than the published peak, which is reckoned at a boost
    clock that the card exceeds. ``upcast``: computed in FP32, for want of an
    arithmetic unit of the type.
    """

    NONE = ""
    ABOVE_PEAK = "above_peak"
    UPCAST = "upcast"
    SUSPECT = "suspect"


QUANTITIES: Mapping[str, tuple[str, str, float]] = {
    **{f"matmul_{name}": ("TFLOPS", "flop/s", TERA) for name in ("fp32", "tf32", "fp16", "bf16", "fp8")},
    "targeted_stress": ("TFLOPS", "flop/s", TERA),
    **{
        f"memory_{name}": ("GB/s", "bytes/s", GB)
        for name in ("read", "scale", "triad", "copy", "vector", "copy_engine", "test")
    },
    **dict.fromkeys(
        ("host_to_device", "device_to_host", "host_link", "peer_one_way", "peer_both_ways", "allreduce_bus"),
        ("GB/s", "bytes/s", GB),
    ),
    **{f"power_{name}": ("W", "W", 1) for name in ("idle", "burn", "target", "cap_seen", "default", "min", "max")},
    "memory_total": ("MiB", "bytes", MIB),
    "sm_clock_max": ("MHz", "Hz", 10**6),
    "memory_bus_width": ("bits", "bits", 1),
}
"""By quantity: its unit in the file, its base unit, and the factor between them.

``targeted_stress`` is DCGM's SGEMM load, ``memory_test`` its bandwidth test;
``memory_scale`` loads once and stores once; ``host_link`` is either direction;
``allreduce_bus`` is the bus bandwidth of nccl-tests over ``gpus`` cards.
"""

PCIE_BYTES_PER_S_PER_LANE: Mapping[int, float] = {
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
}
"""One direction of one lane by generation, coding taken off (PCI Express Base Specification; 6.0: flits of 242/256)."""


class Baseline(Value, frozen=True, kw_only=True):
    """One figure as a source gives it, in base units.

    ``label`` is what the source calls the card, ``accelerators`` the ids that
    it can be: one, several, or none when the card is not among ours.
    ``highest`` is the end of a spread of readings, ``value`` its begin.
    """

    label: str
    accelerators: tuple[str, ...]
    quantity: str
    value: float
    unit: str
    kind: BaselineKind
    condition: str
    source: str
    seen_at: date
    gpus: int = 1
    highest: float | None = None
    mark: Mark = Mark.NONE
    note: str = ""


def baseline(row: Mapping[str, str]) -> Baseline:
    """One row of baselines.csv."""
    _, base, factor = QUANTITIES[row["quantity"]]
    return Baseline(
        label=row["label"],
        accelerators=tuple(filter(None, row["accelerators"].split("|"))),
        quantity=row["quantity"],
        value=float(row["value"]) * factor,
        highest=float(row["value_to"]) * factor if row["value_to"] else None,
        unit=base,
        kind=BaselineKind(row["kind"]),
        mark=Mark(row["mark"]),
        gpus=int(row["gpus"]),
        condition=row["condition"],
        source=row["source"],
        seen_at=parse_day(row["seen_at"]),
        note=row["note"],
    )


class Reached(Value, frozen=True, kw_only=True):
    """All usable figures of one quantity and kind that are surely of one card, as a span with its best source."""

    quantity: str
    kind: BaselineKind
    gpus: int
    low: float
    high: float
    unit: str
    figures: int
    condition: str
    source: str


def reached(card: str, figures: Iterable[Baseline]) -> tuple[Reached, ...]:
    """What was reached with ``card``, by quantity, kind and number of cards, in the order of ``figures``.

    Suspect figures and those that may be of another card are left out.
    ``condition`` and ``source`` are those of the highest figure.
    """
    groups: dict[tuple[str, BaselineKind, int], list[Baseline]] = {}
    for figure in figures:
        if figure.accelerators == (card,) and figure.mark is not Mark.SUSPECT:
            groups.setdefault((figure.quantity, figure.kind, figure.gpus), []).append(figure)
    return tuple(_span(*key, group) for key, group in groups.items())


def _span(quantity: str, kind: BaselineKind, gpus: int, group: list[Baseline]) -> Reached:
    top = max(group, key=lambda figure: figure.highest or figure.value)
    return Reached(
        quantity=quantity,
        kind=kind,
        gpus=gpus,
        low=min(figure.value for figure in group),
        high=top.highest or top.value,
        unit=top.unit,
        figures=len(group),
        condition=top.condition,
        source=top.source,
    )


_AGAINST: Mapping[str, str] = {
    **{f"matmul_{name}": f"peak_{name}_flop_per_s" for name in ("fp32", "tf32", "fp16", "bf16", "fp8")},
    **{
        f"memory_{name}": "bandwidth_bytes_per_s"
        for name in ("read", "scale", "triad", "copy", "vector", "copy_engine", "test")
    },
    **dict.fromkeys(("peer_one_way", "allreduce_bus"), "nvlink_bytes_per_s_one_way"),
    **dict.fromkeys(("power_target", "power_burn", "power_cap_seen", "power_default"), "power_limit_w"),
    "memory_total": "memory_total_bytes",
}
_SLOT = frozenset({"host_to_device", "device_to_host", "host_link"})


def published(card: Accelerator, quantity: str) -> Fact | None:
    """The fact that a baseline of ``quantity`` is held against; None where none is known.

    Matrix products against the dense peak of their type, memory against the
    published bandwidth, links between cards against one direction of their
    link (both ways: twice that), the host's against PCIe after coding. A bus
    bandwidth of all-reduce is held against one direction, too: a switch that
    adds up on the way (NVLS) can exceed it.
    """
    if quantity in _SLOT:
        return _pcie(card)
    if quantity == "peer_both_ways":
        link = card.facts.get("nvlink_bytes_per_s_one_way")
        return replace(link, value=2 * link.value) if link is not None else None
    return card.facts.get(_AGAINST.get(quantity, ""))


def _pcie(card: Accelerator) -> Fact | None:
    """One direction of the card's slot: lanes x rate x coding."""
    generation, lanes = card.facts.get("pcie_gen"), card.facts.get("pcie_lanes")
    if generation is None or lanes is None or int(generation.value) not in PCIE_BYTES_PER_S_PER_LANE:
        return None
    rate = PCIE_BYTES_PER_S_PER_LANE[int(generation.value)] * lanes.value
    return replace(generation, value=rate, unit="bytes/s", kind=Kind.DERIVED, note="one direction, coding taken off")
