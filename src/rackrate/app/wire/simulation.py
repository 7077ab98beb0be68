"""The JSON contract of a simulation: peaks by phase, the operation at the peak, what it is made of."""

from __future__ import annotations

from rackrate.app.wire.fit import FitDocument
from rackrate.app.wire.parts import Document, FindingDoc, Part, RangeDoc, WorkloadDoc


class SimulatedPhaseDoc(Part, frozen=True, kw_only=True):
    """The peak of one phase, allocated by PyTorch."""

    phase: str
    bytes: int


class SimulatedPartDoc(Part, frozen=True, kw_only=True):
    """What the peak is made of, by what it is for."""

    name: str
    bytes: int


class HeldDoc(Part, frozen=True, kw_only=True):
    """Equal tensors held at the peak: ``count`` of them, of together ``bytes``; the first was made in ``module``."""

    name: str
    bytes: int
    count: int
    shape: list[int]
    dtype: str
    operation: str
    module: str


class OnCardDoc(Part, frozen=True, kw_only=True):
    """The peak on a card as the driver sees it: with the allocator's slack and the CUDA context."""

    accelerator: str
    product: str
    peak_bytes: RangeDoc
    usable_bytes: float
    headroom_bytes: float
    verdict: str


class SimulationDocument(Document, frozen=True, kw_only=True):
    """Answer of ``fit --simulate``: the memory that a program allocates, without a GPU.

    ``workload`` and ``fit`` are null for a program of the user's own, ``fit`` and
    ``card`` where no card was named.
    """

    subject: str
    workload: WorkloadDoc | None
    peak_bytes: int
    peak_phase: str
    operation: str
    module: str
    line: str
    step: int
    steps: int
    phases: list[SimulatedPhaseDoc]
    parts: list[SimulatedPartDoc]
    largest: list[HeldDoc]
    values_read: list[str]
    not_seen: list[str]
    libraries: dict[str, str]
    estimated_bytes: float | None
    card: OnCardDoc | None
    fit: FitDocument | None
    warnings: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {"simulation": SimulationDocument}
