"""Copies: several programs that serve the same model on one card at the same time (NVIDIA MPS).

Not calibrated: no published rows were seen. What physics gives: the card's
bandwidth and arithmetic are shared, each copy reads its own weights, and
while one waits for its host the others use the card.
"""

from __future__ import annotations

from rackrate.speed.estimate_types import Bound
from rackrate.speed.guessing import round_terms, token_s
from rackrate.speed.prefill import prefill_s, prefill_terms
from rackrate.speed.replica import Replica
from rackrate.speed.roofline import smooth_max
from rackrate.values import Value
from rackrate.workload.workload import Serving


class CopiesSpeed(Value, frozen=True, kw_only=True):
    """Speed of all copies together, each with ``batch`` requests in flight; ``busy``: share of the card's time."""

    copies: int
    batch: float
    requests_per_s: float
    s_per_output_token: float
    busy: float


def residence_s(card_s: float, elsewhere_s: float, copies: int) -> float:
    """Seconds on the card of one of ``copies`` that each use it for ``card_s`` and are elsewhere for ``elsewhere_s``.

    Mean value analysis of a closed network of a shared station and a delay:
    ``R(n) = card (1 + Q(n-1))``, ``X(n) = n / (R + elsewhere)``, ``Q = X R``
    (Reiser and Lavenberg 1980, doi 10.1145/322186.322195). Exact where the times
    are exponential; regular programs meet less.
    """
    queue, time = 0.0, card_s
    for number in range(1, copies + 1):
        time = card_s * (1 + queue)
        queue = number * time / (time + elsewhere_s)
    return time


def copies_speed(one: Replica, copies: int, batch: float, serving: Serving) -> CopiesSpeed:
    """``copies`` of the model on the one card of ``one``, each serving ``batch`` requests in flight.

    A cycle of one copy is that of the closed loop, ``prefill(B il) + ol x step(B)``, cut into the time on
    the card and the rest (host, gaps between kernels), which the others use.
    """
    context = serving.prompt_tokens + serving.output_tokens / 2
    step, reading = token_s(one, batch, context), prefill_s(one, batch, serving.prompt_tokens)
    step_card = _on_card(round_terms(one, batch, context)) / one.tokens_per_step
    reading_card = min(reading, _on_card(prefill_terms(one, batch, serving.prompt_tokens))) if reading else 0.0
    card = reading_card + serving.output_tokens * step_card
    cycle = reading + serving.output_tokens * step
    on_card = residence_s(card, cycle - card, copies)
    shared_cycle, stretch = on_card + cycle - card, on_card / card
    rate = copies * batch / shared_cycle
    own = prefill_s(one, 1, serving.prompt_tokens) * stretch
    return CopiesSpeed(
        copies=copies,
        batch=batch,
        requests_per_s=rate,
        s_per_output_token=max(step + step_card * (stretch - 1), (shared_cycle - own) / serving.output_tokens),
        busy=rate / batch * card,
    )


def _on_card(terms: dict[Bound, float]) -> float:
    """Of a pass, the time for which the card itself works."""
    return smooth_max(terms[Bound.BANDWIDTH], terms[Bound.COMPUTE]) + terms[Bound.CACHE_BANDWIDTH]
