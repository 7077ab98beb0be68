"""The use case ``fit``: a workload on one card or several of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from rackrate.app.asking import BESIDE_THE_WORK, NOTHING, Asked, not_used, read_workload
from rackrate.app.context import context
from rackrate.app.fit_cards import chosen_card
from rackrate.app.fit_documents import Answered, FitOn, document
from rackrate.app.questions import question_of
from rackrate.app.wire.fit import FitDocument
from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate
from rackrate.plan.shapes import Estimator
from rackrate.problems import Code, Finding, Refused
from rackrate.values import replace

_ORDER = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)


NOT_USED_ANYWHERE = (
    *("use.starts", "use.data_in", "limits.deadline"),
    *("training.checkpoint_every", "training.evaluate_every", "training.eval_tokens", "measured"),
)
NOT_USED = (*BESIDE_THE_WORK, *NOT_USED_ANYWHERE, "limits.max_gpus", "limits.require", "limits.vendors")
"""Keys that change nothing of what memory holds on the one card named; without a name the last choose among cards."""


def fit(asked: Asked = None, flags: Mapping[str, object] = NOTHING, *, at: date | None = None) -> FitDocument:
    """Memory of the workload in ``asked`` and ``flags`` on the card that they name, in each number that they name.

    Args:
        asked: a workload file, or the table that such a file holds; ``limits.gpus`` names one card (unless given,
            the cheapest on demand that surely holds the work, in as few cards of a machine as that takes).
        flags: more keys by path; they win.
        at: the day of the question (today).

    Returns:
        The document that ``rackrate fit --json`` prints.

    Raises:
        Refused: the request cannot be understood, or names several cards.

    >>> from rackrate import api
    >>> job = {"model": "meta-llama/Llama-2-7b-hf", "task": "full_finetune", "limits": {"gpus": ["a100-sxm4-80"]}}
    >>> api.fit(job).verdict
    'does_not_fit'
    """
    here = context(at)
    parsed = read_workload(asked, flags, here.book)
    estimator = Estimator(question_of(parsed.workload, here))
    chosen = chosen_card(estimator)
    found = [_on(estimator, chosen.card, gpus) for gpus in chosen.counts]
    unused = NOT_USED if parsed.workload.limits.gpus else (*BESIDE_THE_WORK, *NOT_USED_ANYWHERE)
    parsed = replace(parsed, warnings=(*parsed.warnings, *not_used(flags, "fit", unused)))
    return document(here, parsed, estimator, Answered(chosen, _leading(estimator, chosen.card, found), found))


def _on(estimator: Estimator, card: Accelerator, gpus: int) -> FitOn:
    """The layout that a plan would choose on so many cards; where none works, the one that misses by least."""
    found = estimator.alone(MachineShape(accelerator=card.id, gpus=gpus, bridged=True))
    if found.layout is None:
        return FitOn(gpus=gpus, layout=None, memory=Unknown("no_layout"))
    if isinstance(found, NoEstimate):  # what is not known of its speed says nothing of its memory
        tried = [
            (layout, estimator.memory(estimator.question.workload, card, layout)) for layout in estimator.layouts(gpus)
        ]
        layout, memory = min(tried, key=lambda each: _misses_by(each[1]))
        return FitOn(gpus=gpus, layout=layout, memory=memory)
    return FitOn(gpus=gpus, layout=found.layout, memory=found.memory)


def _misses_by(memory: MemoryEstimate | Unknown) -> tuple[int, float]:
    """An order of estimates: those that fit are alike, then by what they miss; what is not known is last."""
    if isinstance(memory, Unknown):
        return len(_ORDER), 0.0
    return _ORDER.index(memory.verdict), 0.0 if memory.verdict is Verdict.FITS else memory.peak.likely


def _leading(estimator: Estimator, card: Accelerator, found: Sequence[FitOn]) -> FitOn:
    """The number of cards on which it fits best, of equals the fewest."""
    known = [(_ORDER.index(each.memory.verdict), each) for each in found if not isinstance(each.memory, Unknown)]
    if known:
        return min(known, key=lambda pair: (pair[0], pair[1].gpus))[1]
    first = found[0]
    raise _refuse_layout(estimator, first.gpus) if first.layout is None else _refuse_unknown(card, first.memory)


def _refuse_unknown(card: Accelerator, why: object) -> Refused:
    action = "choose a card and a model whose numbers are known: `rackrate gpu` lists cards"
    reason = why.reason if isinstance(why, Unknown) else ""
    return Refused([Finding(code=Code.MISSING_VALUE, subject=card.id, observed=reason, action=action)])


def _refuse_layout(estimator: Estimator, gpus: int) -> Refused:
    question = estimator.question
    parallel = question.workload.parallel
    expected = f"a number that {question.engine.title} can divide {question.workload.model.id} over"
    action = "try 1, 2, 4 or 8, or another engine"
    if parallel is not None:
        expected = f"at least {parallel.machine_gpus} cards, as the division that was asked for needs"
        action = f"say --gpus {parallel.machine_gpus}, or divide less"
    return Refused(
        [Finding(code=Code.CONFLICT, subject="--gpus", observed=f"{gpus} cards", expected=expected, action=action)]
    )
