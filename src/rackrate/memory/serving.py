"""Inference: what one card holds in each phase, over all stages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.memory.drafts import draft_parts
from rackrate.memory.encoder_decoder import two_sided_shape
from rackrate.memory.estimate_types import Component, MemoryEstimate, Metric, Phase
from rackrate.memory.kv_cache import CacheShape, cache_note, cache_shape, wide_layer_bytes
from rackrate.memory.overhead import UNNAMED, OnCard
from rackrate.memory.phases import SERVING, by_phase, highest, part, verdict
from rackrate.memory.serving_cache import Card, cache_room, capped, likely_bytes, with_cache
from rackrate.memory.serving_parts import rest_parts
from rackrate.memory.stages import Stage, stages
from rackrate.memory.weights import is_encoder
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload


class ServingDemand(Value, frozen=True, kw_only=True):
    """What an inference job needs of its cards, whatever they are: by stage, the parts and how the caches grow.

    Of the two shapes of a stage the second is that of a draft model's cache.
    """

    serving: Serving
    policy: ServingPolicy
    replicas: int
    stages: tuple[tuple[tuple[Component, ...], CacheShape | None, CacheShape | None, int], ...]
    note: str
    eager_context: bool = False


def serving_demand(workload: Workload, layout: Layout, engine: Engine) -> ServingDemand | Unknown:
    """The needs of every stage of an inference job."""
    serving, policy = workload.serving, engine.serving
    if serving is None or policy is None:
        return Unknown(f"how {engine.id} serves is not known")
    found = []
    for stage in stages(workload.model.layers or 1, layout):
        shape = _shape(workload, stage, layout, policy)
        if isinstance(shape, Unknown):
            return shape
        rest = rest_parts(workload, stage, layout, policy)
        beside: tuple[tuple[Component, ...], CacheShape | None] | Unknown = (), None
        if serving.draft is not None:
            beside = draft_parts(workload, stage, layout, policy, rest)
        if isinstance(beside, Unknown):
            return beside
        found.append(((*rest, *beside[0]), shape, beside[1], stage.layers))
    return ServingDemand(
        serving=serving,
        policy=policy,
        replicas=layout.data,
        stages=tuple(found),
        note=cache_note(workload.model),
        eager_context=policy.eager_context,
    )


def serve_on(demand: ServingDemand, on: OnCard) -> MemoryEstimate:
    """The fullest card of an inference job, for cards with this much usable memory and this CUDA context.

    An engine with continuous batching queues the requests that its cache has
    no room for, so it must hold one full sequence and its cache takes at most
    the room there is; other engines must hold all sequences asked for.
    """
    serving, policy = demand.serving, demand.policy
    cards = [
        Card(
            serving=serving,
            policy=policy,
            visible=on.visible,
            context=on.context,
            layers=layers,
            rest=_on_this_card(rest, policy, on),
            shape=shape,
            draft_shape=guesses,
            note=demand.note,
        )
        for rest, shape, guesses, layers in demand.stages
    ]
    asked = math.ceil(serving.concurrency / demand.replicas)
    rooms = [card.room for card in cards]
    fit = min(card.sequences(room) for card, room in zip(cards, rooms, strict=True))
    taken = min(asked, fit) if policy.continuous_batching else asked
    counts = (min(serving.concurrency, taken * demand.replicas), serving.concurrency)
    found = [_on_card(card, room, asked, counts) for card, room in zip(cards, rooms, strict=True)]
    return found[0] if len(found) == 1 else min(found, key=_headroom)


def _on_this_card(rest: tuple[Component, ...], policy: ServingPolicy, on: OnCard) -> tuple[Component, ...]:
    """The parts with what the card decides: the matrix library's workspace, the batch that an engine tries at start."""
    if policy.eager_prefill:
        return (*rest, part("workspace", on.workspace), _unnamed(rest))
    if policy.keeps_batch_buffers:
        rest = (*rest, part("workspace", on.workspace))
    if not (on.large and policy.large_sequences):
        return rest
    more = policy.large_sequences / policy.default_sequences
    graphs = policy.large_graph_bytes
    larger = {p.name: p.bytes.scaled(more) if p.name == "sampler" else graphs for p in rest if p.name in _BATCH}
    return tuple(replace(p, bytes=larger[p.name]) if p.name in larger else p for p in rest)


