"""Spread: how far a speed may be off, and never above the physical ceiling."""

from __future__ import annotations

import math
from enum import StrEnum

from rackrate.evidence import Range
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.speed.network import machine_gpus
from rackrate.speed.replica import Replica, is_packed

UNMEASURED_WIDER = 1.5
"""Ranges are this much wider where no published row shows the engine on cards of that kind, or types are emulated."""


_WHOLE_MACHINE = 8
"""Published rows of training on several machines are of eight cards in each; of inference there is none."""


class Phase(StrEnum):
    """What is timed."""

    DECODE = "decode"
    PREFILL = "prefill"
    SERVING = "serving"


SPREADS = {Phase.DECODE: 0.18, Phase.PREFILL: 0.42, Phase.SERVING: 0.32}
"""Half widths of the 80 % interval: published rows scatter so around the estimates (docs/speed.md).

Of decode a little wider than the fitted rows ask for: sources that nothing was fitted to scatter more.
"""

EAGER_SPREAD = 0.25
"""The same of decode where the host launches kernel by kernel: hosts differ."""


TWO_SIDED_SPREAD = 1.5
"""The same of every phase of an encoder-decoder, to which no number was fitted: a factor of 2.5 either way holds four
of five of the published runs of Whisper (tests/golden/whisper-measured.csv)."""

PACKED_SPREAD = 0.35
"""The same of decode with weights under 8 bits outside llama.cpp: kernels differ by engine and version."""


TWO_SIDED_TRAINED = 1.0
"""The same of training an encoder-decoder: no published row was found, a factor of two either way is a belief."""


def spread_of(engine: Engine, accelerator: Accelerator, one: Replica) -> float:
    """The factor less one by which training in ``engine`` may be off either way on ``accelerator``."""
    across = one.layout.nodes == 1 or machine_gpus(one.layout) >= _WHOLE_MACHINE
    measured = accelerator.vendor == "NVIDIA" and not one.rates.emulated and across
    usual = engine.speed.train_spread * (1.0 if measured else UNMEASURED_WIDER)
    return max(usual, TWO_SIDED_TRAINED) if one.encoder is not None else usual


def inference_spread(phase: Phase, engine: Engine, accelerator: Accelerator, one: Replica) -> float:
    """The factor less one by which a phase of inference may be off either way.

    An engine on cards of a kind on which it was never published borrows what
    it reaches on others, and the range is wider.
    """
    usual = SPREADS[phase]
    if phase is Phase.DECODE:
        packed = PACKED_SPREAD if is_packed(one.weights) and not one.vector_kernels else 0.0
        usual = max(usual, packed, EAGER_SPREAD if one.eager else 0.0)
    if one.model.is_encoder_decoder:
        return max(usual, TWO_SIDED_SPREAD)
    known = kind_of(accelerator) in engine.speed.measured_on
    measured = known and not one.rates.emulated and one.layout.nodes == 1
    return usual * (1.0 if measured else UNMEASURED_WIDER)


def kind_of(accelerator: Accelerator) -> str:
    """The kind of card: the compute capability, or another maker's name."""
    have = accelerator.compute_capability
    return f"{have[0]}.{have[1]}" if have else accelerator.vendor


def within(likely: float, spread: float, ceiling: float) -> Range:
    """A speed whose errors are factors: a factor of 1 + spread either way, cut off at the physical ceiling."""
    likely = min(likely, ceiling)
    return Range(likely / (1 + spread), likely, min(likely * (1 + spread), ceiling))


def wider(time: Range, spread: float) -> Range:
    """A time range that also carries the engine's spread, as independent of its own.

    Both are factors either way, so that the roots of squares are of their
    logarithms: however wide, no time comes out as nothing.
    """
    factor = math.log1p(spread)
    below = math.hypot(math.log(time.likely / time.low), factor)
    above = math.hypot(math.log(time.high / time.likely), factor)
    return Range(time.likely * math.exp(-below), time.likely, time.likely * math.exp(above))
