"""Inference: what one card holds, and the room that is left for the KV cache."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine, ServingPolicy
from rackrate.memory.activations import element_bytes, inference_bytes_per_token
from rackrate.memory.estimate_types import CacheRoom, Component, MemoryEstimate, Metric, Phase
from rackrate.memory.kv_cache import CacheShape, cache_note, cache_shape
from rackrate.memory.logits import prompt_logit_bytes, sampler_bytes
from rackrate.memory.overhead import GROWTH_SLACK
from rackrate.memory.phases import SERVING, by_phase, highest, part, verdict
from rackrate.memory.stages import Stage, stages
from rackrate.memory.weights import is_encoder, parameter_groups, weight_bytes
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

ACTIVATION_SPREAD = (0.3, 0.3)
"""Relative half widths of activations under and over the formula: kernels reuse buffers or keep a few more."""


class Card(Value, frozen=True, kw_only=True):
    """One card of an inference job: what it holds beside the cache, and how its cache grows.

    ``visible`` bytes are what programs can allocate, ``context`` the driver's
    own part of them, ``rest`` everything but cache and context, ``shape`` None
    for a model without a cache.
    """

    serving: Serving
    policy: ServingPolicy
    visible: float
    context: Range
    rest: tuple[Component, ...]
    shape: CacheShape | None
    note: str

    @property
    def context_tokens(self) -> int:
        """Tokens of one full sequence."""
        serving = self.serving
        return max(serving.context_tokens, serving.prompt_tokens + serving.output_tokens, 1)

    @property
    def sequence(self) -> Range:
        """Cache of one full sequence."""
        return self.shape.sequence_bytes(self.context_tokens) if self.shape is not None else Range(0.0, 0.0, 0.0)

    @property
    def room(self) -> Range:
        """Room for the cache; negative when the rest alone is too much."""
        return room_bytes(self.policy, self.visible, self.context, self.rest)

    def sequences(self, room: Range) -> int:
        """How many full sequences ``room`` holds (any number of them without a cache)."""
        each = self.sequence.likely
        return max(0, math.floor(room.likely / each)) if each > 0 else sys.maxsize


class ServingDemand(Value, frozen=True, kw_only=True):
    """What an inference job needs of its cards, whatever they are: by stage, the parts and how the cache grows."""

    serving: Serving
    policy: ServingPolicy
    replicas: int
    stages: tuple[tuple[tuple[Component, ...], CacheShape | None], ...]
    note: str


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
        found.append((rest_parts(workload, stage, layout, policy), shape))
    note = cache_note(workload.model)
    return ServingDemand(serving=serving, policy=policy, replicas=layout.data, stages=tuple(found), note=note)


def serve_on(demand: ServingDemand, visible: float, context: Range) -> MemoryEstimate:
    """The fullest card of an inference job, for cards with ``visible`` bytes and this CUDA context.

    An engine with continuous batching queues the requests that its cache has
    no room for, so it must hold one full sequence and its cache takes at most
    the room there is; other engines must hold all sequences asked for.
    """
    serving, policy = demand.serving, demand.policy
    cards = [
        Card(
            serving=serving,
            policy=policy,
            visible=visible,
            context=context,
            rest=rest,
            shape=shape,
            note=demand.note,
        )
        for rest, shape in demand.stages
    ]
    asked = math.ceil(serving.concurrency / demand.replicas)
    rooms = [card.room for card in cards]
    fit = min(card.sequences(room) for card, room in zip(cards, rooms, strict=True))
    taken = min(asked, fit) if policy.continuous_batching else asked
    counts = (min(serving.concurrency, taken * demand.replicas), serving.concurrency)
    found = [_on_card(card, room, asked, counts) for card, room in zip(cards, rooms, strict=True)]
    return found[0] if len(found) == 1 else min(found, key=_headroom)


def _shape(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> CacheShape | Unknown | None:
    """The growth of the cache; None for an encoder, which keeps none."""
    assert workload.serving is not None
    if is_encoder(workload.model):
        return None
    return cache_shape(workload.model, stage, layout.tensor, workload.serving.cache_bits, policy)


def _headroom(estimate: MemoryEstimate) -> float:
    return estimate.headroom_bytes


def rest_parts(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> tuple[Component, ...]:
    """Everything on one card but its KV cache and its CUDA context."""
    assert workload.serving is not None
    model, serving, size = workload.model, workload.serving, element_bytes(workload.precision)
    weights = weight_bytes(model, parameter_groups(model), stage, workload.weights, ties=True) / layout.tensor
    tokens, prompt = _prefill_tokens(serving, layout, policy)
    working = tokens * inference_bytes_per_token(model, layout.tensor, size)
    below, above = ACTIVATION_SPREAD
    parts = [
        part("weights", weights),
        part("activations", Range.around(working, below=below, above=above), Phase.PREFILL),
        part("graphs", policy.graph_bytes),
        part("non_torch", policy.non_torch_bytes),
    ]
    if stage.last and not is_encoder(model):
        vocabulary = model.vocab_size or 0
        parts.append(part("sampler", sampler_bytes(_rows(serving, layout, policy), vocabulary), Phase.DECODE))
        if policy.full_prompt_logits:
            beyond = max(0.0, prompt_logit_bytes(prompt, vocabulary) - working)
            parts.append(part("prompt_logits", beyond, Phase.PREFILL, note="beyond the activations freed by then"))
    return tuple(parts)


def _prefill_tokens(serving: Serving, layout: Layout, policy: ServingPolicy) -> tuple[int, int]:
    """Tokens processed at once, and prompt tokens of one batch."""
    prompt = math.ceil(serving.concurrency / layout.data) * serving.prompt_tokens
    if policy.continuous_batching:
        return policy.batched_tokens, min(prompt, policy.batched_tokens)
    return min(prompt, policy.batched_tokens), prompt


def _rows(serving: Serving, layout: Layout, policy: ServingPolicy) -> int:
    """Sequences that draw a token together; an engine that measures itself at start tries its largest batch."""
    asked = math.ceil(serving.concurrency / layout.data)
    if policy.memory_share is not None and policy.share_of == "total":
        return policy.default_sequences
    return min(asked, policy.default_sequences) if policy.continuous_batching else asked


def room_bytes(policy: ServingPolicy, visible: float, context: Range, rest: Sequence[Component]) -> Range:
    """What is left for the cache beside everything else; negative when that alone is too much.

    Engines differ in what their share is a share of. ``total``: everything of
    the engine within share x visible, the CUDA context outside it, because the
    engine measures from after the context was made (vLLM
    v1/worker/gpu_worker.py init_device, utils/mem_utils.py memory_profiling).
    ``static``: weights and cache within share x what is free once the
    collectives are up, the rest beside it (SGLang model_runner.py
    init_torch_distributed, profile_max_num_token). ``free``:
    the cache takes a share of what is left (TensorRT-LLM KvCacheConfig
    free_gpu_memory_fraction). Without a share: all that is left.
    """
    engine = highest(by_phase(rest, SERVING))[1]
    share = policy.memory_share
    if share is not None and policy.share_of == "total":
        return _less(share * visible, engine)
    left = _less(visible - context.likely, engine)
    if share is None:
        return left
    if policy.share_of == "free":
        return left.scaled(share)
    free = visible - context.likely - _likely(rest, "non_torch")
    static = share * free - _likely(rest, "weights")
    return Range(min(left.low, static), min(left.likely, static), min(left.high, static))


def _less(total: float, used: Range) -> Range:
    return Range(total - used.high, total - used.likely, total - used.low)


def _on_card(card: Card, room: Range, asked: int, counts: tuple[int, int]) -> MemoryEstimate:
    """The estimate for one card asked for ``asked`` sequences; ``counts``: held and asked over all replicas.

    In a queueing engine the cache takes the room there is and the rest of the
    sequences wait, so its peak stays within what is usable as soon as one
    sequence fits.
    """
    engine = highest(by_phase(card.rest, SERVING))[1]
    usable = min(card.visible, engine.likely + card.context.likely + room.likely)
    one, cache = card.sequence, card.sequence.scaled(asked)
    if card.policy.continuous_batching:
        cache = _capped(cache, max(0.0, room.likely), one)
    parts = _with_cache(card, cache)
    peaks = by_phase(parts, SERVING)
    if card.policy.continuous_batching:
        least = highest(by_phase(_with_cache(card, one), SERVING))[1]
        peaks = tuple((phase, _capped(peak, usable, least)) for phase, peak in peaks)
    phase, peak = highest(peaks)
    reserved = peak.shifted(-_likely(parts, "cuda_context") - _likely(parts, "non_torch"))
    return MemoryEstimate(
        components=parts,
        phases=peaks,
        peak_phase=phase,
        peak=peak,
        allocated=reserved.shifted(-_likely(parts, "allocator_slack")),
        reserved=reserved,
        metric=Metric.DRIVER,
        usable_bytes=usable,
        verdict=verdict(peak, usable),
        cache=_cache_room(card, room),
        sequences_held=counts[0],
        sequences_asked=counts[1],
    )


def _likely(parts: Sequence[Component], name: str) -> float:
    return sum(p.bytes.likely for p in parts if p.name == name)


def _with_cache(card: Card, cache: Range) -> tuple[Component, ...]:
    """All parts of one card with ``cache`` bytes of KV cache.

    A cache that grows by concatenation leaves holes in the allocator's pool.
    """
    whole = (*card.rest, part("cuda_context", card.context))
    if card.shape is None:
        return whole
    whole = (*whole, part("kv_cache", cache, note=card.note))
    if card.policy.memory_share is None and not card.policy.continuous_batching:
        moving = cache.likely + _likely(card.rest, "activations")
        return (*whole, part("allocator_slack", GROWTH_SLACK.scaled(moving)))
    return whole


def _capped(demand: Range, limit: float, least: Range) -> Range:
    """``demand`` cut at ``limit``, but never under the ``least`` that the engine needs."""
    return Range(
        min(demand.low, max(limit, least.low)),
        min(demand.likely, max(limit, least.likely)),
        min(demand.high, max(limit, least.high)),
    )


def _cache_room(card: Card, room: Range) -> CacheRoom | None:
    if card.shape is None:
        return None
    left = Range(max(0.0, room.low), max(0.0, room.likely), max(0.0, room.high))
    return CacheRoom(
        bytes_per_token=card.shape.bytes_per_token(card.context_tokens),
        room_bytes=left,
        tokens=left.scaled(card.context_tokens / card.sequence.likely),
        context_tokens=card.context_tokens,
        full_sequences=card.sequences(left),
    )
