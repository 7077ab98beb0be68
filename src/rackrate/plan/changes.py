"""Changes: the one setting that could bring a rejected offer in; ``trying`` finds out which do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rackrate.memory.fit import smallest_changes
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_search import Change as MemoryChange
from rackrate.offers.offer import Offer
from rackrate.plan.answer import Change, NoEstimate, Reason
from rackrate.plan.filters import Wanted
from rackrate.plan.limit_changes import NOT_SAID, change_of_limit
from rackrate.plan.numbers import quantity
from rackrate.plan.question import Question
from rackrate.plan.shapes import Estimator
from rackrate.plan.slices import as_rented
from rackrate.plan.trying import Proposal, until_it_holds
from rackrate.values import replace

_LESS_LOAD = (1.0, 0.97, 0.9)
"""Parts of the load that the most machines should carry: fewer requests in flight are also less well batched."""


NOT_TIMED = frozenset({"training.offload"})
"""Settings whose cost in time is not estimated: a plan is not changed by them."""


def proposals_for(estimator: Estimator, failure: NoEstimate) -> Iterable[Proposal]:
    """Changes after which this machine shape may pass every test, the smallest first."""
    if failure.reason is Reason.DOES_NOT_FIT:
        return estimator.kept(failure.shape, lambda: tuple(_to_fit(estimator.question, failure)))
    if failure.reason is Reason.LATENCY:
        return until_it_holds(estimator, failure, _slower)
    return _less_load(failure) if failure.reason is Reason.LOAD else ()


def _to_fit(question: Question, failure: NoEstimate) -> Iterator[Proposal]:
    shape, layout = failure.shape, failure.layout
    if layout is None:
        return
    card = as_rented(question.book.accelerators[shape.accelerator], shape)
    candidates = Candidates(formats=tuple(question.book.formats.values()))
    undivided = replace(question.engine, parallel=frozenset[str]())  # no setting gives the offer more cards
    for found in smallest_changes(question.workload, card, layout, undivided, candidates):
        if found.knob in NOT_TIMED:
            continue
        change = Change(knob=found.knob, before=found.before, after=found.after)
        yield Proposal(change=change, settings=_settings(found))


def _settings(found: MemoryChange) -> tuple[tuple[str, object], ...]:
    """The keys behind a change; another task comes with its format."""
    if found.knob == "task":
        work = found.case.workload
        return (("task", work.task.value), ("quantization", work.weights.id))
    return ((found.knob, found.after),)


def _slower(failure: NoEstimate) -> Proposal:
    """The latency target that was missed, raised to what the machine reaches (rounded up to a millisecond)."""
    first_token = failure.unit == "s to first token"
    knob = "serving.first_token_ms" if first_token else "serving.output_token_ms"
    after = str(math.ceil(failure.observed * 1000 + 1e-6))
    change = Change(knob=knob, before=f"{failure.limit * 1000:.0f}", after=after)
    return Proposal(change=change, settings=((knob, after),))


def _less_load(failure: NoEstimate) -> Iterator[Proposal]:
    """The load that the most machines carry (rounded down to three digits)."""
    digits = 2 - math.floor(math.log10(failure.observed))
    for part in _LESS_LOAD:
        after = f"{math.floor(failure.observed * part * 10**digits) / 10**digits:g}"
        change = Change(knob="serving.requests_per_s", before=f"{failure.limit:g}", after=after)
        yield Proposal(change=change, settings=(("serving.requests_per_s", after),))


def later(deadline_hours: float, needed_hours: float) -> Proposal:
    """The deadline that is met (rounded up to a tenth of an hour, below an hour to a minute)."""
    tenths, minutes = math.ceil(needed_hours * 10 + 1e-9), math.ceil(needed_hours * 60 + 1e-9)
    after = f"{tenths / 10:.1f} h" if needed_hours >= 1 else f"{minutes} min"
    change = Change(knob="limits.deadline", before=quantity(deadline_hours, "hours"), after=after)
    return Proposal(change=change, settings=(("limits.deadline", after),))


# ---------------------------------------------------------------- filters


def proposal_for_filter(question: Question, reason: Reason, offer: Offer | None) -> Proposal | None:
    """The limit to loosen, and to what, for ``offer`` (None: what helps whichever it is)."""
    if reason is Reason.ARITHMETIC:
        change = Change(knob="precision", before=str(question.workload.precision), after="bf16")
        return Proposal(change=change, settings=(("precision", "bf16"),))
    if offer is None:
        return None
    wanted = Wanted(limits=question.workload.limits, offers=question.offers, book=question.book)
    found = change_of_limit(wanted, reason, offer)
    if found is None:
        return None
    return Proposal(change=found, settings=((found.knob, None if found.after in NOT_SAID else found.after),))
