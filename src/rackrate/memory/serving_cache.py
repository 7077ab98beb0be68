"""Inference: the KV cache of one card beside everything else, and the room that is left for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from rackrate.evidence import Range, add_independent
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.memory.estimate_types import CacheRoom, Component, Phase
from rackrate.memory.kv_cache import CacheShape, wide_layer_bytes
from rackrate.memory.overhead import GROWTH_SLACK
from rackrate.memory.phases import SERVING, by_phase, highest, part
from rackrate.values import Value
from rackrate.workload.workload import Serving


class Card(Value, frozen=True, kw_only=True):
    """One card of an inference job: what it holds beside the cache, and how its cache grows.

    ``visible`` bytes are what programs can allocate, ``context`` the driver's
    own part of them, ``rest`` everything but cache and context, ``shape`` None
    for a model without a cache, ``draft_shape`` of a draft model's cache beside
    it, ``layers`` those of the stage.
    """

    serving: Serving
    policy: ServingPolicy
    visible: float
    context: Range
    layers: int
    rest: tuple[Component, ...]
    shape: CacheShape | None
    note: str
    draft_shape: CacheShape | None = None

    @property
    def context_tokens(self) -> int:
        """Tokens of one full sequence in the cache."""
        serving = self.serving
        if self.policy.cache_tokens == "output":
            return max(serving.output_tokens, 1)
        return serving.cached_tokens

    @property
    def sequence(self) -> Range:
        """Cache of one full sequence."""
        if self.shape is None:
            return Range(0.0, 0.0, 0.0)
        own = self.shape.sequence_bytes(self.context_tokens)
        return own if self.draft_shape is None else add_independent((own, self.guessed))

    @property
    def guessed(self) -> Range:
        """Cache of a draft model for one full sequence."""
        return (
            self.draft_shape.sequence_bytes(self.context_tokens) if self.draft_shape is not None else Range.exact(0.0)
        )

    @property
    def shared(self) -> float:
        """Cache of a prefix that all sequences share, held once: whole pages of it, at most a full sequence.

        vllm-project/vllm v1/core/kv_cache_manager.py (full blocks are found again), sgl-project/sglang
        mem_cache/radix_cache.py, TensorRT-LLM KvCacheConfig enable_block_reuse. States of linear layers are not shared.
        """
        tokens = self.serving.shared_prefix_tokens
        if self.shape is None or not tokens:
            return 0.0
        whole = tokens // self.shape.page_tokens * self.shape.page_tokens
        return sum(s.growing_bytes(whole) for s in (self.shape, self.draft_shape) if s is not None)

    def cache_of(self, sequences: int) -> Range:
        """Cache of ``sequences`` full sequences."""
        return self.sequence.shifted(-self.shared).scaled(sequences).shifted(self.shared)

    @property
    def room(self) -> Range:
        """Room for the cache; negative when the rest alone is too much."""
        return room_bytes(self.policy, self.visible, self.context, self.rest)

    def sequences(self, room: Range) -> int:
        """How many full sequences ``room`` holds (any number of them without a cache)."""
        each = self.sequence.likely - self.shared
        return max(0, math.floor((room.likely - self.shared) / each)) if each > 0 else sys.maxsize


def room_bytes(policy: ServingPolicy, visible: float, context: Range, rest: Sequence[Component]) -> Range:
    """What is left for the cache beside everything else; negative when that alone is too much.

    Engines differ in what their share is a share of. ``total``: everything of
    the engine within share x visible, the CUDA context outside it, because the
    engine measures from after the context was made (vLLM
    v1/worker/gpu_worker.py init_device, utils/mem_utils.py memory_profiling);
    versions that do not count their graphs capture them on top.
    ``static``: weights and cache within share x what is free once the
    collectives are up, the rest beside it (SGLang model_runner.py
    init_torch_distributed, profile_max_num_token). ``free``:
    the cache takes a share of what is left (TensorRT-LLM KvCacheConfig
    free_gpu_memory_fraction). Without a share: all that is left.
    """
    counted = [p for p in rest if p.name != "graphs"] if policy.graphs_outside else rest
    engine = highest(by_phase(counted, SERVING))[1]
    share = policy.memory_share
    if share is not None and policy.share_of == "total":
        return _less(share * visible, engine)
    left = _less(visible - context.likely, engine)
    if share is None:
        return left
    if policy.share_of == "free":
        return left.scaled(share)
    free = visible - context.likely - likely_bytes(rest, "non_torch")
    static = share * free - likely_bytes(rest, "weights") - likely_bytes(rest, "draft_weights")
    return Range(min(left.low, static), min(left.likely, static), min(left.high, static))


def _less(total: float, used: Range) -> Range:
    return Range(total - used.high, total - used.likely, total - used.low)


def likely_bytes(parts: Sequence[Component], name: str) -> float:
    """The likely bytes of the parts called ``name``."""
    return sum(p.bytes.likely for p in parts if p.name == name)


def with_cache(card: Card, cache: Range, asked: int) -> tuple[Component, ...]:
    """All parts of one card with ``cache`` bytes of KV cache for ``asked`` sequences.

    A cache that grows by concatenation leaves holes in the allocator's pool.
    """
    whole = (*card.rest, part("cuda_context", card.context))
    if card.shape is None:
        return whole
    if card.policy.continuous_batching or card.policy.memory_share is not None:
        return (*whole, *_cache_parts(card, cache))
    moving = cache.likely + likely_bytes(card.rest, "activations")
    slack = part("allocator_slack", GROWTH_SLACK.scaled(moving))
    if not card.policy.eager_prefill or card.policy.cache_tokens == "output":
        phases = SERVING if card.policy.eager_prefill else ()
        unpacked = unpacked_bytes(card, asked)
        copies = (part("cache_copy", unpacked, note="one layer unpacked"),) if unpacked else ()
        return (*whole, *_cache_parts(card, cache, *phases), *copies, slack)
    return (*whole, *_growing_cache(card, cache, asked), slack)


def unpacked_bytes(card: Card, asked: int) -> float:
    """What is unpacked of a quantised cache at a time: copies of one layer of all sequences in 16 bits.

    turboderp/exllamav2 exllamav2/cache.py (temp_tensors); huggingface/transformers
    cache_utils.py (QuantizedLayer.update puts the unpacked layer and the last tokens together).
    """
    kind = card.serving.cache
    if kind is None or card.shape is None or not kind.layer_copies:
        return 0.0
    return kind.layer_copies * wide_layer_bytes(card.shape, card.serving.cache_bits) * card.context_tokens * asked


def _cache_parts(card: Card, cache: Range, *phases: Phase) -> list[Component]:
    """The cache as one part, or with that of a draft model, or of what an encoder made, as another."""
    whole = card.sequence.likely
    if card.draft_shape is not None and whole > 0:
        share = card.guessed.likely / whole
        own = part("kv_cache", cache.scaled(1 - share), *phases, note=card.note)
        return [own, part("draft_cache", cache.scaled(share), *phases)]
    if not card.serving.encoded or card.shape is None or whole <= 0:
        return [part("kv_cache", cache, *phases, note=card.note)]
    cross = card.shape.state_bytes.likely / whole
    when = phases or (Phase.DECODE,)
    return [
        part("kv_cache", cache.scaled(1 - cross), *when, note=card.note),
        part("cross_cache", cache.scaled(cross), *when),
    ]


def _growing_cache(card: Card, cache: Range, asked: int) -> list[Component]:
    """A cache that grows by concatenation: the prompt's while it is read, all of it at the end.

    While a layer's keys are put together the old ones are still there: half a
    layer's cache (transformers cache_utils.py DynamicCache.update); code that
    hands tuples around holds the whole old cache until the step ends
    (``cache_copies`` 2, generation/utils.py before 4.45). A quantised cache is
    unpacked and put together a layer at a time instead.
    """
    assert card.shape is not None
    if card.serving.encoded:
        parts = _cache_parts(card, cache, Phase.DECODE)
        extra = card.policy.cache_copies - 1.0 + 0.5 / max(1, card.shape.full_layers)
        return [*parts, part("cache_copy", parts[0].bytes.likely * extra, Phase.DECODE)]
    prompt = card.shape.sequence_bytes(card.serving.prompt_tokens).scaled(asked)
    extra = card.policy.cache_copies - 1.0 + 0.5 / max(1, card.layers)
    return [
        part("kv_cache", cache, Phase.DECODE, note=card.note),
        part("prompt_cache", prompt, Phase.PREFILL, note=card.note),
        part("cache_copy", unpacked_bytes(card, asked) or cache.likely * extra, Phase.DECODE),
    ]


def capped(demand: Range, limit: float, least: Range) -> Range:
    """``demand`` cut at ``limit``, but never under the ``least`` that the engine needs."""
    return Range(
        min(demand.low, max(limit, least.low)),
        min(demand.likely, max(limit, least.likely)),
        min(demand.high, max(limit, least.high)),
    )


def cache_room(card: Card, room: Range) -> CacheRoom | None:
    """What ``room`` holds of the cache; None for a model without one."""
    if card.shape is None or card.sequence.likely <= 0:
        return None
    left = Range(max(0.0, room.low), max(0.0, room.likely), max(0.0, room.high))
    return CacheRoom(
        bytes_per_token=sum(
            s.bytes_per_token(card.context_tokens) for s in (card.shape, card.draft_shape) if s is not None
        ),
        room_bytes=left,
        tokens=left.scaled(card.context_tokens / card.sequence.likely),
        context_tokens=card.context_tokens,
        full_sequences=card.sequences(left),
    )
