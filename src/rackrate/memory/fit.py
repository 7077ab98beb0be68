"""What would make it fit: single changes to a workload, searched one setting at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.values import Value, replace
from rackrate.workload.caches import cache_types, cached_as
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts
from rackrate.workload.resolve import is_quantised, own_engine
from rackrate.workload.workload import (
    Checkpointing,
    DraftModel,
    Images,
    Pictured,
    Serving,
    Task,
    Training,
    Workload,
)

RANKS = (
    "images.slicing",
    "images.tiling",
    "images.at_once",
    "images.pipeline_offload",
    "training.cached",
    "training.loss",
    "training.micro_batch",
    "training.checkpointing",
    "training.offload",
    "parallel.zero_stage",
    "serving.concurrency",
    "training.optimizer",
    "serving.draft_model",
    "serving.cache_precision",
    "serving.beams",
    "training.pure_16bit",
    "engine",
    "quantization",
    "task",
    "limits.gpu_counts",
    "serving.context_tokens",
    "training.sequence_tokens",
    "images.width",
    "images.height",
)
"""Workload keys from the smallest change to the largest: what costs time, then numerics, money, the job itself."""

ROUND_TOKENS = 64
"""Token counts above a thousand are searched in steps of this many."""

MOST_GPUS = 8
OFFLOADS = ("none", "model", "sequential")
"""Ways to keep networks in the host's memory, from the least time lost to the most."""

ROUND_PIXELS = 64
"""Sides of images are searched in steps of this many pixels."""

BIT_CLASSES = (6.0, 5.0, 0.0)
"""Formats are tried by class: about 8 bits, 5 to 6, 4 and fewer."""


class Candidates(Value, frozen=True, kw_only=True):
    """What may be tried beyond sizes: weight formats, optimizers and engines that the caller knows of.

    ``follows``: nobody named the engine, so that a format with an engine of its
    own brings that one along.
    """

    formats: tuple[WeightFormat, ...] = ()
    engines: tuple[Engine, ...] = ()
    optimizers: tuple[str, ...] = ("adamw-8bit", "paged-adamw-8bit")
    follows: bool = False


class Case(Value, frozen=True, kw_only=True):
    """A workload on a card in a layout."""

    workload: Workload
    accelerator: Accelerator
    layout: Layout
    engine: Engine

    def estimate(self) -> MemoryEstimate | None:
        """The estimate, or None where it is not known."""
        found = estimate(self.workload, self.accelerator, self.layout, self.engine)
        return None if isinstance(found, Unknown) else found


class Change(Value, frozen=True, kw_only=True):
    """One setting changed: the workload key, its value before and after, and the peak and verdict that follow.

    ``case`` is what it leads to: the changed workload in its layout.
    """

    knob: str
    before: str
    after: str
    peak: Range
    verdict: Verdict
    case: Case


NO_CANDIDATES = Candidates()


def smallest_changes(
    workload: Workload,
    accelerator: Accelerator,
    layout: Layout,
    engine: Engine,
    candidates: Candidates = NO_CANDIDATES,
) -> tuple[Change, ...]:
    """Single changes that make ``workload`` fit, smallest first; empty when it fits already or nothing known helps.

    Numbers (batch, context, concurrency) go down to the largest value that
    fits, found by bisection because need grows with them. Where no single
    change makes it fit with margin, those that leave it tight are listed.
    """
    case = Case(workload=workload, accelerator=accelerator, layout=layout, engine=engine)
    now = case.estimate()
    if now is None or now.verdict is Verdict.FITS:
        return ()
    for wanted in (Verdict.FITS, Verdict.TIGHT):
        if wanted is now.verdict:
            break
        found = [change for change in _all_changes(case, candidates, wanted) if change is not None]
        if found:
            return tuple(sorted(found, key=lambda c: RANKS.index(c.knob)))
    return ()


def _all_changes(case: Case, candidates: Candidates, wanted: Verdict) -> Iterator[Change | None]:
    if case.workload.training is not None:
        yield from _training_changes(case, case.workload.training, candidates, wanted)
    if case.workload.serving is not None:
        yield from _serving_changes(case, case.workload.serving, wanted)
    if case.workload.images is not None:
        yield from _image_changes(case, case.workload.images, wanted)
    yield from _format_changes(case, candidates, wanted)
    yield _first("engine", case.engine.id, _other_engines(case, candidates), wanted)
    yield _first("limits.gpu_counts", str(case.layout.gpus), _wider(case), wanted)


