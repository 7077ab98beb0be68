"""A share of a card seen as a smaller card."""

from __future__ import annotations

from rackrate.evidence import Kind
from rackrate.facts.accelerator import Accelerator
from rackrate.values import replace

_SHARED = ("memory_total_bytes", "bandwidth_bytes_per_s", "peak_", "power_")


def slice_of(accelerator: Accelerator, share: float) -> Accelerator:
    """``accelerator`` with memory, bandwidth and rates scaled to ``share`` of the card (0 < share <= 1).

    An assumption, marked as such on every scaled fact: a vGPU or fractional
    instance is sold by memory, and its neighbours are taken to be busy.
    """
    if share >= 1:
        return accelerator
    scaled = {
        name: replace(fact, value=fact.value * share, kind=Kind.ASSUMED, note=f"{share:g} of the card")
        if name.startswith(_SHARED)
        else fact
        for name, fact in accelerator.facts.items()
    }
    return replace(accelerator, facts=scaled, memory_sold_gb=accelerator.memory_sold_gb * share)
