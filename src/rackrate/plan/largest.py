"""The largest sizes that fit, copies of the work on one card, and slices of a card that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.records import MigProfile
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.memory.fit_search import Case
from rackrate.plan.shapes import Estimator
from rackrate.plan.slices import mig_slice
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Images, Serving, Training

MOST_TOKENS, MOST_AT_ONCE = 2**22, 2**14
"""Where the search ends: longer contexts and larger batches than anyone runs."""


class Largest(Value, frozen=True, kw_only=True):
    """The largest value of one setting that surely fits, the others kept; 0 where not even the least does.

    ``capped``: memory would allow more; the model's own context ends there, or the search does.
    ``global_batch``: what a step must be for a micro-batch, where that is not what it is.
    """

    knob: str
    value: int
    capped: bool
    global_batch: int | None = None


class SliceHeld(Value, frozen=True, kw_only=True):
    """A kind of slice that holds the work, and the memory of one."""

    profile: MigProfile
    memory: MemoryEstimate


def largest(case: Case) -> tuple[Largest, ...]:
    """The largest context, and batch or concurrency, of ``case`` in its layout; each alone, by bisection."""
    context = min(case.workload.model.max_context or MOST_TOKENS, MOST_TOKENS)
    if case.workload.training is not None:
        run = case.workload.training
        if run.pictured is not None:
            return (_largest_batch(case, run),)
        return (
            _largest("training.sequence_tokens", context, lambda n: _trained(case, run, sequence_tokens=n)),
            _largest_batch(case, run),
        )
    if case.workload.serving is not None:
        serving = case.workload.serving
        lengths = () if serving.audio_seconds else (_longest(case, serving, context),)  # windows are of one length
        return (
            *lengths,
            _largest("serving.concurrency", MOST_AT_ONCE, lambda n: _served(case, replace(serving, concurrency=n))),
        )
    if case.workload.images is not None:
        images = case.workload.images
        return (_largest("images.at_once", MOST_AT_ONCE, lambda n: _pictured(case, replace(images, at_once=n))),)
    return ()


def _largest_batch(case: Case, run: Training) -> Largest:
    """The largest micro-batch, with the step that it takes."""
    found = _largest("training.micro_batch", MOST_AT_ONCE, lambda n: _trained(case, run, micro_batch=n))
    taken = _step_of(run, found.value, case.layout) if found.value else run.global_batch
    return found if taken == run.global_batch else replace(found, global_batch=taken)


def _step_of(run: Training, micro_batch: int, layout: Layout) -> int:
    """Sequences of a step, the next number from what they are that gives every replica whole micro-batches."""
    at_once = micro_batch * layout.data
    return -(-run.global_batch // at_once) * at_once


def _longest(case: Case, serving: Serving, most: int) -> Largest:
    return _largest("serving.context_tokens", most, lambda n: _served(case, lengthened(serving, n)))


def _pictured(case: Case, images: Images) -> bool:
    return _holds(replace(case, workload=replace(case.workload, images=images)))


def lengthened(serving: Serving, context: int) -> Serving:
    """``serving`` with requests that fill ``context`` tokens: the output stays, the prompt takes the rest."""
    output = min(serving.output_tokens, max(1, context - 1))
    context = max(context, serving.image_tokens + output + 1) if serving.seen is not None else context
    prompt = max(0, context - output)
    shared = min(serving.shared_prefix_tokens, max(0, prompt - 1))
    return replace(
        serving, context_tokens=context, prompt_tokens=prompt, output_tokens=output, shared_prefix_tokens=shared
    )


def _trained(case: Case, run: Training, **sizes: int) -> bool:
    changed = replace(run, **sizes)
    whole = replace(changed, global_batch=_step_of(changed, changed.micro_batch, case.layout))
    return _holds(replace(case, workload=replace(case.workload, training=whole)))


def _served(case: Case, serving: Serving) -> bool:
    return _holds(replace(case, workload=replace(case.workload, serving=serving)))


def _holds(case: Case) -> bool:
    """Whether it surely fits, without a request that waits for room."""
    found = case.estimate()
    return found is not None and found.verdict is Verdict.FITS and not found.queues


def _largest(knob: str, most: int, holds: Callable[[int], bool]) -> Largest:
    """The largest number up to ``most`` that holds; need never falls as it grows."""
    high = 1
    while high < most and holds(high):
        high = min(2 * high, most)
    if high == most and holds(most):
        return Largest(knob=knob, value=most, capped=True)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return Largest(knob=knob, value=low, capped=False)


def copies(memory: MemoryEstimate) -> int:
    """Copies of the whole work that one card surely holds beside each other, by memory alone.

    Each is a process of its own: the peak of one has its CUDA context in it.
    They share arithmetic and bandwidth, so that each is slower.
    """
    return int(memory.usable_bytes // memory.peak.high)


def slices_held(estimator: Estimator, card: Accelerator, profiles: Iterable[MigProfile]) -> tuple[SliceHeld, ...]:
    """The kinds of slices of ``card`` that hold the work, each in a slice of its own, the smallest first."""
    found = []
    for profile in profiles:
        if card.id not in profile.accelerators:
            continue
        memory = estimator.memory(estimator.question.workload, mig_slice(card, profile), Layout())
        if not isinstance(memory, Unknown) and memory.verdict is not Verdict.DOES_NOT_FIT:
            found.append(SliceHeld(profile=profile, memory=memory))
    return tuple(sorted(found, key=lambda held: (held.profile.memory_label_gb, held.profile.sm_fraction)))