def _training_changes(case: Case, now: Training, candidates: Candidates, wanted: Verdict) -> Iterator[Change | None]:
    batches = [(str(n), _with_training(case, replace(now, micro_batch=n))) for n in _smaller_batches(case, now)]
    yield _first("training.micro_batch", str(now.micro_batch), batches, wanted)
    if now.pictured is not None:
        yield from _pictured_changes(case, now, now.pictured, wanted)
        return
    yield _largest(
        "training.sequence_tokens",
        now.sequence_tokens,
        lambda n: _with_training(case, replace(now, sequence_tokens=n)),
        wanted,
    )
    yield from _engine_changes(case, now, wanted)
    stronger = _stronger(now.checkpointing)
    options = [(str(c), _with_training(case, replace(now, checkpointing=c))) for c in stronger]
    yield _first("training.checkpointing", str(now.checkpointing), options, wanted)
    others = [o for o in candidates.optimizers if o != now.optimizer]
    optimizers = [(o, _with_training(case, replace(now, optimizer=o))) for o in others]
    yield _first("training.optimizer", now.optimizer, optimizers, wanted)
    if not now.pure_16bit and not case.workload.task.trains_adapters:
        pure = [("true", _with_training(case, replace(now, pure_16bit=True)))]
        yield _first("training.pure_16bit", "false", pure, wanted)


def _smaller_batches(case: Case, now: Training) -> list[int]:
    """Smaller micro-batches, the largest first, of which every replica gets whole ones in a step as it does now."""
    data = case.layout.data
    whole = now.global_batch % (now.micro_batch * data) == 0
    return [n for n in range(now.micro_batch - 1, 0, -1) if not whole or now.global_batch % (n * data) == 0]


def _pictured_changes(case: Case, now: Training, images: Pictured, wanted: Verdict) -> Iterator[Change | None]:
    """Of a diffusion model: what is made beforehand, what is computed again, the optimizer and the size."""
    order = ("", "texts", "all")
    cached = [(o, _with_pictured(case, now, cached=o)) for o in order[order.index(images.cached) + 1 :]]
    yield _first("training.cached", images.cached or "none", cached, wanted)
    if now.checkpointing is Checkpointing.NONE:
        full = [("full", _with_training(case, replace(now, checkpointing=Checkpointing.FULL)))]
        yield _first("training.checkpointing", str(now.checkpointing), full, wanted)
    if not now.optimizer.endswith("-8bit"):
        narrow = [("adamw-8bit", _with_training(case, replace(now, optimizer="adamw-8bit")))]
        yield _first("training.optimizer", now.optimizer, narrow, wanted)
    yield _largest("images.width", images.width, lambda n: _with_pictured(case, now, width=n), wanted)
    yield _largest("images.height", images.height, lambda n: _with_pictured(case, now, height=n), wanted)


def _with_pictured(case: Case, now: Training, **changed: object) -> Case:
    assert now.pictured is not None
    images = replace(now.pictured, **changed)
    return _with_training(case, replace(now, pictured=images, sequence_tokens=int(images.latents)))


def _engine_changes(case: Case, now: Training, wanted: Verdict) -> Iterator[Change | None]:
    """The other losses and the offloads that the engine has; an offload that is on already stays."""
    policy = case.engine.training
    if policy is None:
        return
    loss = now.loss or policy.loss
    losses = [(other, _with_training(case, replace(now, loss=other))) for other in policy.other_losses if other != loss]
    yield _first("training.loss", loss, losses, wanted)
    more = policy.offloads[policy.offloads.index(now.offload) + 1 :] if now.offload in policy.offloads else ()
    able = policy.offloads if not now.offload else more
    offloads = [(what, _with_training(case, replace(now, offload=what))) for what in able]
    yield _first("training.offload", now.offload or "none", offloads, wanted)


def _image_changes(case: Case, now: Images, wanted: Verdict) -> Iterator[Change | None]:
    if not now.slicing and now.at_once > 1:
        yield _first("images.slicing", "false", [("true", _with_images(case, replace(now, slicing=True)))], wanted)
    if not now.tiling:
        yield _first("images.tiling", "false", [("true", _with_images(case, replace(now, tiling=True)))], wanted)
    yield _largest("images.at_once", now.at_once, lambda n: _with_images(case, replace(now, at_once=n)), wanted)
    more = OFFLOADS[OFFLOADS.index(now.pipeline_offload) + 1 :]
    options = [(mode, _with_images(case, replace(now, pipeline_offload=mode))) for mode in more]
    yield _first("images.pipeline_offload", now.pipeline_offload, options, wanted)
    yield _largest("images.width", now.width, lambda n: _with_images(case, replace(now, width=n)), wanted)
    yield _largest("images.height", now.height, lambda n: _with_images(case, replace(now, height=n)), wanted)


