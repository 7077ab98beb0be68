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
    ``embedding_bits`` and ``head_bits`` where the format stores these in types of
    their own (None: as the rest); tied ones are stored as a head.
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
    embedding_bits: float | None = None
    head_bits: float | None = None

    @property
    def bytes_per_weight(self) -> float:
        """Bytes of one quantised weight, scales included."""
        return self.bits_per_weight / 8

    def embedding_bytes(self, *, tied: bool) -> float:
        """Bytes of one weight of the input embedding; a ``tied`` one is in 16 bits if the head is."""
        if tied and self.head_bits is not None:
            return self.head_bits / 8
        if self.embedding_bits is not None:
            return self.embedding_bits / 8
        return self._beside(wide=self.embeddings_16bit or (tied and self.head_16bit))

    @property
    def head_bytes(self) -> float:
        """Bytes of one weight of the output head."""
        return self.head_bits / 8 if self.head_bits is not None else self._beside(wide=self.head_16bit)

    def _beside(self, *, wide: bool) -> float:
        return max(2.0, self.bytes_per_weight) if wide else self.bytes_per_weight
