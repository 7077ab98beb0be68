"""The JSON contract of ``speed``."""

from __future__ import annotations

from rackrate.app.wire.gpus import MeasuredDoc
from rackrate.app.wire.measured import JudgedDoc
from rackrate.app.wire.parts import AssumptionDoc, ChangeDoc, Document, FactDoc, FindingDoc, Part, RangeDoc, WorkloadDoc


class BusyDoc(Part, frozen=True, kw_only=True):
    """The share of a pass for which one resource works; they overlap, so that the sum can be more than 1."""

    resource: str
    share: float


class PartSpeedDoc(Part, frozen=True, kw_only=True):
    """One part of the work (prefill, decode, step) on a machine that does nothing else, beside the card's roofs.

    ``seconds``: one pass (the prompts in flight read together, one token more
    for each of them, or one optimizer step). ``bandwidth_share`` and
    ``arithmetic_share``: least time of the pass at the published bandwidth and
    at the published dense peak, over its likely time; the rates are those
    shares of a card's published ones. ``share_of_ceiling`` is the larger.
    """

    part: str
    tokens_per_s: RangeDoc
    ceiling_tokens_per_s: float
    share_of_ceiling: float
    seconds: RangeDoc
    limited_by: str
    bandwidth_share: float | None
    bytes_per_s_per_card: float | None
    arithmetic_share: float
    flop_per_s_per_card: float
    busy: list[BusyDoc]


class EnergyDoc(Part, frozen=True, kw_only=True):
    """What the cards draw while they work and watt-hours of a million tokens, or of an image; else the ``reason``.

    The cards alone, as the driver measures them: hosts, cooling and losses come on top.
    """

    watts_per_gpu: RangeDoc | None
    watts: RangeDoc | None
    wh_per_million_tokens: RangeDoc | None
    wh_per_image: RangeDoc | None
    reason: str | None


class MissedDoc(Part, frozen=True, kw_only=True):
    """A target (deadline, latency, load) that the likely value misses."""

    target: str
    observed: float
    limit: float
    unit: str


class PercentilesDoc(Part, frozen=True, kw_only=True):
    """Of all requests, 50, 90 and 99 in a hundred take at most so long."""

    p50: RangeDoc
    p90: RangeDoc
    p99: RangeDoc


class LoadDoc(Part, frozen=True, kw_only=True):
    """What requests meet under one load, simulated step by step; the ranges are those of the speeds behind it.

    Requests come at ``offered_requests_per_s`` whatever happens (open loop), or from ``users`` who
    wait for their answers. ``stable``: the machine keeps up. ``in_flight`` and ``waiting``: means
    over time. ``cache_use`` and ``cache_use_most``: share of the KV cache. ``preempted``: share of
    the requests that a full cache threw out. ``simulated_requests`` count;
    ``relative_error`` is the standard error of the 90th percentile of the time to first token that so few leave.
    """

    offered_requests_per_s: float | None
    users: int | None
    stable: bool
    first_token_s: PercentilesDoc
    s_per_output_token: PercentilesDoc | None
    request_s: PercentilesDoc
    requests_per_s: RangeDoc
    tokens_per_s: RangeDoc
    in_flight: float
    waiting: float
    cache_use: float
    cache_use_most: float
    preempted: float
    simulated_requests: int
    simulated_s: float
    relative_error: float | None


class HighestLoadDoc(Part, frozen=True, kw_only=True):
    """The highest load at which the ``percentile`` asked for meets the latency targets (null: there is none).

    ``requests_per_s`` is null where a request alone misses one; ``ended_by`` names
    the target, or the capacity. ``curve``: every load that was simulated on the way, the lightest first.
    """

    requests_per_s: RangeDoc | None
    percentile: int
    max_first_token_s: float | None
    max_s_per_output_token: float | None
    ended_by: str
    capacity_requests_per_s: RangeDoc
    at: LoadDoc
    curve: list[LoadDoc]


class SharedCardDoc(Part, frozen=True, kw_only=True):
    """One card that serves the users asked for by ``copies`` programs; rates are of all.

    ``mig_profile``: the slice that each has to itself (null: side by side, as
    by NVIDIA MPS). ``in_flight``: requests of each program. Not ``calibrated``: what physics gives.
    """

    mig_profile: str | None
    copies: int
    in_flight: float
    requests_per_s: RangeDoc
    tokens_per_s: RangeDoc
    s_per_output_token: RangeDoc
    calibrated: bool


class NodesDoc(Part, frozen=True, kw_only=True):
    """The work on ``nodes`` machines; ``speedup`` is over the fewest of them that do it (null: so many do not)."""

    nodes: int
    layout: str | None
    pace: RangeDoc | None
    speedup: float | None
    meets_targets: bool
    reason: str | None


