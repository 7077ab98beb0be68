"""Accelerators: one card as its driver sees it, every number a sourced fact."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from rackrate.evidence import Fact, Unknown
from rackrate.values import Value


class Precision(StrEnum):
    """Arithmetic types with a dense matrix rate (accumulate in FP32 unless named otherwise)."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP16_ACC16 = "fp16_acc16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    FP4 = "fp4"


class Interconnect(StrEnum):
    """What joins the cards of one machine.

    ``OTHER`` is a direct link without a switch that is no bridge: the NVLink
    cube mesh of P100 and V100 SXM2, xGMI, RoCE, ICI, HCCS. Its rate per card is
    the fact ``nvlink_bytes_per_s_one_way``; two cards of a mesh get a part of it.
    """

    NONE = "none"
    PCIE = "pcie"
    NVLINK_BRIDGE = "nvlink_bridge"
    NVSWITCH = "nvswitch"
    OTHER = "other"


class Accelerator(Value, frozen=True, kw_only=True):
    """One card (or the part of a board that a program sees as one device).

    ``memory_sold_gb`` is the label on the box ("GB as sold"), neither GB nor
    GiB. ``facts`` holds the winning fact for each quantity, e.g.
    ``memory_total_bytes`` (what the driver reports), ``bandwidth_bytes_per_s``,
    ``peak_bf16_flop_per_s`` (dense), ``power_limit_w``, ``nvlink_bytes_per_s_one_way``.
    ``memory_reserved_bytes``, where known, is the part of the total that the
    driver keeps: a program sees the total less that. ``names`` are the spellings
    by which others call the card, as ``facts.names.name_key`` writes them;
    ``isa`` is the compiler target of cards without a compute capability (gfx942).
    """

    id: str
    vendor: str
    product: str
    architecture: str
    form_factor: str
    memory_type: str
    memory_sold_gb: float
    compute_capability: tuple[int, int] | None
    launch_year: int | None
    facts: Mapping[str, Fact]
    ecc: bool | None = None
    ecc_default: str = ""
    cooling: str = ""
    nvlink_version: str = ""
    nvlink_bridge_max_gpus: int = 0
    nvswitch: bool = False
    mig_instances: int = 0
    rt_cores: int | None = None
    sparsity_2_4: bool | None = None
    modified: bool = False
    notes: str = ""
    chip: str = ""
    isa: str = ""
    recalled: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    source: str = ""

    def number(self, quantity: str) -> float | Unknown:
        """The value of ``quantity`` in base units, or why it is unknown."""
        fact = self.facts.get(quantity)
        return Unknown(f"{quantity} of {self.id}: no source seen") if fact is None else fact.value

    @property
    def memory_total_bytes(self) -> float | Unknown:
        """Total memory as the driver reports it, in bytes (ECC on where that is the default)."""
        return self.number("memory_total_bytes")

    @property
    def bandwidth_bytes_per_s(self) -> float | Unknown:
        """Published memory bandwidth in bytes per second, of one device."""
        return self._of_one_device("bandwidth_bytes_per_s")

    def peak_flop_per_s(self, precision: Precision) -> float | Unknown:
        """Published dense peak of ``precision`` in FLOP/s (OP/s for integers), of one device."""
        return self._of_one_device(f"peak_{precision}_flop_per_s")

    def _of_one_device(self, quantity: str) -> float | Unknown:
        """Cards such as MI250 are two devices to software: it gets half of what is published for the card."""
        whole, devices = self.number(quantity), self.facts.get("devices_per_card")
        return whole if isinstance(whole, Unknown) or devices is None else whole / devices.value

    def interconnect(self, gpus: int) -> Interconnect:
        """The best link that ``gpus`` of these cards can have in one machine.

        A bridge joins at most ``nvlink_bridge_max_gpus`` cards; beyond that
        the slowest hop (PCIe) decides. Boards on a socket (SXM, OAM, chips of a
        cloud) have their maker's own link; NVSwitch only where the card has it.
        """
        if gpus <= 1:
            return Interconnect.NONE
        if self.nvswitch:
            return Interconnect.NVSWITCH
        if self.form_factor != "PCIe":
            return Interconnect.OTHER
        if self.nvlink_bridge_max_gpus >= gpus:
            return Interconnect.NVLINK_BRIDGE if self.vendor == "NVIDIA" else Interconnect.OTHER
        return Interconnect.PCIE
