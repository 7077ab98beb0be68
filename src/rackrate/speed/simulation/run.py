"""Simulate: a load on a server, and the percentiles that its requests meet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackrate.evidence import Unknown
from rackrate.facts.engine import Engine
from rackrate.memory.estimate_types import CacheRoom
from rackrate.speed.replica import Replica
from rackrate.speed.serving import FRONT_END_S, sequences_held
from rackrate.speed.simulation.draws import Drawn, requests
from rackrate.speed.simulation.records import SEED, Load, Outcome, Percentiles, Server, Simulated, Speculation
from rackrate.speed.simulation.scheduler import Scheduler
from rackrate.speed.simulation.step_times import StepTimes
from rackrate.units import GIB
from rackrate.workload.workload import Serving

COUNTED = 1000
"""Requests that count, unless told: their 99th percentile rests on the ten slowest."""

_WARM_UP, _TAIL = 5, 10  # a fifth more before, a tenth more after, so that all that count meet the same load
_BATCHES = 8
_LARGE_CARD = 70 * GIB
_KEEPS_UP = 0.95
_MOST_ENDED = 0.8
_FEW = 5


def server(
    one: Replica, engine: Engine, serving: Serving, room: CacheRoom | None, speculation: Speculation | None = None
) -> Server | Unknown:
    """The server that ``one`` replica's engine makes of its cache, with the sequences that were asked for at least."""
    if serving.encoded:
        return Unknown("steps of an encoder-decoder are not simulated: its encoder reads apart from them")
    held = sequences_held(room, serving, engine)
    if isinstance(held, Unknown):
        return held
    policy, paged = engine.scheduling, engine.serving is not None and engine.serving.memory_share is not None
    usual = engine.serving.default_sequences if engine.serving else 1
    asked = max(usual, math.ceil(serving.concurrency / one.layout.data))
    slots = max(room.context_tokens, serving.prompt_tokens + serving.output_tokens) if room else 1
    return Server(
        replica=one,
        scheduling=policy,
        cache_tokens=room.tokens.likely if room and paged else float(held * slots),
        page_tokens=engine.serving.page_tokens if engine.serving and paged else 1,
        most_sequences=asked if paged else min(asked, held),
        step_tokens=step_tokens(one, engine),
        replicas=one.layout.data,
        speculation=speculation or _speculation(one),
    )


def _speculation(one: Replica) -> Speculation | None:
    """The speculative decoding that the replica does, if it does."""
    if one.draft is None:
        return None
    return Speculation(draft_tokens=one.guesses, acceptance_rate=one.acceptance_rate, draft=one.draft)


def step_tokens(one: Replica, engine: Engine) -> int:
    """Most tokens of a step on this card.

    vLLM takes cards of 70 GiB and more but the A100 for large
    (vllm/engine/arg_utils.py get_batch_defaults).
    """
    policy, card = engine.scheduling, one.accelerator
    total = card.memory_total_bytes
    large = not isinstance(total, Unknown) and total >= _LARGE_CARD and "a100" not in card.id
    return policy.large_step_tokens if large and policy.large_step_tokens else policy.step_tokens


def simulate(
    what: Server, load: Load, counted: int = COUNTED, seed: int = SEED, times: StepTimes | None = None
) -> Outcome:
    """What ``counted`` requests of ``load`` meet at ``what``, or why they cannot be served.

    Warm-up is left out: in an open loop a fifth as many requests that come before, in a
    closed one all that the first users send, who are met in the middle of
    their requests. ``times`` of another load on the same server are used again.
    """
    wrong = _unfit(what, load)
    if wrong:
        return Unknown(wrong)
    users = None if load.users is None else math.ceil(load.users / what.replicas)
    warm, tail = _around(what, load, users, counted)
    met, total = range(warm, warm + counted), warm + counted + tail
    drawn = [_fitting(each, what) for each in requests(load, what.replicas, met, total, seed)]
    if users is not None and not load.together:
        drawn = _midway(drawn, users)
    run = Scheduler(what, drawn, times or StepTimes(what.replica, what.speculation), load, users)
    run.run(warm + counted)
    return _seen(run, drawn, load, met)


def _unfit(what: Server, load: Load) -> str:
    """Why not even one such request is served; empty where it is."""
    if (load.users is None) == (load.requests_per_s is None):
        return "a load has users or requests a second, one of the two"
    if load.requests_per_s is not None and not 0 < load.requests_per_s < math.inf:
        return f"requests a second must be above 0, not {load.requests_per_s:g}"
    if load.users is not None and load.users < 1:
        return f"users must be 1 or more, not {load.users}"
    if load.output_tokens < 1:
        return "requests without output tokens have no time per token"
    needed = load.prompt_tokens + load.output_tokens
    if needed > what.cache_tokens:
        return f"a request of {needed:,} tokens is larger than the cache of {int(what.cache_tokens):,}"
    return ""


