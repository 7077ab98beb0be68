"""Speculative decoding: what a draft model holds beside the model whose tokens it guesses (arXiv 2211.17192)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.kv_cache import CacheShape, cache_shape
from rackrate.memory.phases import part
from rackrate.memory.serving_parts import rest_parts
from rackrate.memory.stages import Stage
from rackrate.values import replace
from rackrate.workload.caches import cached_as
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload


def draft_workload(workload: Workload, policy: ServingPolicy) -> Workload | None:
    """The draft model at the same work, as a workload of its own; None without one.

    Its sequences are as long as the model's, images aside, in a cache of the same
    type unless the engine keeps that of drafts plain.
    """
    serving = workload.serving
    if serving is None or serving.draft is None:
        return None
    draft = serving.draft
    plain = policy.draft_cache_plain
    own = replace(
        serving,
        draft=None,
        seen=None,
        context_tokens=serving.cached_tokens,
        cache_bits=16.0 if plain else serving.cache_bits,
        cache=None if plain else serving.cache,
        value_cache=None if plain else serving.value_cache,
    )
    if own.cache is not None:
        own = cached_as(own, draft.model, own.cache, own.value_cache)
    return replace(workload, model=draft.model, weights=draft.weights, sight=None, serving=own)


def draft_stage(workload: Workload, stage: Stage, policy: ServingPolicy) -> Stage | Unknown | None:
    """The part of the draft that the cards of ``stage`` hold; None where it is on other cards."""
    layers = workload.model.layers or 1
    if stage.layers == stage.of:
        return Stage(layers=layers, of=layers, first=True, last=True)
    if policy.draft_stage == "split":
        return Stage(layers=math.ceil(layers * stage.fraction), of=layers, first=stage.first, last=stage.last)
    if policy.draft_stage == "last":
        return Stage(layers=layers, of=layers, first=True, last=True) if stage.last else None
    return Unknown("where a draft model is when layers are split over cards is not known of this engine")


def draft_parts(
    workload: Workload, stage: Stage, layout: Layout, policy: ServingPolicy, rest: Sequence[Component]
) -> tuple[tuple[Component, ...], CacheShape | None] | Unknown:
    """What the draft adds to ``rest``, all that the model holds on these cards, and how the draft's cache grows."""
    work = draft_workload(workload, policy)
    if work is None:
        return (), None
    own = draft_stage(work, stage, policy)
    if own is None:
        return (), None
    if isinstance(own, Unknown):
        return own
    assert work.serving is not None
    shape = cache_shape(work.model, own, layout.tensor, work.serving.cache_bits, policy)
    if isinstance(shape, Unknown):
        return shape
    held = {p.name: p for p in rest_parts(work, own, layout, policy)}
    parts = [
        part("draft_weights", held["weights"].bytes, note=work.model.id),
        part("draft_graphs", _graphs(workload, work, policy)),
        _working(held["activations"].bytes, work.serving, layout, policy, rest),
        *(p for name, p in held.items() if name == "rotary_tables"),
    ]
    if stage.last and not policy.planned_graph:
        parts.append(part("checked_logits", _checked_logits(workload, layout, policy, rest), Phase.DECODE))
    return tuple(parts), shape


def _graphs(workload: Workload, work: Workload, policy: ServingPolicy) -> Range:
    """Graphs captured for the draft: in proportion to its layers, as those of models are."""
    share = (work.model.layers or 0) / max(1, workload.model.layers or 0)
    most = max(policy.graph_bytes.high, policy.large_graph_bytes.high)
    return Range(0.0, policy.graph_bytes.likely * share, most * share)


def _working(
    size: Range, serving: Serving, layout: Layout, policy: ServingPolicy, rest: Sequence[Component]
) -> Component:
    """What a layer of the draft holds: it works by turns with the model, so only what exceeds the model's counts.

    llama.cpp plans a buffer for the draft beside the model's, builds of 2025 one for
    each slot (tools/server/server.cpp load_model, ctx_dft).
    """
    if policy.draft_contexts:
        slots = min(math.ceil(serving.concurrency / layout.data), policy.default_sequences)
        return part("draft_activations", Range(size.low, size.likely, size.high * max(1, slots)))
    there = sum(p.bytes.likely for p in rest if p.name == "activations")
    beyond = [max(0.0, each - there) for each in (size.low, size.likely, size.high)]
    return part("draft_activations", Range(*beyond), Phase.PREFILL)


def _checked_logits(workload: Workload, layout: Layout, policy: ServingPolicy, rest: Sequence[Component]) -> Range:
    """Logits of all guesses that are checked together, beyond those of one token for each sequence.

    ``(k + 1) x sequences`` rows are drawn from at once (vllm-project/vllm
    v1/sample/rejection_sampler.py); an engine that measures itself tries two a
    sequence (v1/worker/gpu_model_runner.py _dummy_sampler_run), which 256 or more sequences cover.
    """
    serving = workload.serving
    assert serving is not None
    rows = math.ceil(serving.concurrency / layout.data) * (1 + serving.guessed_tokens)
    needed = policy.sampler_bytes.scaled(rows * (workload.model.vocab_size or 0))
    tried = sum(p.bytes.likely for p in rest if p.name == "sampler")
    return Range(max(0.0, needed.low - tried), max(0.0, needed.likely - tried), max(0.0, needed.high - tried))