def _with_images(case: Case, images: Images) -> Case:
    return replace(case, workload=replace(case.workload, images=images))


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


def _stronger(now: Checkpointing) -> tuple[Checkpointing, ...]:
    order = (Checkpointing.NONE, Checkpointing.SELECTIVE, Checkpointing.FULL)
    return order[order.index(now) + 1 :]


def _with_training(case: Case, training: Training) -> Case:
    return replace(case, workload=replace(case.workload, training=training))


def _serving_changes(case: Case, now: Serving, wanted: Verdict) -> Iterator[Change | None]:
    yield _largest(
        "serving.concurrency", now.concurrency, lambda n: _with_serving(case, replace(now, concurrency=n)), wanted
    )
    context = max(now.context_tokens, now.prompt_tokens + now.output_tokens)
    if now.beams > 1:
        yield _largest("serving.beams", now.beams, lambda n: _with_serving(case, replace(now, beams=n)), wanted)
    if now.audio_seconds is None:  # windows of sound are of one length
        yield _largest("serving.context_tokens", context, lambda n: _with_serving(case, shortened(now, n)), wanted)
    if now.draft is not None:
        alone = [("none", _with_serving(case, replace(now, draft=None)))]
        yield _first("serving.draft_model", now.draft.model.id, alone, wanted)
    before = now.cache.id if now.cache is not None else f"{now.cache_bits:g} bits"
    yield _first("serving.cache_precision", before, _narrower_caches(case, now), wanted)


def _narrower_caches(case: Case, now: Serving) -> list[tuple[str, Case]]:
    """The cache in every type with fewer bits that engine and card have, in the order of the engine's file."""
    model, has = case.workload.model, case.accelerator.compute_capability
    options = []
    for name, kind in cache_types(case.engine, model).items():
        least = kind.min_compute_capability
        if kind.bits_at(model.head_dim or 0) < now.cache_bits and (least is None or (has is not None and has >= least)):
            options.append((name, _with_serving(case, cached_as(now, model, kind))))
    return options


def _with_serving(case: Case, serving: Serving) -> Case:
    return replace(case, workload=replace(case.workload, serving=serving))


def shortened(serving: Serving, context: int) -> Serving:
    """``serving`` with ``context`` tokens a sequence: the prompt gives way first, the output by half at most.

    Images stay, so that a shorter context than theirs is no smaller.
    """
    output = min(serving.output_tokens, max(1, context // 2))
    context = max(context, serving.image_tokens + output + 1) if serving.seen is not None else context
    prompt = min(serving.prompt_tokens, max(0, context - output))
    shared = min(serving.shared_prefix_tokens, max(0, prompt - 1))
    return replace(
        serving, context_tokens=context, prompt_tokens=prompt, output_tokens=output, shared_prefix_tokens=shared
    )


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


def _first(knob: str, before: str, options: list[tuple[str, Case]], wanted: Verdict) -> Change | None:
    """The first of ``options`` that reaches the verdict."""
    for after, case in options:
        found = case.estimate()
        if found is not None and _reaches(found.verdict, wanted):
            return Change(knob=knob, before=before, after=after, peak=found.peak, verdict=found.verdict, case=case)
    return None


def _largest(knob: str, now: int, changed: Callable[[int], Case], wanted: Verdict) -> Change | None:
    """The largest value below ``now`` that reaches the verdict (need never falls as the value grows)."""
    step = ROUND_PIXELS if knob in {"images.width", "images.height"} else 1
    step = ROUND_TOKENS if now > 1000 and knob.endswith("_tokens") else step  # noqa: PLR2004
    low, high = 0, -(-now // step)
    best: MemoryEstimate | None = None
    while high - low > 1:
        middle = (low + high) // 2
        found = changed(middle * step).estimate()
        if found is not None and _reaches(found.verdict, wanted):
            low, best = middle, found
        else:
            high = middle
    if best is None:
        return None
    after = low * step
    return Change(
        knob=knob, before=str(now), after=str(after), peak=best.peak, verdict=best.verdict, case=changed(after)
    )


def _reaches(verdict: Verdict, wanted: Verdict) -> bool:
    return verdict is Verdict.FITS or verdict is wanted
