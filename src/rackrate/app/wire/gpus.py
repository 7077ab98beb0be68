"""The document of `gpu`: cards, with a source for each number, and how they compare."""

from __future__ import annotations

from rackrate.app.wire.parts import Document, FactDoc, FindingDoc, Part, RangeDoc


class PriceDoc(Part, frozen=True, kw_only=True):
    """The cheapest offer of a card in one market (a machine of ``gpus`` cards), per card and per GB-hour as sold."""

    market: str
    provider: str
    offer: str
    offer_id: str
    gpus: int
    per_gpu_hour: str
    per_gb_hour_as_sold: str
    currency: str
    observed_at: str


class MeasuredDoc(Part, frozen=True, kw_only=True):
    """What was reached with a card in public measurements or is wanted by health checks, beside what is published.

    ``kind``: best, crowd, sustained, measured, floor, target, stated, reported.
    ``figures`` lie from ``low`` to ``high``; condition and source are of the
    highest. ``share_of_published`` is of ``high``; null where nothing is published.
    """

    quantity: str
    kind: str
    gpus: int
    low: float
    high: float
    unit: str
    figures: int
    published: float | None
    share_of_published: float | None
    condition: str
    source: str


class RenderDoc(Part, frozen=True, kw_only=True):
    """A public rendering score of a card; comparable with others of the same benchmark, version and backend alone.

    ``times_first``: how many times as fast as the first card of the answer in the
    same test (null: it is the first, or did not do it). ``results``: runs behind
    the score, null where not stated.
    """

    benchmark: str
    version: str
    backend: str
    value: float
    unit: str
    higher_is_better: bool
    results: int | None
    times_first: float | None
    source: str
    date: str
    note: str


class SliceDoc(Part, frozen=True, kw_only=True):
    """One way to cut a card (MIG): equal slices, and the share of the card that all of them leave unused."""

    profile: str
    compute_share: float
    memory_label_gb: float
    at_most: int
    compute_unused: float
    memory_unused: float
    source: str
    note: str


class SuitDoc(Part, frozen=True, kw_only=True):
    """Whether a card suits a kind of work (suited, limited, unsuited, unknown), and the fact that decides."""

    work: str
    verdict: str
    because: str
    value: float | None


class HeldDoc(Part, frozen=True, kw_only=True):
    """A model on a card, and the share of the usable memory that the likely peak takes."""

    model: str
    params: int
    share_of_usable: float


class SizeDoc(Part, frozen=True, kw_only=True):
    """What one card is large enough for: the largest dense model of the list that fits one kind of work.

    Up to ``half_empty`` more than half of the card stays idle;
    ``too_small_for`` is the next larger model. ``reason`` says why nothing is known.
    """

    task: str
    engine: str
    weight_format: str
    tokens: int
    batch: int
    largest: HeldDoc | None
    half_empty: HeldDoc | None
    too_small_for: str | None
    reason: str | None


class ResultDoc(Part, frozen=True, kw_only=True):
    """What ``per_tokens`` tokens of a reference workload cost on one card at its cheapest price on demand.

    A card that is busy all the time; ``sequences`` are in flight. ``reason``
    says why there is no speed; without an offer the cost is null.
    """

    result: str
    tokens_per_s: RangeDoc | None
    sequences: int | None
    limited_by: str | None
    per_tokens: float
    cost_low: str | None
    cost: str | None
    cost_high: str | None
    currency: str
    offer_id: str | None
    provider: str | None
    reason: str | None
    detail: str


class ReferenceDoc(Part, frozen=True, kw_only=True):
    """A workload that costs per result are reckoned for."""

    result: str
    task: str
    model: str
    engine: str
    weight_format: str
    prompt_tokens: int | None
    output_tokens: int | None
    sequence_tokens: int | None
    batch: int | None


class RatioDoc(Part, frozen=True, kw_only=True):
    """A number of this card over that of the first card of the answer."""

    quantity: str
    ratio: float


class GpuDoc(Part, frozen=True, kw_only=True):
    """The fact card of one accelerator.

    ``measured``, ``renders``, ``slices``, ``suits``, ``sizes``, ``results`` and ``variants``
    (figures under a condition: other power limits, ECC off, what else is
    printed) are filled for cards asked for by name, not in the list of all.
    ``ecc_default`` is ``on`` or ``off`` where it is known; ``recalled`` names
    the keys whose values no page was seen for.
    """

    id: str
    vendor: str
    product: str
    architecture: str
    form_factor: str
    compute_capability: str
    launch_year: int | None
    memory_type: str
    memory_sold_gb: float
    memory_total_bytes: float | None
    ecc: bool | None
    ecc_default: str
    cooling: str
    nvlink: str
    nvswitch: bool
    mig_instances: int
    rt_cores: int | None
    sparsity_2_4: bool | None
    modified: bool
    recalled: list[str]
    pair: str
    lacks: list[str]
    notes: list[str]
    facts: list[FactDoc]
    prices: list[PriceDoc]
    measured: list[MeasuredDoc]
    renders: list[RenderDoc]
    slices: list[SliceDoc]
    suits: list[SuitDoc]
    sizes: list[SizeDoc]
    results: list[ResultDoc]
    ratios: list[RatioDoc]
    variants: list[FactDoc]


class GpuDocument(Document, frozen=True, kw_only=True):
    """Answer of ``gpu``: one card or several side by side; ``reference`` are the workloads behind ``results``."""

    gpus: list[GpuDoc]
    reference: list[ReferenceDoc]
    warnings: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {"gpu": GpuDocument}
