"""The JSON contracts: what every document that rackrate prints looks like.

Money is a decimal string with its currency; sizes are bytes; times are hours
or seconds as named. Keys, ids and codes are never translated. A change that
breaks a reader raises the number in ``schema``.
"""

from __future__ import annotations

from rackrate.app.wire_hosted import HostedDoc
from rackrate.app.wire_parts import Document as Document  # noqa: PLC0414 - the other contracts import it from here
from rackrate.app.wire_parts import Part as Part  # noqa: PLC0414 - the same
from rackrate.app.wire_parts import RangeDoc as RangeDoc  # noqa: PLC0414 - the same


class FindingDoc(Part, frozen=True, kw_only=True):
    """One problem as a value."""

    code: str
    severity: str
    subject: str
    observed: str
    expected: str
    action: str


class AssumptionDoc(Part, frozen=True, kw_only=True):
    """A default that was made."""

    key: str
    value: str
    why: str
    explanation: str


class ComponentDoc(Part, frozen=True, kw_only=True):
    """A named part of the memory of the fullest card."""

    name: str
    phase: str
    bytes: RangeDoc
    note: str


class ChangeDoc(Part, frozen=True, kw_only=True):
    """One setting to change, from what to what, and the peak it leads to where that was computed."""

    knob: str
    before: str
    after: str
    peak_bytes: RangeDoc | None = None


class CacheDoc(Part, frozen=True, kw_only=True):
    """Room for the KV cache on one replica."""

    bytes_per_token: float
    room_bytes: RangeDoc
    tokens: RangeDoc
    context_tokens: int
    full_sequences: int


class PhaseDoc(Part, frozen=True, kw_only=True):
    """Peak of one phase, as the driver sees it."""

    phase: str
    bytes: RangeDoc


class WorkloadDoc(Part, frozen=True, kw_only=True):
    """The workload as it was understood, defaults included; sizes that do not apply are null."""

    task: str
    model: str
    engine: str
    precision: str
    weight_format: str
    context_tokens: int
    batch: int
    tokens: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    concurrency: int | None = None
    requests: float | None = None
    requests_per_s: float | None = None
    online: bool | None = None
    horizon_hours: float | None = None


class PlanFitDoc(Part, frozen=True, kw_only=True):
    """Fit of one plan."""

    verdict: str
    headroom_bytes: float
    peak_bytes: RangeDoc
    usable_bytes: float
    full_sequences: int | None


class LineDoc(Part, frozen=True, kw_only=True):
    """One line of the bill in the currency of the offer."""

    name: str
    quantity: str
    unit: str
    unit_price: str
    amount: str
    currency: str
    rule: str


class CostDoc(Part, frozen=True, kw_only=True):
    """All-in cost in the display currency, with the lines of the likely bill."""

    low: str
    likely: str
    high: str
    currency: str
    lines: list[LineDoc]
    billed: str
    billed_currency: str
    per_million_tokens: str | None


class SpeedDoc(Part, frozen=True, kw_only=True):
    """Speed of one plan; tokens are output tokens when serving and training tokens otherwise."""

    tokens_per_s: RangeDoc
    limited_by: str
    first_token_s: RangeDoc | None = None
    per_user_tokens_per_s: RangeDoc | None = None
    requests_per_s: RangeDoc | None = None
    step_s: RangeDoc | None = None
    model_flop_utilisation: RangeDoc | None = None


class IdleDoc(Part, frozen=True, kw_only=True):
    """Memory paid for and left unused."""

    bytes: float
    fraction: float
    cost: str


class PlanDoc(Part, frozen=True, kw_only=True):
    """One ranked plan; ``gpus`` counts the cards of all ``machines``."""

    accelerator: str
    product: str
    cards: list[str]
    gpus: int
    machines: int
    layout: str
    provider: str
    offer: str
    offer_id: str
    region: str
    market: str
    stock: str
    fit: PlanFitDoc
    speed: SpeedDoc
    hours: RangeDoc
    billed_hours: float
    cost: CostDoc
    idle_memory: IdleDoc
    price_per_hour: str
    price_currency: str
    price_observed_at: str
    price_observed_how: str
    price_age_days: int | None
    price_source: str
    price_own: bool
    warnings: list[FindingDoc]


class FrontierDoc(Part, frozen=True, kw_only=True):
    """A plan that no other plan beats in both cost and time."""

    offer_id: str
    provider: str
    offer: str
    accelerator: str
    gpus: int
    hours: float
    tokens_per_s: float
    cost: str


class RunnerUpDoc(Part, frozen=True, kw_only=True):
    """Why the second plan lost to the first: ratios second / first, and the test that decided."""

    offer_id: str
    provider: str
    accelerator: str
    gpus: int
    decided_by: str
    cost_ratio: float
    time_ratio: float


class NearestDoc(Part, frozen=True, kw_only=True):
    """The closest miss of a group."""

    provider: str
    offer: str
    offer_id: str
    accelerator: str
    gpus: int
    observed: str
    limit: str
    change: ChangeDoc | None
    cost: str | None


class RejectedDoc(Part, frozen=True, kw_only=True):
    """A group of offers left out for one reason."""

    reason: str
    count: int
    nearest: NearestDoc | None


class PlanDocument(Document, frozen=True, kw_only=True):
    """Answer of ``plan``; ``hosted`` is null for training and where it was not wanted."""

    workload: WorkloadDoc
    rank: str
    currency: str
    rates_on: str
    rates_source: str
    considered: int
    plans: list[PlanDoc]
    runner_up: RunnerUpDoc | None
    hosted: HostedDoc | None
    more_plans: int
    frontier: list[FrontierDoc]
    rejected: list[RejectedDoc]
    assumptions: list[AssumptionDoc]
    warnings: list[FindingDoc]


class FactDoc(Part, frozen=True, kw_only=True):
    """One fact of a card."""

    quantity: str
    value: float
    unit: str
    condition: str
    kind: str
    source: str
    note: str


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

    ``measured``, ``slices``, ``suits``, ``sizes``, ``results`` and ``variants``
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


class ProblemDocument(Document, frozen=True, kw_only=True):
    """What a refused request says when ``--json`` was asked for."""

    problems: list[FindingDoc]


DOCUMENTS: dict[str, type[Document]] = {
    "plan": PlanDocument,
    "gpu": GpuDocument,
    "problems": ProblemDocument,
}