class MachineSpeedDoc(Part, frozen=True, kw_only=True):
    """The whole work on one machine of ``gpus`` cards; ``reason`` says why it cannot be done, numbers are null then.

    ``tokens_per_s`` are output tokens of all requests, or tokens trained on (null for images).
    ``s_per_image`` is a batch's time over its images on one card, ``steps_per_s`` denoising steps of it;
    ``encode_s``, ``denoise_s`` and ``decode_s`` are its parts.
    ``speedup`` is over the fewest cards that do the work, ``efficiency`` that
    over the ratio of the cards. ``hours`` is start-up and work together, null
    where the work has no end or no size. ``pauses_hours``: checkpoints
    and evaluations, part of ``work_hours``. ``changes`` would make it fit. ``load``
    and ``highest_load`` are there where serving was simulated, and for one card ``shared``: the same
    users served by several programs on it. ``nodes`` machines share the work over ``network``, and
    ``by_nodes`` has fewer of them beside it. ``audio_s_per_s`` are seconds of sound transcribed in a second.
    """

    gpus: int
    interconnect: str
    layout: str | None
    verdict: str | None
    tokens_per_s: RangeDoc | None
    limited_by: str | None
    ceiling_tokens_per_s: float | None
    share_of_ceiling: float | None
    parts: list[PartSpeedDoc]
    concurrency: int | None
    first_token_s: RangeDoc | None
    per_user_tokens_per_s: RangeDoc | None
    s_per_output_token: RangeDoc | None
    requests_per_s: RangeDoc | None
    capacity_requests_per_s: RangeDoc | None
    step_s: RangeDoc | None
    model_flop_utilisation: RangeDoc | None
    energy: EnergyDoc | None
    speedup: float | None
    efficiency: float | None
    work_hours: RangeDoc | None
    startup_hours: RangeDoc | None
    hours: RangeDoc | None
    missed: list[MissedDoc]
    reason: str | None
    detail: str
    changes: list[ChangeDoc]
    shared: list[SharedCardDoc]
    images_per_s: RangeDoc | None = None
    s_per_image: RangeDoc | None = None
    steps_per_s: RangeDoc | None = None
    ceiling_images_per_s: float | None = None
    checkpoint_s: RangeDoc | None = None
    pauses_hours: RangeDoc | None = None
    encode_s: RangeDoc | None = None
    denoise_s: RangeDoc | None = None
    decode_s: RangeDoc | None = None
    load: LoadDoc | None = None
    highest_load: HighestLoadDoc | None = None
    audio_s_per_s: RangeDoc | None = None
    nodes: int = 1
    network: str | None = None
    by_nodes: tuple[NodesDoc, ...] = ()


class AdviceDoc(Part, frozen=True, kw_only=True):
    """One tuning, and what it leads to by the estimate made again with it.

    ``pace`` is the speed with it (tokens a second), ``speedup`` that over the machine as asked. ``cost_before`` and
    ``cost_after``: the whole job, or a million tokens where the work has no end, at the cheapest price on
    demand for such a machine (null where nobody sells it by the hour). ``changes_results``: quality wants a look.
    """

    mechanism: str
    what: str
    changes: list[ChangeDoc]
    pace: RangeDoc
    speedup: float
    hours: RangeDoc | None
    peak_bytes: RangeDoc
    cost_before: str | None
    cost_after: str | None
    currency: str | None
    changes_results: bool
    source: str


class CardSpeedDoc(Part, frozen=True, kw_only=True):
    """One card: its published rates that the work meets, what others measured of them, and machines of it.

    ``powered_flop_per_s`` is the arithmetic that the power limit pays for, where
    known. ``fewest_gpus`` do the work and meet every target of the workload;
    ``fastest_gpus`` have the highest speed. ``advice`` is what tuning would change on
    ``advice_gpus`` cards, the fewest that meet the targets, else the fewest that do the work.
    """

    accelerator: str
    product: str
    computes_in: str | None
    roofs: list[FactDoc]
    powered_flop_per_s: float | None
    measured: list[MeasuredDoc]
    machines: list[MachineSpeedDoc]
    fewest_gpus: int | None
    fastest_gpus: int | None
    advice_gpus: int | None = None
    advice: tuple[AdviceDoc, ...] = ()


class SpeedDocument(Document, frozen=True, kw_only=True):
    """Answer of ``speed``: how fast cards do the work, what limits them, and what more cards change.

    ``judged``: the measured speed, where one was given; all else is corrected by it.
    """

    workload: WorkloadDoc
    cards: list[CardSpeedDoc]
    assumptions: list[AssumptionDoc]
    warnings: list[FindingDoc]
    judged: JudgedDoc | None = None


DOCUMENTS: dict[str, type[Document]] = {"speed": SpeedDocument}
