"""Serving: the speed of a machine under requests that arrive while others are served."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine
from rackrate.memory.estimate_types import CacheRoom
from rackrate.speed.estimate_types import Bound, ServingSpeed, longest
from rackrate.speed.guessing import least_bytes, least_flop, round_s, round_terms, token_s
from rackrate.speed.prefill import matrix_flop, prefill_s, prefill_terms, stages_at_once
from rackrate.speed.replica import Replica
from rackrate.workload.workload import WINDOW_S, Serving

FRONT_END_S = Range(0.005, 0.010, 0.030)
"""HTTP, tokenising and scheduling before the first token, seconds.

With 10 ms the times to first token of 69 lone and 135 mixed runs agree in the
median (SpareCores/sc-inspector-data, vLLM 0.22 and 0.27).
"""


SOUND_S = 0.003
"""Seconds of host work for a second of sound, one window after the other: decoded to samples, made a spectrogram.

Assumed: NumPy's Fourier transforms of 100 frames of 400 samples and 80 bands take 0.4 to 1.7 ms on one core,
decoders of compressed sound a few hundred times less than it lasts (SYSTRAN/faster-whisper
faster_whisper/feature_extractor.py, audio.py).
"""


WINDOWS_DIFFER = 0.2
"""Standard deviation of the tokens of a window over their mean, in speech that goes on: assumed."""


def reading_s(replica: Replica, sequences: float, serving: Serving) -> float:
    """Seconds to read the prompts of ``sequences`` requests, but for a prefix that all share and the cache keeps.

    Sound is decoded before, on the host. A draft model reads them too.
    """
    sound = 0.0 if serving.audio_seconds is None else SOUND_S * WINDOW_S * sequences
    own = sound + prefill_s(replica, sequences, serving.read_tokens, serving.shared_prefix_tokens)
    return own if replica.draft is None else own + reading_s(replica.draft, sequences, serving)


def cycle_s(replica: Replica, batch: float, serving: Serving) -> float:
    """Seconds in which each of ``batch`` requests in flight is served once: ``prefill(B il) + ol x step(B)``.

    A closed loop: a request that ends is followed by another. The context of a
    step is the prompt and half the output. Prefill and decode share the card
    (chunked or alternating), so that their times add. Of a request that is read
    in windows, this is one of them.
    """
    context = serving.prompt_tokens + serving.output_tokens / 2
    step = token_s(replica, batch, context)
    return reading_s(replica, batch, serving) + steps_of(replica, batch, serving) * step


def steps_of(replica: Replica, batch: float, serving: Serving) -> float:
    """Steps until ``batch`` requests are written: as many as one has tokens, in a static batch of sound as the longest.

    Windows differ in how much is said: ``1 + 0.2 sqrt(2 ln b)`` times the mean, the expected maximum of b
    normal values (David and Nagaraja, Order Statistics, 2003, section 10.5); 0.2 is assumed.
    """
    static = serving.audio_seconds is not None and not replica.refills
    longest = 1 + WINDOWS_DIFFER * math.sqrt(2 * math.log(max(1.0, batch))) if static else 1.0
    return serving.output_tokens * longest


def sequences_held(room: CacheRoom | None, serving: Serving, engine: Engine) -> int | Unknown:
    """Requests that the KV cache of one replica holds at the same time.

    Engines that page a pool taken at start hold as many as fill it with their
    own tokens; others reserve the planned context for each.
    """
    if room is None:
        return Unknown("the memory estimate has no KV cache")
    held = room.full_sequences
    shared = serving.shared_prefix_tokens
    request = serving.output_tokens + (0 if serving.encoded else serving.prompt_tokens) + serving.guessed_tokens
    if engine.serving is not None and engine.serving.memory_share is not None and request < room.context_tokens:
        held = max(held, int((room.tokens.likely - shared) // max(1, request - shared)))
    return held if held >= 1 else Unknown("no sequence of the planned context fits in the KV cache")


def spread_over(replica: Replica, in_flight: int) -> tuple[int, float]:
    """Replicas at work and the requests in flight on each."""
    replicas = max(1, min(replica.layout.data, in_flight))
    return replicas, in_flight / replicas


def requests_per_s(replica: Replica, in_flight: int, serving: Serving) -> float:
    """Requests that all replicas finish in a second with ``in_flight`` spread evenly over them."""
    _, batch = spread_over(replica, in_flight)
    return in_flight / (cycle_s(replica, batch, serving) * serving.windows)


def in_flight_for_load(replica: Replica, load: float, most: int, serving: Serving) -> int:
    """The fewest requests in flight that serve ``load`` requests a second, at most ``most``.

    Little's law (Little 1961, doi 10.1287/opre.9.3.383): N requests in flight,
    each ``cycle(N)`` seconds in the system, are ``N / cycle(N)`` requests a second,
    which grows with N here; found by bisection.
    """
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if requests_per_s(replica, middle, serving) >= load:
            high = middle
        else:
            low = middle + 1
    return low


def first_token_s(replica: Replica, batch: float, serving: Serving) -> Range:
    """Time to first token of the median request that is admitted at once.

    Front end, own prefill, the step that is under way, and the wait for other
    prompts as in a queue of one server: own x rho / (1 - rho), rho being the
    share of time spent on them. The high end is a burst: half the batch is
    read before. Not valid for tails (p99) beyond a share of about 0.85.
    """
    own = reading_s(replica, 1, serving)
    if batch <= 1:
        return FRONT_END_S.shifted(own)
    cycle = cycle_s(replica, batch, serving)
    together = reading_s(replica, batch, serving)
    busy = min(0.95, together * (batch - 1) / batch / cycle)
    step = round_s(replica, batch, serving.prompt_tokens + serving.output_tokens / 2)
    likely = own + step + own * busy / (1 - busy)
    burst = reading_s(replica, batch / 2, serving)
    return Range(FRONT_END_S.low + own, FRONT_END_S.likely + likely, FRONT_END_S.high + max(likely, burst))


def ceiling_requests_per_s(replica: Replica, batch: float, serving: Serving) -> float:
    """Requests a second that no software can exceed: bytes at full bandwidth, or FLOPs at full peak.

    ``B / max(ol x bytes of a step / BW, (2 N ol B + prefill FLOPs) / FL)``, with the
    published peaks of the cards that can work at once.
    """
    output, cards = serving.output_tokens, replica.layout.tensor
    stages = stages_at_once(replica, batch, serving.read_tokens)
    flop = least_flop(replica, batch) / replica.tokens_per_step * output
    if serving.read_tokens:
        flop += matrix_flop(replica, batch, serving.read_tokens) / stages
    shortest = max(output * shortest_step_s(replica, batch, serving), flop / (replica.rates.flop_per_s * cards))
    return batch / (shortest * serving.windows)


def shortest_step_s(replica: Replica, batch: float, serving: Serving) -> float:
    """Seconds a token to read the weights and the cache at the published bandwidth: no step is shorter."""
    read = least_bytes(replica, batch, serving.prompt_tokens + serving.output_tokens / 2)
    return read / replica.tokens_per_step / replica.rates.bandwidth_bytes_per_s


def busiest(replica: Replica, batch: float, serving: Serving) -> Bound:
    """The resource that takes most of a cycle."""
    context = serving.prompt_tokens + serving.output_tokens / 2
    decode, steps = round_terms(replica, batch, context), serving.output_tokens / replica.tokens_per_step
    prefill = prefill_terms(replica, batch, serving.read_tokens, serving.shared_prefix_tokens)
    stages = stages_at_once(replica, batch, serving.read_tokens)
    return longest({b: steps * decode[b] + prefill[b] / stages for b in decode}, eager=replica.eager)


def most_in_flight(replica: Replica, serving: Serving, engine: Engine, held: int) -> int:
    """Requests in flight at capacity: what the caches hold, up to the engine's default batch or what was asked."""
    replicas = replica.layout.data
    batched = engine.serving.default_sequences if engine.serving else 1
    return max(1, min(held * replicas, max(batched * replicas, serving.concurrency)))


def served(replica: Replica, asked: int, held: int, serving: Serving) -> ServingSpeed:
    """The likely speed of all replicas under ``asked`` requests in flight (rates without an interval yet).

    Each replica's cache holds ``held``; requests beyond that wait for the whole time
    in which as many are worked off. Little's law again: of ``asked`` users who each
    wait for an answer, ``asked - in_flight`` are in the queue at any time, which
    ``rate`` requests leave in a second.
    """
    in_flight = min(asked, held * replica.layout.data)
    _, batch = spread_over(replica, in_flight)
    rate = requests_per_s(replica, in_flight, serving)
    steps = steps_of(replica, batch, serving) * token_s(
        replica, batch, serving.prompt_tokens + serving.output_tokens / 2
    )
    generating = max(steps, cycle_s(replica, batch, serving) - reading_s(replica, 1, serving))
    first = first_token_s(replica, batch, serving).shifted((asked - in_flight) / rate)
    return ServingSpeed(
        first_token_s=first,
        per_user_tokens_per_s=Range.exact(serving.output_tokens / generating),
        output_tokens_per_s=Range.exact(rate * serving.output_tokens * serving.windows),
        requests_per_s=Range.exact(rate),
        concurrency=in_flight,
    )
