"""A card as it is rented or cut: a share of it, with or without the bridge that it could have."""

from __future__ import annotations

from rackrate.evidence import Kind
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.records import MigProfile
from rackrate.offers.offer import MachineShape
from rackrate.values import replace

_SHARED = ("memory_total_bytes", "bandwidth_bytes_per_s", "peak_", "power_")


def as_rented(accelerator: Accelerator, shape: MachineShape) -> Accelerator:
    """The card as machines of this shape have it: sliced, and joined by PCIe unless bridges are stated."""
    card = slice_of(accelerator, shape.share)
    return card if shape.bridged or not card.nvlink_bridge_max_gpus else replace(card, nvlink_bridge_max_gpus=0)


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


SLICE_OF_LABEL = 0.95
"""What the driver gives a slice of the memory in its name: 4.75 GiB of 5 and 9.5 of 10 in the smallest slices of
A100, more in larger ones (NVIDIA MIG user guide, output of nvidia-smi mig -lgip); the least is taken for all."""


def mig_slice(accelerator: Accelerator, profile: MigProfile) -> Accelerator:
    """``accelerator`` as a program in one slice of ``profile`` sees it: memory by its label, rates by its processors.

    An assumption, marked as such on every scaled fact; bandwidth goes with the memory.
    """
    memory = profile.memory_label_gb / accelerator.memory_sold_gb
    part = slice_of(accelerator, min(memory, 1.0) * SLICE_OF_LABEL)
    rates = {
        name: replace(fact, value=fact.value * float(profile.sm_fraction), kind=Kind.ASSUMED, note=profile.profile)
        for name, fact in accelerator.facts.items()
        if name.startswith("peak_")
    }
    return replace(part, facts={**part.facts, **rates})
