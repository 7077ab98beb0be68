"""The document of `plan`: ranked plans, what they cost, and why the rest is out."""

from __future__ import annotations

from rackrate.app.wire.hosted import HostedDoc
from rackrate.app.wire.measured import JudgedDoc
from rackrate.app.wire.parts import AssumptionDoc, ChangeDoc, Document, FindingDoc, Part, RangeDoc, WorkloadDoc


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
    per_thousand_images: str | None = None


class SpeedDoc(Part, frozen=True, kw_only=True):
    """Speed of one plan; tokens are output tokens when serving and training tokens otherwise, null for images.

    ``s_per_image`` is a batch's time over its images on one card, ``steps_per_s`` denoising steps of it.
    """

    tokens_per_s: RangeDoc | None
    limited_by: str
    first_token_s: RangeDoc | None = None
    per_user_tokens_per_s: RangeDoc | None = None
    requests_per_s: RangeDoc | None = None
    audio_s_per_s: RangeDoc | None = None
    step_s: RangeDoc | None = None
    model_flop_utilisation: RangeDoc | None = None
    images_per_s: RangeDoc | None = None
    s_per_image: RangeDoc | None = None
    steps_per_s: RangeDoc | None = None


class IdleDoc(Part, frozen=True, kw_only=True):
    """Memory paid for and left unused."""

    bytes: float
    fraction: float
    cost: str


class PlanDoc(Part, frozen=True, kw_only=True):
    """One ranked plan; ``gpus`` counts the cards of all ``machines``, of each of which it has ``share``."""

    accelerator: str
    product: str
    cards: list[str]
    gpus: int
    share: float
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
    share: float
    hours: float
    tokens_per_s: float | None
    cost: str
    images_per_s: float | None = None


class RunnerUpDoc(Part, frozen=True, kw_only=True):
    """Why the second plan lost to the first: ratios second / first, and the test that decided.

    ``per_million_tokens``: what the tokens of the second cost, in the currency of the answer.
    """

    offer_id: str
    provider: str
    accelerator: str
    gpus: int
    share: float
    decided_by: str
    cost_ratio: float
    time_ratio: float
    per_million_tokens: str | None


class NearestDoc(Part, frozen=True, kw_only=True):
    """The closest miss of a group."""

    provider: str
    offer: str
    offer_id: str
    accelerator: str
    gpus: int
    share: float
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
    """Answer of ``plan``; ``hosted`` is null for training and where it was not wanted.

    ``judged``: the measured speed, where one was given; estimates of its card are corrected by it.
    """

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
    judged: JudgedDoc | None = None


DOCUMENTS: dict[str, type[Document]] = {"plan": PlanDocument}
