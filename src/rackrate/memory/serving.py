"""Inference: what one card holds, and the room that is left for the KV cache."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine import Engine, ServingPolicy
from rackrate.memory.activations import (
    eager_prefill_bytes_per_token,
    element_bytes,
    inference_bytes_per_token,
    planned_graph_bytes,
)
from rackrate.memory.estimate_types import CacheRoom, Component, MemoryEstimate, Metric, Phase
from rackrate.memory.kv_cache import CacheShape, cache_note, cache_shape, rotary_table_bytes
from rackrate.memory.logits import prompt_logit_bytes, sampler_bytes
from rackrate.memory.overhead import GROWTH_SLACK, UNNAMED, OnCard
from rackrate.memory.phases import SERVING, by_phase, highest, part, verdict
from rackrate.memory.stages import Stage, stages
from rackrate.memory.weights import attention_layers, is_encoder, parameter_groups, qkv_params, weight_bytes
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

ACTIVATION_SPREAD = (0.3, 0.3)
"""Relative half widths of activations under and over the formula: kernels reuse buffers or keep a few more."""


EAGER_SPREAD = (0.1, 0.1)
"""The same where operations run one by one, as counted (Qwen2.5 tables of transformers 4.46)."""


PLANNED_SPREAD = (0.1, 0.2)
"""The same where a buffer is planned: newer builds of llama.cpp print up to 15 % more than is counted."""


class Card(Value, frozen=True, kw_only=True):
    """One card of an inference job: what it holds beside the cache, and how its cache grows.

    ``visible`` bytes are what programs can allocate, ``context`` the driver's
    own part of them, ``rest`` everything but cache and context, ``shape`` None
    for a model without a cache, ``layers`` those of the stage.
    """

    serving: Serving
    policy: ServingPolicy
    visible: float
    context: Range
    layers: int
    rest: tuple[Component, ...]
    shape: CacheShape | None
    note: str

    @property
    def context_tokens(self) -> int:
        """Tokens of one full sequence in the cache."""
        serving = self.serving
        if self.policy.cache_tokens == "output":
            return max(serving.output_tokens, 1)
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
    stages: tuple[tuple[tuple[Component, ...], CacheShape | None, int], ...]
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
        found.append((rest_parts(workload, stage, layout, policy), shape, stage.layers))
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
            rest=(*rest, part("workspace", on.workspace), _unnamed(rest)) if policy.eager_prefill else rest,
            shape=shape,
            note=demand.note,
        )
        for rest, shape, layers in demand.stages
    ]
    asked = math.ceil(serving.concurrency / demand.replicas)
    rooms = [card.room for card in cards]
    fit = min(card.sequences(room) for card, room in zip(cards, rooms, strict=True))
    taken = min(asked, fit) if policy.continuous_batching else asked
    counts = (min(serving.concurrency, taken * demand.replicas), serving.concurrency)
    found = [_on_card(card, room, asked, counts) for card, room in zip(cards, rooms, strict=True)]
    return found[0] if len(found) == 1 else min(found, key=_headroom)


def _unnamed(rest: Sequence[Component]) -> Component:
    """What the account leaves out or counts too much, in proportion to the weights."""
    return part("unnamed", UNNAMED.scaled(_likely(rest, "weights")))


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
    model, serving = workload.model, workload.serving
    form = replace(workload.weights, head_16bit=False) if policy.quantises_head else workload.weights
    ties = not policy.quantises_head and form.id not in policy.unties
    weights = weight_bytes(model, parameter_groups(model), stage, form, ties=ties) / layout.tensor
    tokens, prompt = _prefill_tokens(serving, layout, policy)
    working = _working_bytes(workload, layout, policy, tokens)
    parts = [
        part("weights", weights),
        part("activations", _around(working, policy), Phase.PREFILL),
        part("graphs", policy.graph_bytes),
        part("non_torch", policy.non_torch_bytes),
        *_code_parts(workload, stage, layout, policy),
    ]
    if stage.last and not is_encoder(model) and not policy.planned_graph:
        vocabulary = model.vocab_size or 0
        parts.append(part("sampler", sampler_bytes(_rows(serving, layout, policy), vocabulary), Phase.DECODE))
        if policy.full_prompt_logits:
            kept = tokens * 2 * (model.hidden_size or 0) if policy.eager_prefill else 0.0
            beyond = max(0.0, prompt_logit_bytes(prompt, vocabulary) + kept - working)
            parts.append(part("prompt_logits", beyond, Phase.PREFILL, note="beyond the activations freed by then"))
    return tuple(parts)


def _around(working: float, policy: ServingPolicy) -> Range:
    if not policy.prefill_seen:
        return Range(0.0, 0.0, working)
    below, above = EAGER_SPREAD if policy.eager_prefill else ACTIVATION_SPREAD
    if policy.planned_graph:
        below, above = PLANNED_SPREAD
    return Range.around(working, below=below, above=above)


def _working_bytes(workload: Workload, layout: Layout, policy: ServingPolicy, tokens: int) -> float:
    """What a layer holds for ``tokens`` tokens, the scores of its attention among them where they are made.

    Scores: 16-bit products and mask sum, an FP32 copy and its softmax, 10 bytes
    per head and pair of tokens (AutoAWQ modules/fused/attn.py). They and the
    feed-forward block are not there at once. Engines with a cache of fixed size
    make the scores of one batch against the whole of it (llama.cpp's compute
    buffer without flash attention: FP32, 4 bytes).
    """
    model, size = workload.model, element_bytes(workload.precision)
    if policy.planned_graph:
        return planned_graph_bytes(model, tokens, _context(workload), scores=policy.score_bytes > 0)
    if not policy.eager_prefill:
        scores = policy.score_bytes * (model.attention_heads or 0) / layout.tensor * tokens * _context(workload)
        return tokens * inference_bytes_per_token(model, layout.tensor, size) + scores
    block = tokens * eager_prefill_bytes_per_token(model, size) / layout.tensor
    if not policy.score_bytes or workload.serving is None:
        return block
    pairs = float(tokens * workload.serving.prompt_tokens)
    heads = (model.attention_heads or 0) / layout.tensor
    attention = tokens * inference_bytes_per_token(model, layout.tensor, size, attention_alone=True)
    return max(block, attention + policy.score_bytes * heads * pairs)


def _context(workload: Workload) -> int:
    serving = workload.serving
    return 0 if serving is None else max(serving.context_tokens, serving.prompt_tokens + serving.output_tokens)


def _code_parts(workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy) -> list[Component]:
    """What some engines' code holds beside the model: tables of angles, unpacked matrices, copies while loading."""
    model, serving = workload.model, workload.serving
    assert serving is not None
    parts = []
    if policy.rotary_tables and model.head_dim:
        tables = rotary_table_bytes(model, policy, serving.output_tokens) * stage.layers
        parts.append(part("rotary_tables", tables))
    quantised = workload.weights.bits_per_weight < 8 * element_bytes(workload.precision)
    if quantised and policy.unpacked_bytes and stage.last:
        head = policy.unpacked_bytes * (model.vocab_size or 0) * (model.hidden_size or 0)
        parts.append(part("dequantised_matrix", head / layout.tensor, Phase.PREFILL))
    if workload.weights.id in policy.ties_late and model.tie_embeddings and stage.last:
        head = 2.0 * (model.vocab_size or 0) * (model.hidden_size or 0)
        parts.append(part("loading_copies", head / layout.tensor, Phase.LOAD, note="a tied head until it is tied"))
    if policy.loads_twice and quantised:
        twice = attention_layers(model) * stage.fraction * qkv_params(model) * workload.weights.bytes_per_weight
        parts.append(part("loading_copies", twice / layout.tensor, Phase.LOAD))
    return parts


