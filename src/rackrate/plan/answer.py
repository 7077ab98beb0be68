"""What a plan is, and what the whole answer says."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum

from rackrate.cost.charge_types import Line
from rackrate.evidence import Range
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.money import Money
from rackrate.offers.offer import MachineShape, Offer
from rackrate.problems import Finding
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Assumption


class Rank(StrEnum):
    """What plans are ordered by: money, time to finish, or their product."""

    COST = "cost"
    TIME = "time"
    BOTH = "both"


class Reason(StrEnum):
    """Why an offer was left out, in the order in which the tests are made."""

    CARD_UNKNOWN = "card_unknown"
    CARD_NOT_ASKED = "card_not_asked"
    CARD_PROPERTY = "card_property"
    ARITHMETIC = "arithmetic"
    ENGINE_UNSUPPORTED = "engine_unsupported"
    GPU_COUNT = "gpu_count"
    PROVIDER = "provider"
    REGION = "region"
    REGION_UNKNOWN = "region_unknown"
    MARKET = "market"
    ACCESS = "access"
    ACCESS_UNKNOWN = "access_unknown"
    INTERRUPTIBLE = "interruptible"
    SUPERSEDED = "superseded"
    PRICE_INVALID = "price_invalid"
    PRICE_INCOMPLETE = "price_incomplete"
    PRICE_FROM = "price_from"
    COMMITMENT_UNKNOWN = "commitment_unknown"
    NO_RATE = "no_exchange_rate"
    CURRENCY = "currency"
    OLDER = "older"
    PRICE_ABOVE = "price_above"
    NO_LAYOUT = "no_layout"
    MEMORY_UNKNOWN = "memory_unknown"
    DOES_NOT_FIT = "does_not_fit"
    SPEED_UNKNOWN = "speed_unknown"
    LATENCY = "latency"
    LOAD = "load"
    DEADLINE = "deadline"
    BUDGET = "budget"


class ShapeEstimate(Value, frozen=True, kw_only=True):
    """Memory and speed of the workload on one machine shape, in the best layout found.

    ``work_hours`` is the time of the work on one machine; for a service it is
    the time that it serves over the horizon. Before it come ``startup_hours``
    at the first of ``starts`` starts and ``restart_hours`` at each later one.
    """

    shape: MachineShape
    layout: Layout
    memory: MemoryEstimate
    speed: SpeedEstimate
    work_hours: Range
    startup_hours: Range
    restart_hours: Range
    starts: int = 1
    machines: int = 1

    @property
    def all_startups_hours(self) -> Range:
        """The start-ups of all starts: what is uncertain about the first is so about the later ones too."""
        return over_starts(self.startup_hours, self.restart_hours, self.starts)

    @property
    def tokens_per_s(self) -> Range:
        """Output tokens (serving) or training tokens per second of all machines."""
        if self.speed.serving is not None:
            return self.speed.serving.output_tokens_per_s.scaled(self.machines)
        assert self.speed.training is not None
        return self.speed.training.tokens_per_s

    @property
    def pace(self) -> Range:
        """What is made per second on all machines: images, or tokens."""
        images = self.speed.images
        return self.tokens_per_s if images is None else images.images_per_s.scaled(self.machines)


def over_starts(first: Range, later: Range, starts: int) -> Range:
    """Hours of ``starts`` start-ups, in which the same rates hold: the ends add."""
    more = later.scaled(starts - 1)
    return Range(first.low + more.low, first.likely + more.likely, first.high + more.high)


def likely_of(estimates: Sequence[ShapeEstimate]) -> ShapeEstimate:
    """The estimate that stands for all cards an offer can be: the middle one by a machine's speed, of two the slower.

    Likely hours, speed, machines, bill and its lines are all of this one card, so that they agree.
    """
    return sorted(estimates, key=lambda e: -e.pace.likely / e.machines)[len(estimates) // 2]


class NoEstimate(Value, frozen=True, kw_only=True):
    """Why a machine shape cannot do the work: the test, the number that failed and its limit."""

    shape: MachineShape
    reason: Reason
    observed: float
    limit: float
    unit: str
    detail: str = ""
    layout: Layout | None = None

    @property
    def shortfall(self) -> float:
        """How far off, as a fraction of the limit; infinite when there is no number."""
        if self.limit <= 0 or self.observed != self.observed:
            return float("inf")
        return abs(self.observed - self.limit) / self.limit


class CostRange(Value, frozen=True, kw_only=True):
    """The all-in cost: three exact bills at the low, likely and high time, in the display currency."""

    low: Money
    likely: Money
    high: Money
    lines: tuple[Line, ...]
    billed: Money
    billed_hours: Decimal


class IdleMemory(Value, frozen=True, kw_only=True):
    """Memory that the plan pays for and leaves unused, per card in bytes and in money over the plan."""

    bytes: float
    fraction: float
    cost: Money


class Plan(Value, frozen=True, kw_only=True):
    """One offer that does the work, with everything that the numbers rest on.

    ``estimates`` has one entry for each card that the offer can turn out to
    be; ``hours`` and ``verdict`` cover them all.
    """

    offer: Offer
    estimates: tuple[ShapeEstimate, ...]
    verdict: Verdict
    headroom_bytes: float
    hours: Range
    cost: CostRange
    idle: IdleMemory
    warnings: tuple[Finding, ...]

    @property
    def machines(self) -> int:
        """Machines of this offer that are rented at once: those that are billed (see ``likely_of``)."""
        return likely_of(self.estimates).machines

    @property
    def gpus(self) -> int:
        """Cards rented, over all machines."""
        return self.offer.gpus * self.machines

    @property
    def pace(self) -> Range:
        """Tokens or images per second; the ends are those of all cards that the offer can be."""
        rates = [e.pace for e in self.estimates]
        likely = likely_of(self.estimates).pace.likely
        return Range(min(r.low for r in rates), likely, max(r.high for r in rates))


class Change(Value, frozen=True, kw_only=True):
    """The smallest change that would bring an offer in: what to set, from what, to what."""

    knob: str
    before: str
    after: str


class Nearest(Value, frozen=True, kw_only=True):
    """The offer that came closest in a group of rejections.

    ``observed`` and ``limit`` are the number that failed and what it was held
    against, as text (empty where the test is no number). ``change`` alone
    brings the offer in, at the likely ``cost``; None where no single change does.
    """

    offer: Offer
    observed: str
    limit: str
    change: Change | None
    cost: Money | None = None


class Rejected(Value, frozen=True, kw_only=True):
    """A group of offers left out for one reason."""

    reason: Reason
    count: int
    nearest: Nearest | None


class Answer(Value, frozen=True, kw_only=True):
    """Ranked plans, the frontier of cost against time, what was left out and why.

    ``considered`` offers were looked at; ``possible`` of them do the work.
    """

    plans: tuple[Plan, ...]
    frontier: tuple[Plan, ...]
    rejected: tuple[Rejected, ...]
    considered: int
    possible: int
    assumptions: tuple[Assumption, ...]
    currency: str
    rank: Rank
