"""What a memory estimate says."""

from __future__ import annotations

from enum import StrEnum

from rackrate.evidence import Range
from rackrate.values import Value


class Phase(StrEnum):
    """When memory is held. ``always`` parts count in every phase."""

    ALWAYS = "always"
    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    STEP = "step"
    SAVE = "save"
    ENCODE = "encode"
    DENOISE = "denoise"
    PICTURE = "picture"


class Metric(StrEnum):
    """Which reading a number predicts."""

    ALLOCATED = "allocated"
    RESERVED = "reserved"
    DRIVER = "driver"


class Verdict(StrEnum):
    """``fits``: the high end is within what is usable; ``tight``: only the likely value is."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"


class Component(Value, frozen=True, kw_only=True):
    """One named part of the memory of the fullest card, in bytes, held during ``phases``."""

    name: str
    phases: tuple[Phase, ...]
    bytes: Range
    note: str = ""


class CacheRoom(Value, frozen=True, kw_only=True):
    """What is left for the KV cache on the fullest card.

    ``bytes_per_token`` is for one more token of one sequence (all layers, this
    card's share). ``tokens`` is the capacity of the whole cache over the
    replica; ``full_sequences`` how many sequences of the planned context it holds.
    """

    bytes_per_token: float
    room_bytes: Range
    tokens: Range
    context_tokens: int
    full_sequences: int


class MemoryEstimate(Value, frozen=True, kw_only=True):
    """Peak memory of the fullest card, by phase and component.

    ``peak`` is the maximum over phases as the driver sees it (``metric``
    driver); ``allocated`` and ``reserved`` are the same peak in the
    framework's own metrics. ``usable_bytes`` is the driver's total less what
    nothing can use. For an engine that takes a fixed share at start the demand
    (weights, overhead, cache of the asked concurrency) is compared with the
    share; the CUDA context, which such engines do not count, is in both.
    ``sequences_asked`` (over all replicas) can be more than ``sequences_held``
    in an engine that queues; both are 0 in training.
    """

    components: tuple[Component, ...]
    phases: tuple[tuple[Phase, Range], ...]
    peak_phase: Phase
    peak: Range
    allocated: Range
    reserved: Range
    metric: Metric
    usable_bytes: float
    verdict: Verdict
    cache: CacheRoom | None = None
    sequences_held: int = 0
    sequences_asked: int = 0

    @property
    def queues(self) -> bool:
        """Whether some of the asked sequences wait for room in the cache."""
        return self.sequences_held < self.sequences_asked

    @property
    def headroom_bytes(self) -> float:
        """Usable bytes less the likely peak; negative when it does not fit."""
        return self.usable_bytes - self.peak.likely
