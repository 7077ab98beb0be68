"""A measured speed in a request: judged beside the estimate, and laid over what is known of the engine."""

from __future__ import annotations

from typing import NamedTuple

from rackrate.app.context import Context
from rackrate.app.documents import span
from rackrate.app.gap_words import MEANINGS, TESTS, UNITS, what
from rackrate.app.questions import question_of
from rackrate.app.wire.measured import CorrectionDoc, GapDoc, JudgedDoc, ReadingDoc
from rackrate.evidence import Range, Unknown
from rackrate.facts.book import with_engine
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate
from rackrate.plan.gaps import Gap, gaps
from rackrate.plan.judging import Case, Judged, Reading, Standing, judged, readings
from rackrate.plan.shapes import Estimator
from rackrate.problems import Code, Finding, Refused
from rackrate.values import replace
from rackrate.workload.measured import Measured
from rackrate.workload.workload import Workload

_FLAG = "--measured"


class Known(NamedTuple):
    """What is known once the measured speed counts, and its verdict."""

    here: Context
    doc: JudgedDoc | None


def with_measured(work: Workload, here: Context) -> Known:
    """What is known, with the measured speed of ``work`` over it; as it was without one.

    Raises:
        Refused: it is not said which machine was measured, or nothing is expected of that.
    """
    measured = work.measured
    if measured is None:
        return Known(here, None)
    found = judged(measured, _case(work, measured, here))
    if isinstance(found, Unknown):
        raise _refusal(measured, found.reason, "measure another speed of it, or leave --measured out")
    if found.calibration is not None:
        engine = replace(found.case.engine, calibration=found.calibration)
        here = replace(here, book=with_engine(here.book, engine))
    return Known(here, _doc(found, here))


def _case(work: Workload, measured: Measured, here: Context) -> Case:
    """The machine that was measured, in the layout that a plan would choose for it."""
    card, gpus = _machine(work, measured)
    estimator = Estimator(question_of(work, here))
    found = estimator.alone(MachineShape(accelerator=card, gpus=gpus, bridged=True))
    if isinstance(found, NoEstimate):
        why = found.detail or str(found.reason).replace("_", " ")
        action = "give the model, format, batch and cards that were measured; `rackrate fit` tells what fits"
        raise _refusal(measured, f"{gpus} x {card}: {why}", action)
    engine = estimator.question.engine
    return Case(
        workload=work, card=here.book.accelerators[card], layout=found.layout, engine=engine, memory=found.memory
    )


def _machine(work: Workload, measured: Measured) -> tuple[str, int]:
    """Card and number: as the text says, else the one card named and the least number of --gpus, else one."""
    named, counts = work.limits.gpus, work.limits.gpu_counts
    card = measured.card or (named[0] if len(named) == 1 else "")
    if not card:
        action = f'say on which: "{measured.text} on 1 x a40", or name one card with --gpu'
        raise _refusal(measured, f"{len(named)} cards named" if named else "no card named", action)
    gpus = measured.gpus if measured.gpus is not None else min(counts, default=1)
    if gpus < 1:
        raise _refusal(measured, f"{gpus} cards", "name at least one card")
    return card, gpus


def _refusal(measured: Measured, observed: str, action: str) -> Refused:
    expected = f"the machine that does {measured.text}"
    return Refused([Finding(code=Code.BAD_VALUE, subject=_FLAG, observed=observed, expected=expected, action=action)])


# ---------------------------------------------------------------- documents


def _doc(found: Judged, here: Context) -> JudgedDoc:
    slow = found.standing is Standing.SLOW
    time = found.measured.is_time
    return JudgedDoc(
        text=found.measured.text.partition(" on ")[0],
        counted=str(found.counted),
        unit=UNITS[found.counted][time],
        accelerator=found.case.card.id,
        gpus=found.case.layout.gpus,
        layout=found.case.layout.label,
        value=_as_given(found.per_s, time=time),
        expected=span(found.pace.expected.inverse() if time else found.pace.expected),
        ceiling=_as_given(found.pace.ceiling, time=time),
        share_of_expected=found.share_of_expected,
        share_of_ceiling=found.share_of_ceiling,
        standing=str(found.standing),
        gaps=[_gap(gap, time=time) for gap in gaps(found, here.book)] if slow else [],
        readings=[_reading(each, time=time) for each in readings(found)],
        corrections=_corrections(found),
    )


def _as_given(per_s: float, *, time: bool) -> float:
    """A speed as it was given: a rate, or the seconds of each."""
    return 1 / per_s if time else per_s


def _gap(gap: Gap, *, time: bool) -> GapDoc:
    return GapDoc(
        cause=str(gap.cause),
        setting=gap.setting,
        what=what(gap.cause, gap.setting),
        value=_as_given(gap.per_s, time=time),
        explains=gap.explains,
        tuned=gap.tuned,
        test=TESTS[gap.cause],
    )


def _reading(each: Reading, *, time: bool) -> ReadingDoc:
    expected: Range = each.expected.inverse() if time else each.expected
    return ReadingDoc(meaning=str(each.meaning), what=MEANINGS[each.meaning], expected=span(expected))


def _corrections(found: Judged) -> list[CorrectionDoc]:
    """Times of phases over those expected, of what was measured and of its relatives."""
    made = found.calibration
    if made is None:
        return []
    phases = ("prefill", "decode", "training", "images")
    factors = [(name, getattr(made.near, name), getattr(made.elsewhere, name)) for name in phases]
    touched = ("prefill", "decode") if "serving" in made.phases else made.phases
    return [CorrectionDoc(part=n, times=near, elsewhere=other) for n, near, other in factors if n in touched]
