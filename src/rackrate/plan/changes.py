"""Changes: the one setting that would bring a rejected offer in, tried before it is named."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rackrate.memory.fit import Candidates
from rackrate.offers.offer import MachineShape, Offer
from rackrate.plan.answer import Change, NoEstimate, Reason, ShapeEstimate
from rackrate.plan.filters import Wanted
from rackrate.plan.limit_changes import change_of_limit
from rackrate.plan.numbers import quantity
from rackrate.plan.pricing import finish_hours
from rackrate.plan.question import Question
from rackrate.plan.shapes import Estimator
from rackrate.plan.slices import as_rented
from rackrate.plan.to_fit import changes_to_fit
from rackrate.values import replace
from rackrate.workload.workload import Serving, Workload

TRIED_AT_MOST = 6
"""Changes that are tried on one shape; beyond, none is near."""

Tried = tuple[Change, Workload, MachineShape]


def change_for_failure(question: Question, failure: NoEstimate) -> Change | None:
    """The smallest change after which this machine shape passes every test of memory, speed and time, if one does."""
    for number, (change, workload, shape) in enumerate(_candidates(question, failure)):
        if number == TRIED_AT_MOST:
            return None
        if _passes(replace(question, workload=workload), shape):
            return change
    return None


def _candidates(question: Question, failure: NoEstimate) -> Iterator[Tried]:
    if failure.reason is Reason.DOES_NOT_FIT:
        yield from _to_fit(question, failure)
    elif failure.reason is Reason.LATENCY and question.workload.serving is not None:
        yield _slower(question, failure, question.workload.serving)
    elif failure.reason is Reason.LOAD and question.workload.serving is not None:
        yield _less_load(question, failure, question.workload.serving)
    elif failure.reason is Reason.DEADLINE:
        yield _later(question, failure)


def _passes(question: Question, shape: MachineShape) -> bool:
    found = Estimator(question).outcome(shape)
    if not isinstance(found, ShapeEstimate):
        return False
    deadline = question.workload.limits.deadline_hours
    return deadline is None or question.workload.is_service or finish_hours(found).likely <= deadline


def _to_fit(question: Question, failure: NoEstimate) -> Iterator[Tried]:
    shape, layout = failure.shape, failure.layout
    if layout is None:
        return
    card = as_rented(question.book.accelerators[shape.accelerator], shape)
    candidates = Candidates(formats=tuple(question.book.formats.values()))
    for found in changes_to_fit(Estimator(question), card, layout, candidates):
        change = Change(knob=found.knob, before=found.before, after=found.after)
        yield change, found.case.workload, replace(shape, gpus=max(shape.gpus, found.case.layout.gpus))


def _slower(question: Question, failure: NoEstimate, serving: Serving) -> Tried:
    """The latency target that was missed, raised to what the machine reaches (rounded up to a millisecond)."""
    first_token = failure.unit == "s to first token"
    knob = "serving.first_token_ms" if first_token else "serving.output_token_ms"
    after = math.ceil(failure.observed * 1000 + 1e-6)
    target = {"max_first_token_s" if first_token else "max_s_per_output_token": after / 1000}
    change = Change(knob=knob, before=f"{failure.limit * 1000:.0f}", after=str(after))
    return change, replace(question.workload, serving=replace(serving, **target)), failure.shape


def _less_load(question: Question, failure: NoEstimate, serving: Serving) -> Tried:
    """The load that the most machines carry (rounded down to three digits)."""
    digits = 2 - math.floor(math.log10(failure.observed))
    after = math.floor(failure.observed * 10**digits) / 10**digits
    change = Change(knob="serving.requests_per_s", before=f"{failure.limit:g}", after=f"{after:g}")
    return change, replace(question.workload, serving=replace(serving, requests_per_s=after)), failure.shape


def _later(question: Question, failure: NoEstimate) -> Tried:
    """The deadline that the most machines meet (rounded up to a tenth of an hour)."""
    after = math.ceil(failure.observed * 10) / 10
    limits = replace(question.workload.limits, deadline_hours=after)
    change = Change(knob="limits.deadline", before=quantity(failure.limit, "hours"), after=f"{after:g} h")
    return change, replace(question.workload, limits=limits), failure.shape


def change_for_filter(question: Question, reason: Reason, offer: Offer) -> Change | None:
    """The limit to loosen, and to what."""
    if reason is Reason.ARITHMETIC:
        return Change(knob="precision", before=str(question.workload.precision), after="bf16")
    wanted = Wanted(limits=question.workload.limits, offers=question.offers, book=question.book)
    return change_of_limit(wanted, reason, offer)
