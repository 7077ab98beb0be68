"""Layouts that the user asked for, on the cards of one machine, or of several."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.engine import Engine
from rackrate.values import replace
from rackrate.workload.layout import Layout, Parallel
from rackrate.workload.workload import Training, Workload

USUAL_STAGES = (2, 3)
"""Stages of ZeRO that are tried where none was asked for; stage 1 has the traffic of 2 and needs more memory."""


def fixed_layouts(asked: Parallel, workload: Workload, engine: Engine, gpus: int) -> tuple[Layout, ...]:
    """The layouts over at most ``gpus`` cards that are ``asked`` for; none where the machine is too small.

    What was not said is free: replicas fill the machine, and the stages of ZeRO
    are those that the engine is usually run with.
    """
    for data in _replicas(asked, engine, gpus):
        if asked.replica * data % asked.nodes:
            continue
        if workload.training is None or _goes(asked, workload.training, data):
            return tuple(_layouts(asked, workload, engine, data))
    return ()


def _replicas(asked: Parallel, engine: Engine, gpus: int) -> Iterator[int]:
    """Numbers of replicas that the machine has room for, the most first."""
    most = gpus // asked.replica
    if asked.data:
        yield from (asked.data,) if asked.data <= most else ()
    elif most:
        yield from range(most, 0, -1) if "data" in engine.parallel else (1,)


def _goes(asked: Parallel, training: Training, data: int) -> bool:
    """Whether replicas get whole micro-batches, and experts whole groups of cards."""
    whole = training.global_batch % (training.micro_batch * data) == 0
    return whole and data * asked.context % asked.expert == 0


def _layouts(asked: Parallel, workload: Workload, engine: Engine, data: int) -> Iterator[Layout]:
    layout = Layout(
        tensor=asked.tensor,
        pipeline=asked.pipeline,
        data=data,
        layer_split=asked.pipeline > 1 and "pipeline" not in engine.parallel,
        context=asked.context,
        expert=asked.expert,
        sequence=asked.sequence,
        chunks=asked.virtual_stages,
        split=asked.tensor_split,
        nodes=asked.nodes,
    )
    for stage in _stages(asked, workload, engine, layout):
        yield replace(layout, zero_stage=stage if layout.shards > 1 else 0)


def _stages(asked: Parallel, workload: Workload, engine: Engine, layout: Layout) -> tuple[int, ...]:
    """The stage of ZeRO that was asked for, or those worth trying."""
    if asked.zero_stage is not None:
        return (asked.zero_stage,)
    if workload.training is None or layout.shards <= 1 or "zero" not in engine.parallel:
        return (0,)
    able = engine.zero_stages_at(layout.pipeline)
    if workload.task.trains_adapters:
        return (0, *(stage for stage in able if stage == USUAL_STAGES[-1]))
    return tuple(stage for stage in able if stage in USUAL_STAGES) or able[-1:] or (0,)
