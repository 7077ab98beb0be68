"""Sustained: the rates that a card keeps up through a training run, under its power limit."""

from __future__ import annotations

import math

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.speed.roofline import FLOP_PER_JOULE, Rates, smooth_max
from rackrate.values import Value

SUSTAINED_SHARE = 0.94
"""Of the peak, what matrix products of training keep up on a card whose power limit just pays for its peak.

Fitted on 378 published rows of 14 cards (tools/rate_numbers.csv).
"""

WITHOUT_LIMIT = 0.95
"""The same where power is no limit: the best shapes of torch products (stas00/ml-engineering, compute/accelerator)."""

_NARROW = {Precision.FP8: 2.0, Precision.INT8: 2.0, Precision.FP4: 4.0, Precision.INT4: 4.0}
_UNPOWERED = frozenset({Precision.FP64, Precision.FP32, Precision.TF32})
_OTHER_JOULE = FLOP_PER_JOULE[9, 0]  # newer architectures than those measured: as the last one

# FP32 FLOPs that a multiprocessor can do while it makes one exponential: 64 or 128 units twice a clock, over 16
# exponentials a clock, 32 on compute capability 10.3 (CUDA C++ programming guide, arithmetic instructions).
_FLOP_PER_EXP = {(7, 0): 8.0, (7, 5): 8.0, (8, 0): 8.0, (10, 3): 8.0}
_USUAL_FLOP_PER_EXP = 16.0


class Sustained(Value, frozen=True, kw_only=True):
    """Rates of one card in training: matrix products, the same in 16 bits, and exponentials (infinite: not known)."""

    flop_per_s: float
    half_flop_per_s: float
    exps_per_s: float


def sustained(accelerator: Accelerator, rates: Rates) -> Sustained:
    """What ``accelerator`` keeps up in the arithmetic of ``rates``."""
    half = _half(accelerator, rates)
    share = WITHOUT_LIMIT if rates.precision in _UNPOWERED else sustained_share(accelerator, half)
    each = _FLOP_PER_EXP.get(accelerator.compute_capability or (0, 0), _USUAL_FLOP_PER_EXP)
    return Sustained(
        flop_per_s=rates.flop_per_s * share,
        half_flop_per_s=half * share,
        exps_per_s=math.inf if rates.vector_flop_per_s is None else rates.vector_flop_per_s / each,
    )


def sustained_share(accelerator: Accelerator, half_flop_per_s: float) -> float:
    """Of the 16-bit peak, what training keeps up: ``c sqrt(x)``, x what the power limit pays for over the peak.

    The square root is that of clocks and voltage that fall together: products a
    joule rise as the clock falls, so that half the power costs less than half
    the speed. Bends into ``WITHOUT_LIMIT``. Valid at the default power limit and
    above half of it.
    """
    watts = accelerator.number("power_limit_w")
    if isinstance(watts, Unknown) or accelerator.vendor != "NVIDIA":
        return SUSTAINED_SHARE
    per_joule = FLOP_PER_JOULE.get(accelerator.compute_capability or (0, 0), _OTHER_JOULE)
    powered = SUSTAINED_SHARE * math.sqrt(watts * per_joule / half_flop_per_s)
    return 1 / smooth_max(1 / powered, 1 / WITHOUT_LIMIT)


def _half(accelerator: Accelerator, rates: Rates) -> float:
    """The 16-bit peak: its own where it is known."""
    if rates.precision in _UNPOWERED:
        return rates.flop_per_s
    for precision in (Precision.BF16, Precision.FP16):
        found = accelerator.peak_flop_per_s(precision)
        if not isinstance(found, Unknown) and found <= rates.flop_per_s:
            return found
    return rates.flop_per_s / _NARROW.get(rates.precision, 1.0)
