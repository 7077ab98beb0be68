"""Layouts worth trying: how a workload can be spread over cards, valid divisors only."""

from __future__ import annotations

from rackrate.facts.engine import Engine
from rackrate.facts.model import Model
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Training, Workload

_VOCABULARY_PADDING = 64  # vllm-project/vllm model_executor/layers/vocab_parallel_embedding.py


def layouts(model: Model, workload: Workload, engine: Engine, gpus: int) -> tuple[Layout, ...]:
    """Layouts over as many of ``gpus`` cards as the workload can use, least communication first.

    Cards stay idle only when no valid division uses them all (a global batch
    of 12 runs on 6 of 8 cards). A division that the user asked for is kept to
    (``fixed_layouts``). Left out is what another layout of the list
    beats in memory without losing speed: plain data parallel training beside
    ZeRO 2 (same traffic: Rajbhandari et al. 2020, arXiv 1910.02054, section
    7.2), ZeRO 1 beside ZeRO 2, and pipelines where weights can be sharded.
    On several machines all have equally many cards in use.
    """
    asked = workload.parallel
    if asked is not None and not asked.free:
        from rackrate.workload.fixed_layouts import fixed_layouts

        return tuple(sorted(fixed_layouts(asked, workload, engine, gpus), key=_communication))
    nodes = asked.nodes if asked is not None else 1
    training, adapters = workload.training, workload.task.trains_adapters
    for used in range(gpus, 0, -1):
        if used % nodes:
            continue
        if training is None:
            found = [each for each in _serving(model, engine, used) if _divides_draft(workload.serving, each)]
        else:
            found = _training(model, training, engine, used, adapters=adapters)
        if nodes > 1:
            found = _on_nodes([*found, *_stages(model, training, engine, used, nodes)], used // nodes, nodes)
        if found:
            return tuple(sorted(found, key=_communication))
    return ()


def _stages(model: Model, training: Training | None, engine: Engine, gpus: int, nodes: int) -> list[Layout]:
    """Tensors divided inside each machine and layers over the machines: what is usual where one machine is too small.

    (vllm-project/vllm docs/serving/parallelism_scaling.md.)
    """
    inside = gpus // nodes
    able = "pipeline" in engine.parallel and nodes <= (model.layers or 0) and not model.is_encoder_decoder
    if training is not None or inside == 1 or not able or not _splits(model, engine, inside):
        return []
    return [Layout(tensor=inside, pipeline=nodes)]


def _on_nodes(found: list[Layout], inside: int, nodes: int) -> list[Layout]:
    """The layouts on ``nodes`` machines of ``inside`` cards in use, tensor groups whole in them or over whole ones."""
    whole = [one for one in found if inside % one.tensor == 0 or one.tensor % inside == 0]
    return [replace(one, nodes=nodes) for one in whole if not one.layer_split]


def _communication(layout: Layout) -> tuple[int, int, int, int]:
    return (layout.tensor * layout.pipeline, layout.tensor, layout.zero_stage, layout.pipeline)


def divides_tensors(model: Model, tensor: int) -> bool:
    """Whether the weights can be split over ``tensor`` cards.

    Attention heads, hidden and intermediate sizes and the vocabulary (padded
    to a multiple of 64) must be multiples; KV heads are divided, or replicated
    when there are fewer than cards (MLA caches one latent, replicated).
    Source: vllm-project/vllm config/parallel.py, model_executor/models/llama.py
    and layers/vocab_parallel_embedding.py; Megatron-LM has the same conditions.
    """
    heads, kv_heads = model.attention_heads, model.kv_heads
    if heads is None or heads % tensor:
        return False
    if kv_heads and not model.is_mla and kv_heads % tensor and tensor % kv_heads:
        return False
    vocabulary = -(-(model.vocab_size or 0) // _VOCABULARY_PADDING) * _VOCABULARY_PADDING
    sizes = (model.hidden_size, model.intermediate_size, model.moe_intermediate_size, vocabulary)
    return not any((size or 0) % tensor for size in sizes)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _serving(model: Model, engine: Engine, gpus: int) -> list[Layout]:
    """Replicas of every size that divides the machine, each split by tensors; by layers over the whole machine.

    Pipelines smaller than the machine are left out: they hold the same
    weights per card as the tensor split beside them.
    """
    sizes = [n for n in _divisors(gpus) if n == gpus or "data" in engine.parallel]
    found = [Layout(tensor=n, data=gpus // n) for n in sizes if n == 1 or _splits(model, engine, n)]
    if model.is_encoder_decoder:  # a split by layers is not counted for two sides
        return found
    if gpus > 1 and "pipeline" in engine.parallel and gpus <= (model.layers or 0):
        found.append(Layout(pipeline=gpus))
    return found + _layer_splits(model, engine, sizes, gpus)


def _divides_draft(serving: Serving | None, layout: Layout) -> bool:
    """Whether a draft model can be split by tensors as the model is (vllm-project/vllm config/speculative.py)."""
    if serving is None or serving.draft is None or layout.tensor == 1:
        return True
    return divides_tensors(serving.draft.model, layout.tensor)


def _splits(model: Model, engine: Engine, tensor: int) -> bool:
    return "tensor" in engine.parallel and divides_tensors(model, tensor)


def _layer_splits(model: Model, engine: Engine, sizes: list[int], gpus: int) -> list[Layout]:
    """llama.cpp's split of the layers: the cards of a replica work one after the other."""
    if "layer_split" not in engine.parallel:
        return []
    return [Layout(pipeline=n, data=gpus // n, layer_split=True) for n in sizes if 1 < n <= (model.layers or 0)]


def _training(model: Model, training: Training, engine: Engine, gpus: int, *, adapters: bool) -> list[Layout]:
    """Data parallel with the ZeRO stages of the engine, alone and over tensor-parallel groups."""
    if gpus == 1:
        return [Layout()]
    stages = _zero_stages(engine, adapters=adapters)
    groups = [n for n in _divisors(gpus) if n == 1 or (not adapters and _splits(model, engine, n))]
    found = [
        Layout(tensor=n, data=gpus // n, zero_stage=stage if n < gpus else 0)
        for n in groups
        if _fills(training, gpus // n) and (n == gpus or "data" in engine.parallel)
        for stage in (stages if n == 1 else stages[-1:])
    ]
    if "zero" not in engine.parallel and not model.is_encoder_decoder:
        sizes = [n for n in _divisors(gpus) if _fills(training, gpus // n) and (n == gpus or "data" in engine.parallel)]
        found += _layer_splits(model, engine, sizes, gpus)
    return found


def _fills(training: Training, data: int) -> bool:
    """Whether every replica gets whole micro batches of a step."""
    return training.global_batch % (training.micro_batch * data) == 0


def _zero_stages(engine: Engine, *, adapters: bool) -> tuple[int, ...]:
    """Stages worth trying: adapters have next to no gradients and states to shard, so only whole or stage 3."""
    if "zero" not in engine.parallel:
        return (0,)
    return (0, 3) if adapters else (2, 3)
