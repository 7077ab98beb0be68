"""The changes that fit tries in the settings of the work: training, serving and images."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_search import Case, Change, _first, _largest
from rackrate.values import replace
from rackrate.workload.caches import cache_types, cached_as
from rackrate.workload.workload import Checkpointing, Images, Pictured, Serving, Training

OFFLOADS = ("none", "model", "sequential")
"""Ways to keep networks in the host's memory, from the least time lost to the most."""


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
