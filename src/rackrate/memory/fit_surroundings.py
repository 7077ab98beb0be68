"""The changes that fit tries around the work: other formats, other engines and more cards."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_search import Case, Change, _first
from rackrate.values import replace
from rackrate.workload.caches import cache_types
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts
from rackrate.workload.resolve import is_quantised, own_engine
from rackrate.workload.workload import DraftModel, Task, Workload

MOST_GPUS = 8

BIT_CLASSES = (6.0, 5.0, 0.0)
"""Formats are tried by class: about 8 bits, 5 to 6, 4 and fewer."""


def _other_engines(case: Case, candidates: Candidates) -> list[tuple[str, Case]]:
    """The same work in other engines that can do it, divided as they divide it."""
    others = (engine for engine in candidates.engines if engine.id != case.engine.id)
    return [(engine.id, each) for engine in others for each in _in_engine(case, engine)]


def _in_engine(case: Case, engine: Engine) -> list[Case]:
    """The work in ``engine`` where that does the task, loads model and format and runs on the card's vendor.

    In the layout that it has if the engine divides so, else in each of the engine's own over as many cards.
    """
    work, now = case.workload, case.layout
    able = (
        work.engine_task in engine.tasks
        and work.weights.id in engine.weight_formats
        and case.accelerator.vendor in engine.vendors
        and _caches_alike(work, engine)
        and engine.runs(work.model)
    )
    own = layouts(work.model, work, engine, now.gpus) if able and _divides(work, engine) else ()
    chosen = (now,) if now in own else tuple(each for each in own if each.gpus == now.gpus)
    return [replace(case, engine=engine, layout=each) for each in chosen]


def _divides(work: Workload, engine: Engine) -> bool:
    """Whether ``engine`` offers the division that was asked for."""
    if work.parallel is None:
        return True
    from rackrate.workload.decide_parallel import offers

    return offers(engine, work.parallel)


def _caches_alike(work: Workload, engine: Engine) -> bool:
    """Whether ``engine`` has the types that the cache is asked to be in, and keeps a prefix that is shared."""
    if work.serving is None:
        return True
    kinds = [kind for kind in (work.serving.cache, work.serving.value_cache) if kind is not None]
    if work.serving.shared_prefix_tokens and not engine.scheduling.keeps_prefixes:
        return False
    if work.serving.draft is not None and not _drafts_alike(work.serving.draft, work.model, engine):
        return False
    return all(cache_types(engine, work.model).get(kind.id) == kind for kind in kinds)


def _drafts_alike(draft: DraftModel, model: Model, engine: Engine) -> bool:
    """Whether ``engine`` decodes with this draft model, and loads it."""
    policy = engine.serving
    if policy is None or not policy.draft_tokens or draft.weights.id not in engine.weight_formats:
        return False
    return abs((model.vocab_size or 0) - (draft.model.vocab_size or 0)) <= policy.draft_vocabulary


def _format_changes(case: Case, candidates: Candidates, wanted: Verdict) -> Iterator[Change | None]:
    """One format of each class of bits that fits; adapters on a model of fewer than 16 bits are QLoRA, not LoRA."""
    work = case.workload
    if work.task in {Task.FULL_FINETUNE, Task.PRETRAIN}:
        return
    before = work.weights.id
    for forms in _smaller_formats(case, candidates):
        as_qlora = [f for f in forms if work.task is Task.LORA and is_quantised(f)]
        plain = [(f.id, each) for f in forms if f not in as_qlora for each in _in_format(case, f, candidates)]
        yield _first("quantization", before, plain, wanted)
        if replace(work, task=Task.QLORA).engine_task in case.engine.tasks:
            options = [(f"qlora ({f.id})", _as_qlora(case, f)) for f in as_qlora]
            yield _first("task", f"lora ({before})", options, wanted)


def _smaller_formats(case: Case, candidates: Candidates) -> list[list[WeightFormat]]:
    """Formats with fewer bits than now, by class; those first that are of the engine's usual kind, then the widest.

    Kinds are told by whether a format needs tensor cores of some generation:
    GGUF files do not, so they come last in an engine that mostly loads others.
    """
    now = case.workload.weights.bits_per_weight
    usable = [f for f in candidates.formats if f.bits_per_weight < now and _usable(case, f)]
    tied_to_cards = 2 * sum(f.min_compute_capability is not None for f in usable) >= len(usable)
    usable.sort(key=lambda f: ((f.min_compute_capability is not None) is not tied_to_cards, -f.bits_per_weight))
    ends = (float("inf"), *BIT_CLASSES)
    return [
        [f for f in usable if low <= f.bits_per_weight < high] for high, low in zip(ends, BIT_CLASSES, strict=False)
    ]


def _usable(case: Case, form: WeightFormat) -> bool:
    """Whether engine and card take the format; an engine that lists no formats takes all."""
    if case.engine.weight_formats and form.id not in case.engine.weight_formats:
        return False
    least, has = form.min_compute_capability, case.accelerator.compute_capability
    return least is None or (has is not None and has >= least)


def _in_format(case: Case, form: WeightFormat, candidates: Candidates) -> list[Case]:
    """The work with weights in ``form``, in the engine that then runs it."""
    changed, own = _with_weights(case, form), own_engine(form.id)
    if not candidates.follows or own in {"", case.engine.id}:
        return [changed]
    return [each for engine in candidates.engines if engine.id == own for each in _in_engine(changed, engine)]


def _with_weights(case: Case, form: WeightFormat) -> Case:
    return replace(case, workload=replace(case.workload, weights=form))


def _as_qlora(case: Case, form: WeightFormat) -> Case:
    return replace(case, workload=replace(case.workload, task=Task.QLORA, weights=form))


def _wider(case: Case) -> list[tuple[str, Case]]:
    """The same work over 2, 4 and 8 times as many cards, in the way its engine divides a model."""
    options = []
    factor = 2
    while case.layout.gpus * factor <= MOST_GPUS:
        layout = _widened(case, factor)
        if layout is not None:
            options.append((str(layout.gpus), replace(case, layout=layout)))
        factor *= 2
    return options


def _widened(case: Case, factor: int) -> Layout | None:
    """Sharded data parallelism for training; tensor parallelism or a layer split for inference."""
    layout, parallel, heads = case.layout, case.engine.parallel, case.workload.model.attention_heads or 1
    if case.workload.training is not None:
        return replace(layout, data=layout.data * factor, zero_stage=3) if "zero" in parallel else None
    if "tensor" in parallel and heads % (layout.tensor * factor) == 0:
        return replace(layout, tensor=layout.tensor * factor)
    if "layer_split" in parallel:
        return replace(layout, pipeline=layout.pipeline * factor, layer_split=True)
    return None
