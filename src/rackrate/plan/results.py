"""Results: how fast one whole card does a piece of reference work, and what a number of results costs."""

from __future__ import annotations

from decimal import Decimal

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.memory.estimate_types import Verdict
from rackrate.money import Money
from rackrate.plan.answer import Reason
from rackrate.plan.filters import runs
from rackrate.speed.estimate import estimate as estimate_speed
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload


class Rate(Value, frozen=True, kw_only=True):
    """Tokens per second of one card (output tokens or trained ones) and the sequences that are in flight."""

    tokens_per_s: Range
    sequences: int
    limited_by: str


class NoRate(Value, frozen=True, kw_only=True):
    """Why a card does not do the work."""

    reason: Reason
    detail: str = ""


def rate_on(card: Accelerator, work: Workload, engine: Engine) -> Rate | NoRate:
    """The speed of ``work`` on one ``card``; its own latency targets and limits are not looked at."""
    if not runs(work, engine, card):
        return NoRate(reason=Reason.ENGINE_UNSUPPORTED, detail=engine.title)
    memory = estimate_memory(work, card, Layout(), engine)
    if isinstance(memory, Unknown):
        return NoRate(reason=Reason.MEMORY_UNKNOWN, detail=memory.reason)
    if memory.verdict is Verdict.DOES_NOT_FIT:
        return NoRate(reason=Reason.DOES_NOT_FIT)
    speed = estimate_speed(work, card, Layout(), engine, memory)
    return (
        NoRate(reason=Reason.SPEED_UNKNOWN, detail=speed.reason) if isinstance(speed, Unknown) else _rate(work, speed)
    )


def _rate(work: Workload, speed: SpeedEstimate) -> Rate | NoRate:
    limit = str(speed.limited_by)
    if speed.serving is not None:
        serving = speed.serving
        return Rate(tokens_per_s=serving.output_tokens_per_s, sequences=serving.concurrency, limited_by=limit)
    if speed.training is None or work.training is None:
        return NoRate(reason=Reason.SPEED_UNKNOWN)
    return Rate(tokens_per_s=speed.training.tokens_per_s, sequences=work.training.micro_batch, limited_by=limit)


def cost_of(tokens: float, tokens_per_s: float, per_hour: Money) -> Money:
    """What ``tokens`` cost at a speed: price per hour x tokens / (tokens per second x 3600).

    For a card that is busy all the time; start-up and idle hours come on top.
    """
    hours = tokens / (tokens_per_s * SECONDS_PER_HOUR)
    return per_hour * Decimal(repr(hours))
