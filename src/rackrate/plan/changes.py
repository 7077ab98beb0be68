"""Changes: the one setting that would bring a rejected offer in."""

from __future__ import annotations

from rackrate.memory.fit import Candidates, smallest_changes
from rackrate.offers.offer import Offer
from rackrate.plan.answer import Change, NoEstimate, Reason
from rackrate.plan.numbers import quantity
from rackrate.plan.question import Question
from rackrate.plan.slices import slice_of

_TARGETS = {"s to first token": "serving.first_token_ms", "s per output token": "serving.output_token_ms"}


def change_for_failure(question: Question, failure: NoEstimate) -> Change | None:
    """The smallest change after which this machine shape passes the test that it failed, if one was found."""
    if failure.reason is Reason.DOES_NOT_FIT and failure.layout is not None:
        return _to_fit(question, failure)
    before, after = quantity(failure.limit, failure.unit), quantity(failure.observed, failure.unit)
    if failure.reason is Reason.LATENCY:
        knob = _TARGETS[failure.unit]
        return Change(knob=knob, before=f"{failure.limit * 1000:.0f}", after=f"{failure.observed * 1000:.0f}")
    if failure.reason is Reason.LOAD:
        return Change(knob="serving.requests_per_s", before=before, after=after)
    if failure.reason is Reason.DEADLINE:
        return Change(knob="limits.deadline", before=before, after=after)
    return None


def _to_fit(question: Question, failure: NoEstimate) -> Change | None:
    assert failure.layout is not None
    shape = failure.shape
    card = slice_of(question.book.accelerators[shape.accelerator], shape.share)
    candidates = Candidates(formats=tuple(question.book.formats.values()))
    found = smallest_changes(question.workload, card, failure.layout, question.engine, candidates)
    return Change(knob=found[0].knob, before=found[0].before, after=found[0].after) if found else None


def change_for_filter(question: Question, reason: Reason, offer: Offer) -> Change | None:
    """The limit to loosen, and to what."""
    limits = question.workload.limits
    table: dict[Reason, tuple[str, tuple[str, ...], str]] = {
        Reason.CARD_NOT_ASKED: ("limits.gpus", limits.gpus, "|".join(offer.cards)),
        Reason.CARD_PROPERTY: ("limits.require", limits.require, "none"),
        Reason.ARITHMETIC: ("precision", (str(question.workload.precision),), "bf16"),
        Reason.GPU_COUNT: ("limits.gpu_counts", tuple(map(str, limits.gpu_counts)), str(offer.gpus)),
        Reason.PROVIDER: ("limits.providers", limits.providers, offer.provider),
        Reason.REGION: ("limits.regions", limits.regions, offer.region),
        Reason.REGION_UNKNOWN: ("limits.regions", limits.regions, "any"),
        Reason.MARKET: ("limits.markets", limits.markets, offer.market),
        Reason.PRICE_FROM: ("limits.markets", limits.markets, offer.market),
        Reason.COMMITMENT_UNKNOWN: ("limits.markets", limits.markets, offer.market),
        Reason.INTERRUPTIBLE: ("limits.interruptible", ("false",), "true"),
    }
    if reason not in table:
        return None
    knob, before, after = table[reason]
    return Change(knob=knob, before=",".join(before) or "any", after=after)
