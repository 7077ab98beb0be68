"""Host link: how fast bytes travel between a card and its host's memory."""

from __future__ import annotations

import math

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator

PCIE_4_BYTES_PER_S = 31.5e9
"""One way over 16 lanes of PCIe 4.0: 16 GT/s x 16 x 128/130 / 8 (PCI-SIG, PCI Express 4.0); halves by generation."""

REACHED = 0.8
"""Of it, what copies from pinned memory reach: 25 GB/s over PCIe 4 (stas00/ml-engineering, compute/accelerator)."""

_TABLE_GENERATION = 4.0


def host_link_bytes_per_s(card: Accelerator) -> float:
    """Bytes a second from the host's memory to ``card``; where its generation is not known, as over PCIe 4."""
    generation = card.number("pcie_gen")
    newer = 0.0 if isinstance(generation, Unknown) else generation - _TABLE_GENERATION
    return PCIE_4_BYTES_PER_S * REACHED * math.pow(2.0, newer)
