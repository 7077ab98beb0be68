"""From a workload and what is known to the question that rooms answer."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.app.context import Context
from rackrate.facts.accelerator import Accelerator, Interconnect
from rackrate.memory.fit_candidates import Candidates
from rackrate.plan.question import Question
from rackrate.problems import Code, Finding
from rackrate.speed.network import usual_network
from rackrate.workload.workload import Assumption, Workload


def question_of(workload: Workload, here: Context) -> Question:
    """The question about ``workload`` over everything that is known."""
    return Question(
        workload=workload,
        engine=here.book.engine(workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency=workload.display_currency,
    )


def candidates(here: Context, workload: Workload) -> Candidates:
    """All formats and engines that are known, to be tried where something does not fit."""
    engines = tuple(map(here.book.engine, here.book.engine_ids))
    follows = any(assumption.key == "engine" for assumption in workload.assumptions)
    return Candidates(formats=tuple(here.book.formats.values()), engines=engines, follows=follows)


def assumed(workload: Workload, card: Accelerator, gpus: int) -> list[Assumption]:
    """The workload's assumptions that memory and speed rest on, and the bridge that several cards may have."""
    return [*of_the_work(workload), *bridge(card, gpus), *joined(workload, [card], [gpus])]


def of_the_work(workload: Workload) -> list[Assumption]:
    """The workload's assumptions that memory and speed rest on."""
    return [a for a in workload.assumptions if not a.key.startswith(("use.", "limits.")) and a.key != "currency"]


def joined(workload: Workload, cards: Iterable[Accelerator], counts: Iterable[int]) -> list[Assumption]:
    """The networks that are taken to join machines, where they are several and none was named."""
    parallel = workload.parallel
    if parallel is None or parallel.nodes == 1 or parallel.network is not None:
        return []
    texts = {f"{gpus} x {card.id}": usual_network(card, gpus).text for card in cards for gpus in counts}
    value = "; ".join(f"{text} ({machine})" for machine, text in texts.items())
    return [Assumption(key="parallel.network", value=value, why="usual_network")] if texts else []


def bridge(card: Accelerator, gpus: int) -> list[Assumption]:
    """The bridge that is taken to join ``gpus`` of these cards, where one can."""
    if card.interconnect(gpus) is not Interconnect.NVLINK_BRIDGE:
        return []
    return [Assumption(key="interconnect", value="nvlink_bridge", why="bridge_assumed")]


def no_arithmetic(workload: Workload, card: Accelerator) -> Finding:
    """An error: the card does not compute in the precision asked for; what fits, fits to no purpose."""
    return Finding(
        code=Code.PRECISION_UNSUPPORTED,
        subject=card.id,
        observed=f"no {workload.precision} arithmetic",
        expected=f"a card that computes in {workload.precision}",
        action="choose another card, or --quantization fp8-weight-only with --precision bf16",
    )