def _prefill_tokens(serving: Serving, layout: Layout, policy: ServingPolicy) -> tuple[int, int]:
    """Tokens processed at once, and prompt tokens of one batch."""
    prompt = math.ceil(serving.concurrency / layout.data) * serving.prompt_tokens
    most = policy.batched_tokens or max(serving.context_tokens, serving.prompt_tokens + serving.output_tokens)
    if policy.continuous_batching:
        return most, min(prompt, most)
    return min(prompt, most), prompt


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
    loads = any(Phase.LOAD in part.phases for part in card.rest)
    phases = (Phase.LOAD, *SERVING) if loads else SERVING
    engine = highest(by_phase(card.rest, SERVING))[1]
    usable = min(card.visible, engine.likely + card.context.likely + room.likely)
    one, cache = card.sequence, card.sequence.scaled(asked)
    if card.policy.continuous_batching:
        cache = _capped(cache, max(0.0, room.likely), one)
    parts = _with_cache(card, cache, asked)
    peaks = by_phase(parts, phases)
    if card.policy.continuous_batching:
        least = highest(by_phase(_with_cache(card, one, 1), SERVING))[1]
        peaks = tuple((phase, _capped(peak, usable, least)) for phase, peak in peaks)
    phase, peak = highest(peaks)
    reserved = peak.shifted(-_likely(parts, "cuda_context") - _likely(parts, "non_torch"))
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
        cache=_cache_room(card, room),
        sequences_held=counts[0],
        sequences_asked=counts[1],
    )