_BATCH = frozenset({"sampler", "graphs"})
"""Parts that grow with the batch that an engine tries at start."""


def _unnamed(rest: Sequence[Component]) -> Component:
    """What the account leaves out or counts too much, in proportion to the weights."""
    return part("unnamed", UNNAMED.scaled(likely_bytes(rest, "weights")))


def _shape(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> CacheShape | Unknown | None:
    """The growth of the cache; None for an encoder, which keeps none."""
    assert workload.serving is not None
    if is_encoder(workload.model):
        return None
    model, serving = workload.model, workload.serving
    if serving.encoded:
        return two_sided_shape(workload, layout, policy)
    found = cache_shape(model, stage, layout.tensor, serving.cache_bits, policy)
    kept = serving.cache.residual_tokens if serving.cache is not None else 0
    if isinstance(found, Unknown) or not kept:
        return found
    wide = wide_layer_bytes(found, serving.cache_bits)
    return replace(found, residual_tokens=kept, residual_bytes=wide)


def _headroom(estimate: MemoryEstimate) -> float:
    return estimate.headroom_bytes


def _on_card(card: Card, room: Range, asked: int, counts: tuple[int, int]) -> MemoryEstimate:
    """The estimate for one card asked for ``asked`` sequences; ``counts``: held and asked over all replicas.

    In a queueing engine the cache takes the room there is and the rest of the
    sequences wait, so its peak stays within what is usable as soon as one
    sequence fits.
    """
    loads = any(Phase.LOAD in part.phases for part in card.rest)
    phases = (Phase.LOAD, *SERVING) if loads else SERVING
    engine = highest(by_phase(card.rest, SERVING))[1]
    usable = min(card.visible, engine.likely + card.context.likely + room.likely)
    one, cache = card.sequence, card.cache_of(asked)
    if card.policy.continuous_batching:
        cache = capped(cache, max(0.0, room.likely), one)
    parts = with_cache(card, cache, asked)
    peaks = by_phase(parts, phases)
    if card.policy.continuous_batching:
        least = highest(by_phase(with_cache(card, one, 1), SERVING))[1]
        peaks = tuple((phase, capped(peak, usable, least)) for phase, peak in peaks)
    phase, peak = highest(peaks)
    reserved = _without(peak, sum(likely_bytes(parts, name) for name in _DRIVER))
    return MemoryEstimate(
        components=parts,
        phases=peaks,
        peak_phase=phase,
        peak=peak,
        allocated=_allocated(card, parts, phases) or reserved,
        reserved=reserved,
        metric=Metric.DRIVER,
        usable_bytes=usable,
        verdict=verdict(peak, usable),
        cache=cache_room(card, room),
        sequences_held=counts[0],
        sequences_asked=counts[1],
    )


_DRIVER = frozenset({"cuda_context", "non_torch", "tensor_buffers"})
"""Parts that the framework's allocator knows nothing of."""

_OUTSIDE = _DRIVER | {"allocator_slack"}


def _without(peak: Range, size: float) -> Range:
    """``peak`` less ``size``, and never less than nothing."""
    return Range(max(0.0, peak.low - size), max(0.0, peak.likely - size), max(0.0, peak.high - size))


def _allocated(card: Card, parts: Sequence[Component], phases: Sequence[Phase]) -> Range | None:
    """The framework's own peak where an engine holds what it needs; None where it takes a share."""
    if card.policy.continuous_batching:
        return None
    return highest(by_phase([p for p in parts if p.name not in _OUTSIDE], phases))[1]
