"""The use case ``speed``: how fast cards do a workload, what limits them, and what more cards change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from rackrate.app.advice_documents import advice_docs
from rackrate.app.asking import BESIDE_THE_WORK, NOTHING, Asked, not_used, read_workload
from rackrate.app.context import Context, context
from rackrate.app.documents import assumption_docs, finding_docs, header, workload_doc
from rackrate.app.measuring import with_measured
from rackrate.app.questions import bridge, candidates, joined, of_the_work, question_of
from rackrate.app.speed_documents import card_doc
from rackrate.app.wire.speed import CardSpeedDoc, SpeedDocument
from rackrate.facts import bundled
from rackrate.facts.accelerator import Accelerator
from rackrate.memory.fit_search import Change
from rackrate.plan.advice import advice
from rackrate.plan.answer import NoEstimate, ShapeEstimate
from rackrate.plan.loads import MEDIAN, all_simulated, fewest_simulated
from rackrate.plan.question import Question
from rackrate.plan.scaling import OnCards, fewest_that_meet, on_cards
from rackrate.plan.shapes import Estimator
from rackrate.plan.sharing import shared_cards
from rackrate.plan.to_fit import changes_to_fit
from rackrate.plan.usual_cards import usual_cards
from rackrate.problems import Code, Finding, Refused
from rackrate.speed.simulation.highest import Targets
from rackrate.speed.simulation.machine import targets_of
from rackrate.values import replace
from rackrate.workload.workload import Assumption, Workload

USUAL_COUNTS = (1, 2, 4, 8)
CHOOSE_CARDS = ("limits.require", "limits.vendors")
"""Limits that choose among the usual cards, and have no say where cards are named."""

CARDS_AT_MOST = 5
"""Cards that are answered for where none is named."""


def speed(
    asked: Asked = None, flags: Mapping[str, object] = NOTHING, *, at: date | None = None, simulate: bool = False
) -> SpeedDocument:
    """How fast the workload in ``asked`` and ``flags`` goes on the cards and numbers of cards that they name.

    Args:
        asked: a workload file, or the table that such a file holds; ``limits.gpus`` names cards (the most rented
            ones unless given), ``limits.gpu_counts`` how many of each in one machine (1, 2, 4 and 8 unless given).
        flags: more keys by path; they win.
        at: the day of the question (today).
        simulate: serving is simulated step by step: percentiles of latency, and the highest load that meets the
            targets. Where no number of cards is named, of each card up to the fewest that meet every target.
            Done anyway where targets are at the 90th or 99th percentile, which the closed form does not know.

    Returns:
        The document that ``rackrate speed --json`` prints.

    Raises:
        Refused: the request cannot be understood.

    >>> from rackrate import api
    >>> job = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "limits": {"gpus": ["a40"], "gpu_counts": [1, 2]}}
    >>> one, two = api.speed(job).cards[0].machines
    >>> one.tokens_per_s.likely < two.tokens_per_s.likely <= 2 * one.tokens_per_s.likely
    True
    """
    here = context(at)
    parsed = read_workload(asked, flags, here.book)
    here, seen = with_measured(parsed.workload, here)
    estimator = Estimator(replace(question_of(parsed.workload, here), request=parsed.request))
    cards, usual = _cards(estimator)
    counts = _counts(parsed.workload)
    serving = parsed.workload.serving
    simulate = serving is not None and (simulate or serving.percentile > MEDIAN)
    found = [(card, on_cards(estimator, card, counts)) for card in cards]
    if simulate:
        found = [(card, _simulated(estimator, card, machines)) for card, machines in found]
    figures = bundled.baselines()
    unused = not_used(flags, "speed", BESIDE_THE_WORK if usual else (*BESIDE_THE_WORK, *CHOOSE_CARDS))
    made = [*of_the_work(parsed.workload), *usual, *_bridges(cards, counts), *joined(parsed.workload, cards, counts)]
    if simulate and serving is not None and not serving.length_spread:
        made.append(Assumption(key="serving.length_spread", value="0", why="requests_alike"))
    targets = targets_of(serving) if serving is not None else Targets()
    return SpeedDocument(
        **header("speed", here),
        workload=workload_doc(parsed.workload),
        judged=seen,
        cards=[
            _advised(
                card_doc(card, machines, _changes(estimator, here, card, machines), figures, targets),
                estimator,
                machines,
            )
            for card, machines in found
        ],
        assumptions=assumption_docs(made),
        warnings=finding_docs(
            [*_emulated(machines for _, machines in found), *parsed.warnings, *unused, *here.findings]
        ),
    )


def _simulated(estimator: Estimator, card: Accelerator, machines: tuple[OnCards, ...]) -> tuple[OnCards, ...]:
    """All machines whose numbers of cards were named; else up to the fewest that meet every target."""
    question = estimator.question
    simulated = all_simulated if question.workload.limits.gpu_counts else fewest_simulated
    return tuple(_with_copies(question, card, each) for each in simulated(question, card, machines))


def _with_copies(question: Question, card: Accelerator, each: OnCards) -> OnCards:
    """One card with the ways in which several programs can share it."""
    if each.shape.gpus > 1 or each.load is None or not isinstance(each.found, ShapeEstimate):
        return each
    return replace(each, shared=shared_cards(question, card, each.found.memory, bundled.mig_profiles()))


def _advised(doc: CardSpeedDoc, estimator: Estimator, machines: Sequence[OnCards]) -> CardSpeedDoc:
    """The card with what tuning would change on the machine that matters."""
    leading = fewest_that_meet(machines) or next((each for each in machines if each.speedup is not None), None)
    if leading is None:
        return doc
    card = estimator.question.book.accelerators[doc.accelerator]
    told = advice(estimator, card, machines, leading)
    return replace(doc, advice=tuple(advice_docs(told)), advice_gpus=leading.shape.gpus)


def _cards(estimator: Estimator) -> tuple[list[Accelerator], list[Assumption]]:
    """The cards named, else the most rented ones, which is then said."""
    question = estimator.question
    named = question.workload.limits.gpus
    if named:
        return [question.book.accelerators[name] for name in named], []
    ids = usual_cards(question, CARDS_AT_MOST)
    if not ids:
        action = "name cards with --gpu; `rackrate gpu` lists all"
        raise Refused([Finding(code=Code.MISSING_VALUE, subject="--gpu", observed="none", action=action)])
    said = Assumption(key="limits.gpus", value=", ".join(ids), why="most_rented")
    return [question.book.accelerators[name] for name in ids], [said]


def _counts(workload: Workload) -> tuple[int, ...]:
    """The numbers of cards named, else the usual ones that the limits and the division asked for allow."""
    limits, parallel = workload.limits, workload.parallel
    if limits.gpu_counts:
        return limits.gpu_counts
    if parallel is not None and parallel.data:
        return (parallel.machine_gpus,)
    least = parallel.machine_gpus if parallel is not None else 1
    usual = tuple(n for n in USUAL_COUNTS if n >= least and (limits.max_gpus is None or n <= limits.max_gpus))
    return usual or (least,)


def _bridges(cards: Iterable[Accelerator], counts: Iterable[int]) -> list[Assumption]:
    """The bridge, said once, where any of the machines is taken to have one."""
    return [made for card in cards for gpus in counts for made in bridge(card, gpus)][:1]


def _changes(
    estimator: Estimator, here: Context, card: Accelerator, machines: Iterable[OnCards]
) -> dict[int, tuple[Change, ...]]:
    """What would make the work fit, by the number of cards on which it does not."""
    return {
        each.shape.gpus: changes_to_fit(
            estimator, card, each.found.layout, candidates(here, estimator.question.workload)
        )
        for each in machines
        if isinstance(each.found, NoEstimate) and each.found.layout is not None
    }


def _emulated(found: Iterable[Iterable[OnCards]]) -> list[Finding]:
    """Remarks of the estimates, each once."""
    done = [each.found for group in found for each in group if isinstance(each.found, ShapeEstimate)]
    return list(dict.fromkeys(finding for estimate in done for finding in estimate.speed.findings))