_OUTSIDE = frozenset({"cuda_context", "non_torch", "allocator_slack"})


def _allocated(card: Card, parts: Sequence[Component], phases: Sequence[Phase]) -> Range | None:
    """The framework's own peak where an engine holds what it needs; None where it takes a share."""
    if card.policy.continuous_batching:
        return None
    return highest(by_phase([p for p in parts if p.name not in _OUTSIDE], phases))[1]


def _likely(parts: Sequence[Component], name: str) -> float:
    return sum(p.bytes.likely for p in parts if p.name == name)


def _with_cache(card: Card, cache: Range, asked: int) -> tuple[Component, ...]:
    """All parts of one card with ``cache`` bytes of KV cache for ``asked`` sequences.

    A cache that grows by concatenation leaves holes in the allocator's pool.
    """
    whole = (*card.rest, part("cuda_context", card.context))
    if card.shape is None:
        return whole
    if card.policy.continuous_batching or card.policy.memory_share is not None:
        return (*whole, part("kv_cache", cache, note=card.note))
    moving = cache.likely + _likely(card.rest, "activations")
    slack = part("allocator_slack", GROWTH_SLACK.scaled(moving))
    if not card.policy.eager_prefill or card.policy.cache_tokens == "output":
        phases = SERVING if card.policy.eager_prefill else ()
        return (*whole, part("kv_cache", cache, *phases, note=card.note), slack)
    return (*whole, *_growing_cache(card, cache, asked), slack)


def _growing_cache(card: Card, cache: Range, asked: int) -> list[Component]:
    """A cache that grows by concatenation: the prompt's while it is read, all of it at the end.

    While a layer's keys are put together the old ones are still there: half a
    layer's cache (transformers cache_utils.py DynamicCache.update); code that
    hands tuples around holds the whole old cache until the step ends
    (``cache_copies`` 2, generation/utils.py before 4.45).
    """
    assert card.shape is not None
    prompt = card.shape.sequence_bytes(card.serving.prompt_tokens).scaled(asked)
    extra = card.policy.cache_copies - 1.0 + 0.5 / card.layers
    return [
        part("kv_cache", cache, Phase.DECODE, note=card.note),
        part("prompt_cache", prompt, Phase.PREFILL, note=card.note),
        part("cache_copy", cache.likely * extra, Phase.DECODE),
    ]


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
