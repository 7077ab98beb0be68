"""The answer of ``fit`` as a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rackrate.app.context import Context
from rackrate.app.documents import (
    assumption_docs,
    cache_doc,
    component_docs,
    finding_docs,
    fit_change_docs,
    header,
    phase_docs,
    plain,
    span,
    workload_doc,
)
from rackrate.app.fit_cards import CHEAPEST_SHOWN, Chosen
from rackrate.app.questions import assumed, candidates, no_arithmetic
from rackrate.app.wire.fit import FitDocument, FitOnDoc, HoldingDoc, LargestDoc, SliceFitDoc
from rackrate.evidence import Unknown, known
from rackrate.facts import bundled
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.memory.fit_search import Case
from rackrate.plan.cheapest import Holding, cheapest_that_hold
from rackrate.plan.filters import lacking_arithmetic, reads_cache, runs_on
from rackrate.plan.largest import SliceHeld, copies, largest, slices_held
from rackrate.plan.remarks import short_of_concurrency
from rackrate.plan.scaling import nodes_of
from rackrate.plan.shapes import Estimator
from rackrate.plan.to_fit import changes_to_fit
from rackrate.problems import Code, Finding
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed
from rackrate.workload.workload import Workload


class FitOn(NamedTuple):
    """The work on some cards: the layout (none divides it) and the memory of the fullest card."""

    gpus: int
    layout: Layout | None
    memory: MemoryEstimate | Unknown


_OF_TIME = frozenset({"training.checkpoint_every", "training.evaluate_every", "training.eval_tokens"})
"""Keys that decide on time alone."""


class Answered(NamedTuple):
    """What was found: in full for ``leading``, in short for all ``counts`` of the chosen card."""

    chosen: Chosen
    leading: FitOn
    counts: Sequence[FitOn]


def document(here: Context, parsed: Parsed, estimator: Estimator, found: Answered) -> FitDocument:
    """The document about the card that was named or chosen."""
    card, leading, counts = found.chosen.card, found.leading, found.counts
    gpus, layout, memory = leading.gpus, leading.layout or Layout(), known(leading.memory)
    workload = parsed.workload
    case = Case(workload=workload, accelerator=card, layout=layout, engine=estimator.question.engine)
    profiles = bundled.mig_profiles() if layout.gpus == 1 and card.mig_instances else ()
    return FitDocument(
        **header("fit", here),
        workload=workload_doc(workload),
        accelerator=card.id,
        product=card.product,
        gpus=gpus,
        nodes=layout.nodes,
        layout=layout.label,
        interconnect=str(card.interconnect(gpus)),
        verdict=str(memory.verdict),
        metric=str(memory.metric),
        peak_bytes=span(memory.peak),
        allocated_bytes=span(memory.allocated),
        reserved_bytes=span(memory.reserved),
        peak_phase=str(memory.peak_phase),
        usable_bytes=memory.usable_bytes,
        memory_total_bytes=known(card.memory_total_bytes),
        headroom_bytes=memory.headroom_bytes,
        components=component_docs(memory.components),
        phases=phase_docs(memory),
        cache=cache_doc(memory.cache),
        changes=fit_change_docs(changes_to_fit(estimator, card, layout, candidates(here, workload))),
        counts=[_count_doc(each, card) for each in counts],
        largest=[
            LargestDoc(
                knob=each.knob,
                now=_now(workload, each.knob),
                value=each.value,
                capped=each.capped,
                global_batch=each.global_batch,
            )
            for each in largest(case)
        ],
        copies_per_card=copies(memory) if layout.gpus == 1 else None,
        slices=[_slice_doc(held) for held in slices_held(estimator, card, profiles)],
        cheapest=[_holding_doc(each, here) for each in _holdings(estimator, found.chosen, gpus)],
        assumptions=assumption_docs(
            a for a in (*found.chosen.made, *assumed(workload, card, gpus)) if a.key not in _OF_TIME
        ),
        warnings=finding_docs([*_warnings(estimator, card, leading), *parsed.warnings, *here.findings]),
    )


def _holdings(estimator: Estimator, chosen: Chosen, gpus: int) -> Sequence[Holding]:
    """The cheapest cards that hold the work: as sought to choose the card, else in the number that leads."""
    if nodes_of(estimator.question.workload) > 1:  # what joins machines of a seller is not known
        return ()
    return cheapest_that_hold(estimator, gpus, CHEAPEST_SHOWN) if chosen.cheapest is None else chosen.cheapest


def _count_doc(each: FitOn, card: Accelerator) -> FitOnDoc:
    memory = None if isinstance(each.memory, Unknown) else each.memory
    held = memory.cache.full_sequences * each.layout.data if memory and memory.cache and each.layout else None
    return FitOnDoc(
        gpus=each.gpus,
        layout=each.layout.label if each.layout else None,
        interconnect=str(card.interconnect(each.gpus)),
        verdict=str(memory.verdict) if memory else None,
        peak_bytes=span(memory.peak) if memory else None,
        usable_bytes=memory.usable_bytes if memory else None,
        headroom_bytes=memory.headroom_bytes if memory else None,
        full_sequences=held,
        components=component_docs(memory.components) if memory else [],
        reason=each.memory.reason if isinstance(each.memory, Unknown) else None,
    )


def _now(workload: Workload, knob: str) -> int:
    """The value that a setting has."""
    sizes = workload.training or workload.serving or workload.images
    return int(getattr(sizes, knob.partition(".")[2]))


def _slice_doc(held: SliceHeld) -> SliceFitDoc:
    return SliceFitDoc(
        profile=held.profile.profile,
        at_most=held.profile.max_instances,
        compute_share=float(held.profile.sm_fraction),
        memory_label_gb=held.profile.memory_label_gb,
        verdict=str(held.memory.verdict),
        share_of_usable=held.memory.peak.likely / held.memory.usable_bytes,
        unused_bytes=held.memory.headroom_bytes,
        source=held.profile.source,
    )


def _holding_doc(held: Holding, here: Context) -> HoldingDoc:
    (card,) = held.offer.cards
    return HoldingDoc(
        accelerator=card,
        product=here.book.accelerators[card].product,
        gpus=held.offer.gpus,
        layout=held.layout.label,
        headroom_bytes=held.memory.headroom_bytes,
        price_per_hour=plain(held.per_hour.rounded(6).amount),
        price_currency=held.per_hour.currency,
        provider=held.offer.provider,
        offer=held.offer.name,
        offer_id=held.offer.id,
        region=held.offer.region,
        market=held.offer.market,
        price_observed_at=held.offer.observed_on.isoformat(),
        price_source=held.offer.source,
    )


def _warnings(estimator: Estimator, card: Accelerator, leading: FitOn) -> Iterable[Finding]:
    """What the card cannot do, though it fits, and requests that wait."""
    workload, engine = estimator.question.workload, estimator.question.engine
    if lacking_arithmetic(workload, card) is not None:
        yield no_arithmetic(workload, card)
    if not runs_on(engine, card):
        yield Finding(
            code=Code.CONFLICT,
            subject=card.id,
            observed=f"{engine.title} does not run on {card.product}",
            expected="an engine that supports the card",
            action="name another with --engine, or choose another card",
        )
    elif not reads_cache(workload, card):
        yield Finding(
            code=Code.CONFLICT,
            subject=card.id,
            observed=f"{engine.title} does not keep such a cache on {card.product}",
            expected="a type of cache that the card's kernels read",
            action="choose another with --cache-precision, or another card",
        )
    if leading.layout is not None:
        short = short_of_concurrency(workload, known(leading.memory), leading.layout.data, card.id)
        yield from [short] if short else []
