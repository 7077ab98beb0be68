"""Weight and cache formats: how many bytes a number takes, and what computes with it."""

from __future__ import annotations

from rackrate.facts.accelerator import Precision
from rackrate.values import Value


class WeightFormat(Value, frozen=True, kw_only=True):
    """A way to store weights.

    ``bits_per_weight`` includes scales and zero points. ``embeddings_16bit``
    and ``head_16bit`` tell which parts usually stay in 16 bits (norms always
    do). ``computes_in`` is the arithmetic that the weights are multiplied in:
    ``None`` means the workload's own precision (weight-only quantisation).
    ``experts_alone``: a mixture's other matrices stay in 16 bits too.
    ``min_compute_capability`` is for that arithmetic (FP8 compute: 8.9).
    """

    id: str
    title: str
    bits_per_weight: float
    embeddings_16bit: bool
    head_16bit: bool
    computes_in: Precision | None
    min_compute_capability: tuple[int, int] | None
    source: str
    experts_alone: bool = False

    @property
    def bytes_per_weight(self) -> float:
        """Bytes of one quantised weight, scales included."""
        return self.bits_per_weight / 8
