"""Simulated loads to documents."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackrate.app.documents import span
from rackrate.app.wire.parts import RangeDoc
from rackrate.app.wire.speed import HighestLoadDoc, LoadDoc, PercentilesDoc, SharedCardDoc
from rackrate.evidence import Unknown
from rackrate.plan.sharing import SharedCard
from rackrate.speed.simulation.highest import Targets
from rackrate.speed.simulation.machine import UnderLoad
from rackrate.speed.simulation.records import Percentiles, Simulated
from rackrate.speed.spread import SPREADS, UNMEASURED_WIDER, Phase, within


def load_docs(found: UnderLoad | Unknown | None, targets: Targets) -> tuple[LoadDoc | None, HighestLoadDoc | None]:
    """The load that was asked for, and the highest; neither where nothing was simulated."""
    if found is None or isinstance(found, Unknown):
        return None, None
    asked = _load(found.asked, found.spreads)
    most = found.highest
    if most is None:
        return asked, None
    spread = found.spreads[Phase.SERVING]
    return asked, HighestLoadDoc(
        requests_per_s=_around(most.requests_per_s, spread) if most.requests_per_s else None,
        percentile=targets.percentile,
        max_first_token_s=targets.first_token_s,
        max_s_per_output_token=targets.s_per_output_token,
        ended_by=str(most.ended_by),
        capacity_requests_per_s=_around(most.capacity_requests_per_s, spread),
        at=_load(most.at, found.spreads),
        curve=[_load(point, found.spreads) for point in most.curve],
    )


def shared_docs(found: Sequence[SharedCard]) -> list[SharedCardDoc]:
    """Ways to share a card, with ranges as wide as where nothing was measured."""
    serving, token = (SPREADS[phase] * UNMEASURED_WIDER for phase in (Phase.SERVING, Phase.DECODE))
    return [
        SharedCardDoc(
            mig_profile=each.profile or None,
            copies=each.copies,
            in_flight=each.in_flight,
            requests_per_s=_around(each.requests_per_s, serving),
            tokens_per_s=_around(each.tokens_per_s, serving),
            s_per_output_token=_around(each.s_per_output_token, token),
            calibrated=False,
        )
        for each in found
    ]


def _load(found: Simulated, spreads: dict[Phase, float]) -> LoadDoc:
    first, each = spreads[Phase.PREFILL], spreads[Phase.DECODE]
    tokens = found.s_per_output_token
    error = found.first_token_s.error_p90
    offered = found.load.requests_per_s or math.inf
    rate = _around(found.requests_per_s, spreads[Phase.SERVING], most=max(offered, found.requests_per_s))
    return LoadDoc(
        offered_requests_per_s=found.load.requests_per_s,
        users=found.load.users,
        stable=found.stable,
        first_token_s=_percentiles(found.first_token_s, first),
        s_per_output_token=None if tokens is None else _percentiles(tokens, each),
        request_s=_percentiles(found.request_s, each),
        requests_per_s=rate,
        tokens_per_s=_times(rate, found.output_tokens_per_s / found.requests_per_s),
        in_flight=found.in_flight,
        waiting=found.waiting,
        cache_use=found.cache_use,
        cache_use_most=found.cache_use_most,
        preempted=found.preempted,
        simulated_requests=found.counted,
        simulated_s=found.simulated_s,
        relative_error=error if math.isfinite(error) else None,
    )


def _percentiles(found: Percentiles, spread: float) -> PercentilesDoc:
    p50, p90, p99 = (_around(value, spread) for value in (found.p50, found.p90, found.p99))
    return PercentilesDoc(p50=p50, p90=p90, p99=p99)


def _around(likely: float, spread: float, most: float = math.inf) -> RangeDoc:
    return span(within(likely, spread, most))


def _times(found: RangeDoc, factor: float) -> RangeDoc:
    return RangeDoc(low=found.low * factor, likely=found.likely * factor, high=found.high * factor)
