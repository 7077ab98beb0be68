"""Roofs: each phase of the work beside what the card's memory and arithmetic allow at their published rates."""

from __future__ import annotations

from enum import StrEnum

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.speed import training
from rackrate.speed.calibration import spreads_of, training_spread
from rackrate.speed.estimate_types import Bound, SpeedEstimate, longest
from rackrate.speed.flops import model_flop_per_token
from rackrate.speed.guessing import least_bytes, least_flop, round_s, round_terms
from rackrate.speed.prefill import attention_flop, matrix_flop, prefill_s, prefill_terms, stages_at_once
from rackrate.speed.replica import Replica, replica, weight_bytes_touched
from rackrate.speed.roofline import Rates
from rackrate.speed.serving import spread_over
from rackrate.speed.spread import Phase, within
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Training, Workload


class Part(StrEnum):
    """A part of the work with a speed of its own."""

    PREFILL = "prefill"
    DECODE = "decode"
    STEP = "step"


class PartSpeed(Value, frozen=True, kw_only=True):
    """How fast one part of the work goes, and how near that is to the roofs.

    ``tokens_per_s`` of the machine while it does nothing else: prompt tokens
    read, tokens written, or tokens trained on. ``seconds`` is the time of one
    pass: the prompts in flight read together, one token for each of them, or
    one optimizer step. ``bandwidth_share`` is the least time that the memory
    traffic of the pass takes at the published bandwidth, over the time that
    it takes; ``arithmetic_share`` the same of its FLOPs at the published dense
    peak (``None``: no least traffic is known). The larger of the two is the
    share of the ceiling that is reached. ``busy``: of the time of the pass, the
    share for which each resource works; they overlap, so that the sum can be
    more than 1.
    """

    part: Part
    tokens_per_s: Range
    ceiling_tokens_per_s: float
    seconds: Range
    bandwidth_share: float | None
    arithmetic_share: float
    limited_by: Bound
    busy: tuple[tuple[Bound, float], ...]

    @property
    def share_of_ceiling(self) -> float:
        """Likely speed over the most that any software could reach in this layout."""
        return self.tokens_per_s.likely / self.ceiling_tokens_per_s


class Roofs(Value, frozen=True, kw_only=True):
    """The published rates of one card that the work meets, and its parts beside them."""

    rates: Rates
    parts: tuple[PartSpeed, ...]


class _Pass(Value, frozen=True, kw_only=True):
    """One pass of a part: its tokens over all replicas, its time, and the least times of its traffic and FLOPs."""

    part: Part
    tokens: float
    seconds: float
    memory_s: float | None
    arithmetic_s: float
    busy_s: dict[Bound, float]


def roofs(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, speed: SpeedEstimate
) -> Roofs | Unknown:
    """The parts of ``workload`` at the speed of ``speed``, which was estimated for the same cards and layout."""
    if workload.training is not None and workload.training.pictured is not None:
        return Unknown("parts of training on images are not told apart")
    one = replica(workload, accelerator, layout, engine)
    if isinstance(one, Unknown):
        return one
    passes: tuple[_Pass, ...] = ()
    if workload.training is not None:
        passes = (_optimizer_step(one, workload, workload.training),)
    elif workload.serving is not None and speed.serving is not None:
        replicas, batch = spread_over(one, speed.serving.concurrency)
        passes = (*_prefill(one, replicas, batch, workload.serving), _decode(one, replicas, batch, workload.serving))
    inference = spreads_of(workload, accelerator, layout, engine, one)
    spreads = {
        Part.PREFILL: inference[Phase.PREFILL],
        Part.DECODE: inference[Phase.DECODE],
        Part.STEP: training_spread(workload, accelerator, layout, engine, one),
    }
    return Roofs(rates=one.rates, parts=tuple(_beside_roofs(one, each, spreads[each.part]) for each in passes))


def _beside_roofs(one: Replica, each: _Pass, spread: float) -> PartSpeed:
    ceiling = each.tokens / max(each.memory_s or 0.0, each.arithmetic_s)
    rate = within(each.tokens / each.seconds, spread, ceiling)
    return PartSpeed(
        part=each.part,
        tokens_per_s=rate,
        ceiling_tokens_per_s=ceiling,
        seconds=rate.inverse(each.tokens),
        bandwidth_share=None if each.memory_s is None else each.memory_s / each.seconds,
        arithmetic_share=each.arithmetic_s / each.seconds,
        limited_by=longest(each.busy_s, eager=one.eager),
        busy=tuple((bound, seconds / each.seconds) for bound, seconds in each.busy_s.items() if seconds),
    )


def _prefill(one: Replica, replicas: int, batch: float, serving: Serving) -> tuple[_Pass, ...]:
    """Reading the prompts in flight together: ``2 N T`` and attention against the peak, the weights once against BW."""
    if not serving.read_tokens:
        return ()
    tokens, behind = batch * serving.read_tokens, serving.shared_prefix_tokens
    stages = stages_at_once(one, batch, serving.read_tokens)
    attention = attention_flop(one, serving.read_tokens, behind) * tokens
    flop = matrix_flop(one, batch, serving.read_tokens) + attention
    cards = one.layout.tensor * stages
    terms = prefill_terms(one, batch, serving.read_tokens, behind)
    found = _Pass(
        part=Part.PREFILL,
        tokens=replicas * tokens,
        seconds=prefill_s(one, batch, serving.read_tokens, behind),
        memory_s=weight_bytes_touched(one.reader, tokens) / (one.rates.bandwidth_bytes_per_s * cards),
        arithmetic_s=flop / (one.rates.flop_per_s * cards),
        busy_s=_measured(terms, one.times.prefill / stages),
    )
    return (found,)


def _decode(one: Replica, replicas: int, batch: float, serving: Serving) -> _Pass:
    """One token more for each request in flight: weights and caches once against BW, ``2 N B`` against the peak.

    The context is the prompt and half the output. Attention's FLOPs are left
    out: the caches that it reads take longer.
    """
    context = serving.prompt_tokens + serving.output_tokens / 2
    return _Pass(
        part=Part.DECODE,
        tokens=replicas * batch * one.tokens_per_step,
        seconds=round_s(one, batch, context),
        memory_s=least_bytes(one, batch, context) / one.rates.bandwidth_bytes_per_s,
        arithmetic_s=least_flop(one, batch) / (one.rates.flop_per_s * one.layout.tensor),
        busy_s=_measured(round_terms(one, batch, context), one.times.decode),
    )


def _optimizer_step(one: Replica, workload: Workload, run: Training) -> _Pass:
    """One optimizer step: the FLOPs that the model needs, recomputation left out, so that the share is the MFU."""
    tokens = training.tokens_per_step(one, run)
    return _Pass(
        part=Part.STEP,
        tokens=tokens,
        seconds=training.step_s(one, workload, run),
        memory_s=None,
        arithmetic_s=tokens * model_flop_per_token(workload, run) / (one.rates.flop_per_s * one.layout.gpus),
        busy_s=_measured(training.busy_s(one, workload, run), one.times.training),
    )


def _measured(terms: dict[Bound, float], times: float) -> dict[Bound, float]:
    """Seconds of each resource, all ``times`` as long: one measured speed does not say which of them differs."""
    return {bound: seconds * times for bound, seconds in terms.items()}
