"""The use case ``fit``: a workload on one card or several of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from rackrate.app.asking import NOTHING, Asked, read_workload
from rackrate.app.context import Context, context
from rackrate.app.documents import (
    assumption_docs,
    cache_doc,
    component_docs,
    finding_docs,
    fit_change_docs,
    header,
    phase_docs,
    span,
    workload_doc,
)
from rackrate.app.wire import FitDocument
from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Accelerator, Interconnect
from rackrate.facts.engine import Engine
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.memory.fit import Candidates, Change, smallest_changes
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import ShapeEstimate
from rackrate.plan.filters import NARROW
from rackrate.plan.question import Question
from rackrate.plan.remarks import short_of_concurrency
from rackrate.plan.shapes import Estimator
from rackrate.problems import Code, Finding, Refused
from rackrate.workload.layout import Layout
from rackrate.workload.requirements import meets
from rackrate.workload.workload import Assumption, Workload


def fit(asked: Asked = None, flags: Mapping[str, object] = NOTHING, *, at: date | None = None) -> FitDocument:
    """Memory of the workload in ``asked`` and ``flags`` on the card that they name.

    Args:
        asked: a workload file, or the table that such a file holds; ``limits.gpus`` names one card.
        flags: more keys by path; they win.
        at: the day of the question (today).

    Returns:
        The document that ``rackrate fit --json`` prints.

    Raises:
        Refused: the request cannot be understood, or names no card.

    >>> from rackrate import api
    >>> job = {"model": "meta-llama/Llama-2-7b-hf", "task": "full_finetune", "limits": {"gpus": ["a100-sxm4-80"]}}
    >>> api.fit(job).verdict
    'does_not_fit'
    """
    here = context(at)
    parsed = read_workload(asked, flags, here.book)
    card, gpus = _card(parsed.workload, here)
    layout, memory = _best(_question(parsed.workload, here), card, gpus)
    short = short_of_concurrency(parsed.workload, memory, layout.data, card.id)
    changes = () if memory.verdict is Verdict.FITS else _changes(here, parsed.workload, card, layout)
    return FitDocument(
        **header("fit", here),
        workload=workload_doc(parsed.workload),
        accelerator=card.id,
        product=card.product,
        gpus=gpus,
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
        changes=fit_change_docs(changes),
        assumptions=assumption_docs(_assumed(parsed.workload, card, gpus)),
        warnings=finding_docs(
            [*_unsupported(parsed.workload, card), *parsed.warnings, *here.findings, *([short] if short else [])]
        ),
    )


def _card(workload: Workload, here: Context) -> tuple[Accelerator, int]:
    """The one card named, and how many of it (1 unless said)."""
    named = workload.limits.gpus
    if len(named) != 1:
        code = Code.AMBIGUOUS_CARD if named else Code.MISSING_VALUE
        observed = f"{len(named)} cards" if named else "none"
        action = f"say which: {', '.join(named)}" if named else "name one with --gpu; `rackrate gpu` lists all"
        raise Refused([Finding(code=code, subject="--gpu", observed=observed, expected="one card", action=action)])
    counts = workload.limits.gpu_counts
    return here.book.accelerators[named[0]], counts[0] if counts else 1


def _question(workload: Workload, here: Context) -> Question:
    return Question(
        workload=workload,
        engine=here.book.engine(workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency=workload.display_currency,
    )


def _best(question: Question, card: Accelerator, gpus: int) -> tuple[Layout, MemoryEstimate]:
    """The layout that a plan would choose; where none works, the one that misses by least."""
    shape = MachineShape(accelerator=card.id, gpus=gpus, bridged=True)
    found = Estimator(question).outcome(shape)
    if isinstance(found, ShapeEstimate):
        return found.layout, found.memory
    if found.layout is None:
        raise _refuse_layout(question.workload, question.engine, gpus)
    memory = estimate(question.workload, card, found.layout, question.engine)
    if isinstance(memory, Unknown):
        raise _refuse_unknown(card, memory)
    return found.layout, memory


def _assumed(workload: Workload, card: Accelerator, gpus: int) -> tuple[Assumption, ...]:
    """The workload's assumptions that memory rests on, and the bridge that several cards may have."""
    made = [a for a in workload.assumptions if not a.key.startswith(("use.", "limits.")) and a.key != "currency"]
    if card.interconnect(gpus) is Interconnect.NVLINK_BRIDGE:
        made.append(Assumption(key="interconnect", value="nvlink_bridge", why="bridge_assumed"))
    return tuple(made)


def _unsupported(workload: Workload, card: Accelerator) -> list[Finding]:
    """An error when the card cannot compute in the precision asked for; it fits, but to no purpose."""
    needed = NARROW.get(workload.precision)
    if needed is None or meets(card, needed) is True:
        return []
    return [
        Finding(
            code=Code.PRECISION_UNSUPPORTED,
            subject=card.id,
            observed=f"no {workload.precision} arithmetic",
            expected=f"a card that computes in {workload.precision}",
            action="choose another card, or --quantization fp8-weight-only with --precision bf16",
        )
    ]


def _changes(here: Context, workload: Workload, card: Accelerator, layout: Layout) -> tuple[Change, ...]:
    """Single changes that make the workload fit, the smallest first, among all known formats."""
    engines = tuple(map(here.book.engine, here.book.engine_ids))
    candidates = Candidates(formats=tuple(here.book.formats.values()), engines=engines)
    return smallest_changes(workload, card, layout, here.book.engine(workload.engine_id), candidates)


def _refuse_unknown(card: Accelerator, why: Unknown) -> Refused:
    action = "choose a card and a model whose numbers are known: `rackrate gpu` lists cards"
    return Refused([Finding(code=Code.MISSING_VALUE, subject=card.id, observed=why.reason, action=action)])


def _refuse_layout(workload: Workload, engine: Engine, gpus: int) -> Refused:
    return Refused(
        [
            Finding(
                code=Code.CONFLICT,
                subject="--gpus",
                observed=f"{gpus} cards",
                expected=f"a number that {engine.title} can divide {workload.model.id} over",
                action="try 1, 2, 4 or 8, or another engine",
            )
        ]
    )
