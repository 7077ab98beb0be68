"""The JSON contract of ``fit``."""

from __future__ import annotations

from rackrate.app.wire.parts import (
    AssumptionDoc,
    CacheDoc,
    ChangeDoc,
    ComponentDoc,
    Document,
    FindingDoc,
    Part,
    PhaseDoc,
    RangeDoc,
    WorkloadDoc,
)


class FitOnDoc(Part, frozen=True, kw_only=True):
    """Whether the work fits on one number of cards, with the account of the fullest of them.

    Without a layout or a known memory there is a ``reason`` in place of the numbers.
    """

    gpus: int
    layout: str | None
    interconnect: str
    verdict: str | None
    peak_bytes: RangeDoc | None
    usable_bytes: float | None
    headroom_bytes: float | None
    full_sequences: int | None
    components: list[ComponentDoc]
    reason: str | None


class LargestDoc(Part, frozen=True, kw_only=True):
    """The largest value of one setting that surely fits, the others kept (0: none does).

    ``capped``: memory allows more, but the model's own context or the search ends there.
    ``global_batch``: what the sequences of a step must be for it, where that is not what they are.
    """

    knob: str
    now: int
    value: int
    capped: bool
    global_batch: int | None = None


class SliceFitDoc(Part, frozen=True, kw_only=True):
    """A kind of MIG slice that holds the whole work, and how many of them one card has.

    ``share_of_usable``: likely peak over what a program can use of the slice;
    ``unused_bytes``: the rest.
    """

    profile: str
    at_most: int
    compute_share: float
    memory_label_gb: float
    verdict: str
    share_of_usable: float
    unused_bytes: float
    source: str


class HoldingDoc(Part, frozen=True, kw_only=True):
    """A card class that surely holds the work on as many cards, at its cheapest offer on demand."""

    accelerator: str
    product: str
    gpus: int
    layout: str
    headroom_bytes: float
    price_per_hour: str
    price_currency: str
    provider: str
    offer: str
    offer_id: str
    region: str
    market: str
    price_observed_at: str
    price_source: str


class FitDocument(Document, frozen=True, kw_only=True):
    """Answer of ``fit``: does it fit, what fills the card, what would make it fit, and what else would.

    ``counts`` has every number of cards that was asked for; the rest of the
    document is of the one that fits best, of equals the fewest. ``copies_per_card``
    are whole copies of the work that one card surely holds by memory alone;
    null where the work takes several cards. ``gpus`` are those of each of ``nodes`` machines.
    """

    workload: WorkloadDoc
    accelerator: str
    product: str
    gpus: int
    layout: str
    interconnect: str
    verdict: str
    metric: str
    peak_bytes: RangeDoc
    allocated_bytes: RangeDoc
    reserved_bytes: RangeDoc
    peak_phase: str
    usable_bytes: float
    memory_total_bytes: float
    headroom_bytes: float
    components: list[ComponentDoc]
    phases: list[PhaseDoc]
    cache: CacheDoc | None
    changes: list[ChangeDoc]
    counts: list[FitOnDoc]
    largest: list[LargestDoc]
    copies_per_card: int | None
    slices: list[SliceFitDoc]
    cheapest: list[HoldingDoc]
    assumptions: list[AssumptionDoc]
    warnings: list[FindingDoc]
    nodes: int = 1


DOCUMENTS: dict[str, type[Document]] = {"fit": FitDocument}
