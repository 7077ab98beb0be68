"""What a speed estimate says in the metric of a row."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.memory.estimate import estimate as memory_estimate
from rackrate.memory.estimate_types import CacheRoom, MemoryEstimate
from rackrate.speed.estimate import estimate
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.speed.roofs import Part, roofs
from rackrate.speed.serving import sequences_held
from rackrate.values import replace
from rackrate.workload.workload import Serving
from scoring.cells import Row
from scoring.memory_rows import NotScored
from scoring.speed_rows import ALL_AT_ONCE, INFERENCE, Case, case_of


def predicted(row: Row, case: Case) -> Range:
    """The estimate in the metric of the row.

    Raises:
        NotScored: it is not known.
    """
    if row.text("norm_task") in INFERENCE:
        return _inference(row.text("norm_task"), case)
    found = _speed(case, _memory(case))
    if found.training is None:
        raise NotScored(f"no estimate of {row.text('norm_task')}")
    return _training(row, case, found)


def prepared(row: Row, book: FactBook) -> Case:
    """The case of a row of inference with what its cache holds.

    Raises:
        NotScored: it is not known.
    """
    case = _full(case_of(row, book))
    serving, memory = case.workload.serving, _memory(case)
    assert serving is not None
    held = sequences_held(memory.cache, serving, case.engine)
    if isinstance(held, Unknown):
        raise NotScored(held.reason)
    return replace(case, held=held)


def _full(case: Case) -> Case:
    """Where all requests come at once, as many as the engine takes are in flight."""
    serving = case.workload.serving
    if case.concurrency != ALL_AT_ONCE or case.engine.serving is None or serving is None:
        return case
    most = case.engine.serving.default_sequences * case.layout.data * (LARGE if _is_large(case) else 1)
    return replace(case, workload=replace(case.workload, serving=replace(serving, concurrency=most)))


LARGE = 4
"""How many times more sequences vLLM takes by default on large cards (vllm/engine/arg_utils.py get_batch_defaults)."""


def _is_large(case: Case) -> bool:
    large = case.card.memory_sold_gb >= 70 and "A100" not in case.card.product  # noqa: PLR2004 - as that file says
    return large and case.engine.id.startswith("vllm")


def _inference(task: str, case: Case) -> Range:
    case = _full(case)
    serving = case.workload.serving
    assert serving is not None
    found = _speed(case, _memory(case))
    assert found.serving is not None
    if task == "serve":
        return found.serving.output_tokens_per_s
    if task == "prefill" and case.through_server:
        return found.serving.first_token_s.inverse(serving.prompt_tokens * serving.concurrency)
    beside = roofs(case.workload, case.card, case.layout, case.engine, found)
    if isinstance(beside, Unknown):
        raise NotScored(beside.reason)
    return next(p.tokens_per_s for p in beside.parts if p.part is Part(task))


def _training(row: Row, case: Case, found: SpeedEstimate) -> Range:
    speed, metric = found.training, row.text("norm_metric")
    assert speed is not None
    if metric == "train_tokens_per_s_total":
        return speed.tokens_per_s
    if metric == "train_tokens_per_s_per_gpu":
        return speed.tokens_per_s.scaled(1 / case.layout.gpus)
    if metric == "s_per_step":
        return speed.step_s
    if metric == "samples_per_s" and case.workload.training is not None:
        return speed.tokens_per_s.scaled(1 / case.workload.training.sequence_tokens)
    raise NotScored(f"metric {metric}")


def _memory(case: Case) -> MemoryEstimate:
    """The memory of a row; what ran did fit, whatever the estimate says."""
    found = memory_estimate(case.workload, case.card, case.layout, case.engine)
    if isinstance(found, Unknown):
        raise NotScored(found.reason.replace(case.workload.model.id, "the model"))
    serving = case.workload.serving
    if serving is None or found.cache is None:
        return found
    return found if _holds(found.cache, serving, case.engine) else replace(found, cache=_roomy(found.cache, serving))


def _holds(room: CacheRoom, serving: Serving, engine: Engine) -> bool:
    batched = engine.serving is not None and engine.serving.continuous_batching
    return room.full_sequences >= (1 if batched else serving.concurrency)


def _roomy(room: CacheRoom, serving: Serving) -> CacheRoom:
    return replace(room, full_sequences=serving.concurrency)


def _speed(case: Case, memory: MemoryEstimate) -> SpeedEstimate:
    found = estimate(case.workload, case.card, case.layout, case.engine, memory)
    if isinstance(found, Unknown):
        raise NotScored(found.reason.replace(case.workload.model.id, "the model"))
    return found
