"""What would make it fit: the memory room's single changes, and numbers of cards that the work really fills."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit import RANKS, smallest_changes
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_search import Case, Change
from rackrate.plan.shapes import Estimator
from rackrate.values import replace
from rackrate.workload.layout import Layout

COUNTS = (2, 4, 8)
"""Cards of one machine that are tried beyond those asked for."""

_KNOB = "limits.gpu_counts"


def changes_to_fit(
    estimator: Estimator, card: Accelerator, layout: Layout, candidates: Candidates
) -> tuple[Change, ...]:
    """Single changes that make the question's work fit on ``card``, smallest first; empty where it fits already.

    The memory room is asked for every setting but the number of cards: which
    numbers the work fills (a global batch of 2 never fills 8 cards) the
    layouts know. Where nothing makes it fit with margin, what leaves it tight
    is listed.
    """
    question = estimator.question
    now = estimator.memory(question.workload, card, layout)
    if isinstance(now, Unknown) or now.verdict is Verdict.FITS:
        return ()
    undivided = replace(question.engine, parallel=frozenset[str]())
    settings = [
        replace(change, case=replace(change.case, engine=question.engine))
        if change.case.engine == undivided
        else change
        for change in smallest_changes(question.workload, card, layout, undivided, candidates)
    ]
    more = [*_sharded_further(estimator, card, layout), *more_cards(estimator, card, layout)]
    for wanted in (Verdict.FITS, Verdict.TIGHT):
        found = [change for change in (*settings, *more) if change.verdict is wanted]
        if found and wanted is not now.verdict:
            return tuple(sorted(_first_of_count(found), key=lambda change: RANKS.index(change.knob)))
    return ()


def _sharded_further(estimator: Estimator, card: Accelerator, layout: Layout) -> Iterator[Change]:
    """A higher stage of ZeRO on the same cards, where the stage was asked for: without one the best is tried anyway."""
    question = estimator.question
    asked = question.workload.parallel
    if asked is None or asked.zero_stage is None or question.workload.training is None or layout.shards <= 1:
        return
    for stage in question.engine.zero_stages_at(layout.pipeline):
        if stage <= asked.zero_stage:
            continue
        work = replace(question.workload, parallel=replace(asked, zero_stage=stage))
        changed = replace(layout, zero_stage=stage)
        memory = estimator.memory(question.workload, card, changed)
        if not isinstance(memory, Unknown) and memory.verdict is not Verdict.DOES_NOT_FIT:
            yield Change(
                knob="parallel.zero_stage",
                before=str(asked.zero_stage),
                after=str(stage),
                peak=memory.peak,
                verdict=memory.verdict,
                case=Case(workload=work, accelerator=card, layout=changed, engine=question.engine),
            )
            return


def more_cards(estimator: Estimator, card: Accelerator, layout: Layout) -> Iterator[Change]:
    """Larger numbers of ``card`` that hold the work in a layout that uses all of them, fewest first."""
    question = estimator.question
    for count in COUNTS:
        if count <= layout.gpus:
            continue
        for wider in estimator.layouts(count):
            memory = estimator.memory(question.workload, card, wider)
            if wider.gpus != count or isinstance(memory, Unknown) or memory.verdict is Verdict.DOES_NOT_FIT:
                continue
            case = Case(workload=question.workload, accelerator=card, layout=wider, engine=question.engine)
            yield Change(
                knob=_KNOB,
                before=str(layout.gpus),
                after=str(count),
                peak=memory.peak,
                verdict=memory.verdict,
                case=case,
            )


def _first_of_count(changes: list[Change]) -> list[Change]:
    """Every change, but of the numbers of cards the fewest alone."""
    counts = [change for change in changes if change.knob == _KNOB]
    return [change for change in changes if change.knob != _KNOB or change is counts[0]]