def _around(what: Server, load: Load, users: int | None, counted: int) -> tuple[int, int]:
    """Requests before and after those that count."""
    if load.together:
        return 0, 0
    if users is None:
        return max(1, counted // _WARM_UP), counted // _TAIL
    return max(counted // _WARM_UP, users + min(users, what.most_sequences)), users


def _fitting(each: Drawn, what: Server) -> Drawn:
    """The request, cut to what the cache holds at all: engines refuse longer ones."""
    most = int(what.cache_tokens)
    if each.prompt_tokens + each.output_tokens <= most:
        return each
    output = min(each.output_tokens, max(1, most // 2))
    return Drawn(at_s=each.at_s, prompt_tokens=max(1, min(each.prompt_tokens, most - output)), output_tokens=output)


def _midway(drawn: Sequence[Drawn], users: int) -> list[Drawn]:
    """The same, of which the first of each user has an even share of its output left, in no order."""
    stride = next(step for step in range(max(1, int(users * 0.618)), users + 2) if math.gcd(step, users) == 1)
    shares = [((number * stride) % users + 0.5) / users for number in range(users)]
    first = [
        Drawn(at_s=0.0, prompt_tokens=each.prompt_tokens, output_tokens=max(1, round(each.output_tokens * share)))
        for each, share in zip(drawn, shares, strict=False)
    ]
    return [*first, *drawn[len(first) :]]


def _seen(run: Scheduler, drawn: Sequence[Drawn], load: Load, counted: range) -> Simulated:
    """The percentiles of the requests in ``counted``, and the rates while they came."""
    course, meter, front = run.course, run.meter, FRONT_END_S.likely
    several = [n for n in counted if drawn[n].output_tokens > 1]
    each = [(course.ended[n] - course.first[n]) / (drawn[n].output_tokens - 1) for n in several]
    stable = load.users is not None or _keeps_up(run, counted)
    rate = load.requests_per_s if stable and load.requests_per_s else _rate(run, load, counted)
    return Simulated(
        load=load,
        first_token_s=percentiles([course.first[n] - course.came[n] + front for n in counted]),
        s_per_output_token=percentiles(each) if each else None,
        request_s=percentiles([course.ended[n] - course.came[n] + front for n in counted]),
        requests_per_s=rate,
        output_tokens_per_s=rate * sum(drawn[n].output_tokens for n in counted) / len(counted),
        stable=stable,
        cache_use=meter.cached / run.now / run.cache.capacity,
        cache_use_most=meter.most_cached / run.cache.capacity,
        in_flight=meter.running / run.now,
        waiting=meter.waiting / run.now,
        preempted=sum(course.thrown_out[n] > 0 for n in counted) / len(counted),
        counted=len(counted),
        steps=run.steps,
        simulated_s=run.now,
    )


def _window(run: Scheduler, load: Load, counted: range) -> tuple[float, float]:
    """From when the first request that counts comes to when the last one comes (closed loop) or has ended (together).

    Of a queue that grows, to when most of them have ended: at the end fewer and fewer run.
    """
    begin = 0.0 if load.together else run.course.came[counted.start]
    if load.users is not None and not load.together:
        return begin, run.course.came[counted.stop - 1]
    ended = sorted(run.course.ended[n] for n in counted)
    return begin, ended[-1] if load.together else ended[int(_MOST_ENDED * (len(ended) - 1))]


def _rate(run: Scheduler, load: Load, counted: range) -> float:
    """Requests that end in a second of the window, on all replicas."""
    begin, end = _window(run, load, counted)
    done = sum(begin < at <= end for at in run.course.ended)
    return done / (end - begin) * run.server.replicas if end > begin else 0.0


def _keeps_up(run: Scheduler, counted: range) -> bool:
    """Whether no more requests are there at the end of the window than at its begin, a twentieth of all left aside."""
    course = run.course
    there = [
        sum(came <= at < ended for came, ended in zip(course.came, course.ended, strict=True))
        for at in (course.came[counted.start], course.came[counted.stop - 1])
    ]
    return there[1] - there[0] <= max(_FEW, (1 - _KEEPS_UP) * len(counted))


def percentiles(values: Sequence[float]) -> Percentiles:
    """Percentiles of ``values`` in the order in which their requests came, with the errors of two of them."""
    p50, p90, p99 = (_at(sorted(values), share) for share in (0.5, 0.9, 0.99))
    size = len(values) // _BATCHES
    batches = [sorted(values[size * b : size * (b + 1)]) for b in range(_BATCHES)] if size > 1 else []
    return Percentiles(
        p50=p50,
        p90=p90,
        p99=p99,
        error_p50=_relative_error([_at(batch, 0.5) for batch in batches]),
        error_p90=_relative_error([_at(batch, 0.9) for batch in batches]),
    )


def _at(ordered: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``ordered`` lies, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _relative_error(figures: Sequence[float]) -> float:
    """Standard error of the mean of ``figures``, over it; infinite of fewer than two."""
    count = len(figures)
    mean = sum(figures) / count if count else 0.0
    if count <= 1 or mean <= 0:
        return math.inf
    return math.sqrt(sum((figure - mean) ** 2 for figure in figures) / (count - 1) / count) / mean
