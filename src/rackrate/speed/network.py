"""Several machines: which groups of cards reach across them, and what the network between leaves of a link.

Cards are placed as Megatron-LM places them (arXiv 2104.04473, section 3): those
of a tensor group next to each other, then those of a sequence, then
replicas, stages of a pipeline outermost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rackrate.facts.accelerator import Accelerator, Interconnect
from rackrate.speed.communication import Link, link
from rackrate.workload.layout import Layout
from rackrate.workload.network import Network
from rackrate.workload.workload import Workload

NETWORK_SHARE = 0.8
"""Of an adapter's label, what collectives reach: 320 of 400 Gb/s (stas00/ml-engineering network/README.md).

RDMA that is set up well. Sockets over Ethernet, adapters shared with other tenants and a wrong
pairing of cards and adapters reach less, down to a tenth.
"""

NETWORK_HOP_S = 7.5e-6
"""One step of a small tree all-reduce over a network (NVIDIA/nccl src/graph/tuning.cc, hwLat: NET, tree, LL128)."""

# Of a server with switched NVLink or another maker's mesh one adapter a card: 200 Gb/s beside A100, 400 since
# (NVIDIA DGX A100, H100 and B200 user guides; Azure ND MI300X v5). Of all others 100 Gb/s a machine: 8 A10G of
# AWS g5.48xlarge and 8 L4 of GCP g2-standard-96 have it, 4 A100 PCIe of Azure NC A100 v4 have 80, 8 L40S up to 400.
USUAL_BITS_PER_S = {"card": 400e9, "ampere card": 200e9, "machine": 100e9}
_HOPPER = (9, 0)


def usual_network(card: Accelerator, gpus: int) -> Network:
    """The network of a machine with ``gpus`` of ``card``, where none was named."""
    kind = card.interconnect(max(2, gpus))
    if kind not in {Interconnect.NVSWITCH, Interconnect.OTHER}:
        return Network(bits_per_s=USUAL_BITS_PER_S["machine"])
    early = kind is Interconnect.NVSWITCH and (card.compute_capability or _HOPPER) < _HOPPER
    return Network(bits_per_s=USUAL_BITS_PER_S["ampere card" if early else "card"], adapters=gpus)


def network_of(workload: Workload, card: Accelerator, layout: Layout) -> Network:
    """The network that was named, else the usual one."""
    named = workload.parallel.network if workload.parallel is not None else None
    return named or usual_network(card, machine_gpus(layout))


def machine_gpus(layout: Layout) -> int:
    """Cards of the layout in each machine."""
    return max(1, layout.gpus // layout.nodes)


class Group(NamedTuple):
    """``size`` cards that exchange, each ``stride`` places behind the one before it."""

    stride: int
    size: int


def group_link(card: Accelerator, layout: Layout, group: Group, network: Network, *, early: bool) -> Link:
    """The link among the cards of ``group``.

    Inside a machine it is the machine's own. Across machines NCCL's rings cross each
    network once, so that the slower of the two decides (arXiv 1909.09756 for
    the rings; NVIDIA/nccl-tests doc/PERFORMANCE.md); groups side by side share the
    adapters. A small message goes up and down a tree of machines.
    """
    here, (stride, size) = machine_gpus(layout), group
    if stride * size <= here:
        return link(card, stride * size if size > 1 else here, early=early)
    members = max(1, here // stride)
    inside = link(card, here, early=early) if members > 1 else link(card, 1)
    machines = math.ceil(size / members)
    rate = NETWORK_SHARE * network.bytes_per_s * members / here
    latency = inside.latency_s + 2 * math.log2(machines) * NETWORK_HOP_S
    return Link(inside.kind, latency, min(inside.bytes_per_s, rate))


def crossing_s(layout: Layout, network: Network, payload_bytes: float) -> float:
    """Seconds in which one stage of a pipeline sends ``payload_bytes`` of each replica to the next machine.

    The cards of a tensor group send a part each; replicas side by side share the adapters.
    """
    replicas = max(1.0, machine_gpus(layout) / (layout.tensor * layout.context))
    return NETWORK_HOP_S + replicas * payload_bytes / (NETWORK_SHARE * network.bytes_per_s)


def crossings(layout: Layout) -> int:
    """Boundaries between stages that lie between machines."""
    if layout.nodes <= 1 or layout.pipeline <= 1:
        return 0
    return min(layout.pipeline, layout.nodes) - 1
