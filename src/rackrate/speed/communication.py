"""Communication between the cards of one machine: what a collective over a link costs.

Bus bandwidth is NCCL's measure: bytes moved over each link, independent of the
number of cards. The rates below are published measurements, in bytes/s.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Interconnect
from rackrate.speed import mechanisms

# Share of the one-way NVLink rate that all-reduce reaches at the tens of MB that inference moves:
# A100 174 of 300 GB/s, H100 337 of 450 (microsoft/vidur profiles at 67 MB), A100 PCIe pair with a bridge
# 193-208 of 300 (Azure/azurehpc-health-checks; NVIDIA/nccl-tests#178), H100 PCIe pair 116 of 300 (nccl-tests#194).
NVLINK_SHARE = 0.65

# All-reduce over PCIe 4 x16 by number of cards: seconds of a small one, and bytes/s of a large one; machines
# differ more than cards. Two cards 20 GB/s (L40S, ai-dynamo/aiconfigurator; 3 A100 over PCIe likewise,
# NVIDIA/nccl-tests#178); four 5.5 (L40S, the same), 12.7 (tinygrad/open-gpu-kernel-modules#22) and 25 (A100,
# Azure/azurehpc-health-checks); eight 1.3 (L40S) and, with PCIe 5 behind switches, 28, where four have 35
# (NVIDIA/nccl#1639): round middles, in proportion to the rate of the generation. Small messages take 17-18 us
# on four cards (nccl-tests#293, tinygrad#22) and 42 on eight RTX 4090 (NVIDIA/nccl#1530).
PCIE = {2: (12e-6, 20e9), 4: (17e-6, 15e9), 8: (42e-6, 12e9)}
_PCIE_TABLE_GENERATION = 4.0

NO_PEERS = ("GeForce", "L4 ", "A10G")
"""Cards that cannot read each other's memory, as products begin.

GeForce by its driver (tinygrad/open-gpu-kernel-modules README), L4 and A10G in the
virtual machines that clouds rent them in (SpareCores/sc-inspector-data: all-reduces of four L4 pass 5.5 GB/s).
"""

THROUGH_HOST = 2.0
"""Times that each byte crosses the bus when it goes through the host's memory: written there and read back."""

# AMD's mesh has a link between each two cards: 47.7 GB/s for 2 and 313 for 8 MI300X, i.e. about 45 per
# neighbour (stas00/ml-engineering network/README.md). Assumed for other makers' meshes too.
MESH_BYTES_PER_S_PER_NEIGHBOUR = 45e9

# Latency of one small all-reduce, seconds: over NVLink it is fitted (custom kernels and NCCL take 4.9-13 us, vLLM,
# 2 to 8 A100).


class Link(NamedTuple):
    """What joins the cards of one layout: latency of one collective and bus bandwidth."""

    kind: Interconnect
    latency_s: float
    bytes_per_s: float


def link(accelerator: Accelerator, gpus: int, *, early: bool = False) -> Link:
    """The link among ``gpus`` cards of one machine (one card: a link that is never used).

    ``early``: software for another maker's mesh is that of 2024; since then its
    small all-reduces are kernels of their own, as over NVLink.
    """
    kind = accelerator.interconnect(gpus)
    one_way = accelerator.number("nvlink_bytes_per_s_one_way")
    if kind is Interconnect.NONE:
        return Link(kind, 0.0, float("inf"))
    if kind is Interconnect.OTHER:
        mesh = MESH_BYTES_PER_S_PER_NEIGHBOUR * (gpus - 1)
        latency = mechanisms.FITTED.mesh_s if early else mechanisms.FITTED.nvswitch_s
        return Link(kind, latency, mesh if isinstance(one_way, Unknown) else min(mesh, NVLINK_SHARE * one_way))
    if kind is Interconnect.PCIE or isinstance(one_way, Unknown):
        return _pcie(accelerator, gpus)
    return Link(kind, mechanisms.FITTED.nvswitch_s, NVLINK_SHARE * one_way)


def _pcie(accelerator: Accelerator, gpus: int) -> Link:
    """The table's link, its rate doubled or halved for each generation above or below the fourth."""
    generation = accelerator.number("pcie_gen")
    newer = 0.0 if isinstance(generation, Unknown) else generation - _PCIE_TABLE_GENERATION
    latency, rate = next((found for count, found in PCIE.items() if gpus <= count), PCIE[8])
    if f"{accelerator.product} ".startswith(NO_PEERS):
        latency, rate = THROUGH_HOST * latency, rate / THROUGH_HOST
    return Link(
        Interconnect.PCIE,
        latency,
        rate * math.pow(2.0, newer),
    )


def all_reduce_s(link: Link, gpus: int, payload_bytes: float) -> float:
    """Seconds of one all-reduce: ``latency + 2 (n-1)/n x bytes / busbw`` (NVIDIA/nccl-tests doc/PERFORMANCE.md)."""
    if gpus <= 1:
        return 0.0
    return link.latency_s + 2 * (gpus - 1) / gpus * payload_bytes / link.bytes_per_s


def gather_s(link: Link, gpus: int, payload_bytes: float) -> float:
    """Seconds of one all-gather or reduce-scatter of ``payload_bytes`` in all: half an all-reduce (same source)."""
    if gpus <= 1:
        return 0.0
    return link.latency_s + (gpus - 1) / gpus * payload_bytes / link.bytes_per_s


def tensor_parallel_s(link: Link, gpus: int, layers: int, activation_bytes: float) -> float:
    """All-reduces of one forward pass: two a layer, after attention and after the MLP.

    ``activation_bytes`` = tokens x hidden size x bytes (Shoeybi et al., Megatron-LM, arXiv 1909.08053).
    """
    return 2 * layers * all_reduce_s(link, gpus, activation_bytes)
