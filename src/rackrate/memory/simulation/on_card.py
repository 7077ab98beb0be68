"""A simulated peak on a card: what the driver would show."""

from __future__ import annotations

from rackrate.evidence import Range, add_independent
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.overhead import context_bytes


def driver_bytes(peak_bytes: int, reserved_over_allocated: Range, accelerator: Accelerator) -> Range:
    """The peak as the driver sees it: allocated x (reserved / allocated) + the CUDA context, as independent parts.

    The ratio is what engines of the same code were seen to reserve; a simulation sees neither part.
    """
    return add_independent([reserved_over_allocated.scaled(float(peak_bytes)), context_bytes(accelerator)])
