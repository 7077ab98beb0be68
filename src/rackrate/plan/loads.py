"""Loads: machines under a simulated load, held to the targets at the percentile that was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.plan.answer import ShapeEstimate
from rackrate.plan.question import Question
from rackrate.plan.scaling import Missed, OnCards, Target
from rackrate.speed.simulation.highest import MOST, Holds
from rackrate.speed.simulation.machine import UnderLoad, targets_of, under_load
from rackrate.speed.simulation.records import Simulated
from rackrate.values import replace
from rackrate.workload.workload import Serving

_UNITS = {Holds.FIRST_TOKEN: "s to first token", Holds.OUTPUT_TOKEN: "s per output token"}


def all_simulated(question: Question, card: Accelerator, machines: Iterable[OnCards]) -> tuple[OnCards, ...]:
    """Every machine that does the work, simulated."""
    return tuple(simulated(question, card, each) for each in machines)


def fewest_simulated(question: Question, card: Accelerator, machines: Iterable[OnCards]) -> tuple[OnCards, ...]:
    """Machines simulated one after the other, the fewest cards first, until one meets every target."""
    found: list[OnCards] = []
    met = False
    for each in machines:
        found.append(each if met else simulated(question, card, each))
        met = met or (isinstance(each.found, ShapeEstimate) and not found[-1].missed)
    return tuple(found)


def simulated(question: Question, card: Accelerator, each: OnCards) -> OnCards:
    """``each`` with what its requests meet, and the targets of latency and load that they miss there."""
    serving = question.workload.serving
    if not isinstance(each.found, ShapeEstimate) or serving is None:
        return each
    found = under_load(question.workload, card, each.found.layout, question.engine, each.found.memory)
    if isinstance(found, Unknown):
        return replace(each, load=found)
    kept = [missed for missed in each.missed if missed.target is Target.DEADLINE]
    return replace(each, load=found, missed=(*kept, *missed_under_load(serving, found)))


def missed_under_load(serving: Serving, found: UnderLoad) -> Iterable[Missed]:
    """The targets that the percentile asked for misses; a load above the capacity misses that alone."""
    if not serving.online:
        return
    if not _keeps_up(serving, found):
        capacity = MOST * found.highest.capacity_requests_per_s if found.highest else found.asked.requests_per_s
        yield Missed(target=Target.LOAD, observed=capacity, limit=serving.requests_per_s or 0.0, unit="requests/s")
        return
    targets = targets_of(serving)
    for name, limit in ((Holds.FIRST_TOKEN, targets.first_token_s), (Holds.OUTPUT_TOKEN, targets.s_per_output_token)):
        seen = _seen(found.asked, name, targets.percentile)
        if limit is not None and seen is not None and seen > limit:
            yield Missed(target=Target.LATENCY, observed=seen, limit=limit, unit=_UNITS[name])


def _keeps_up(serving: Serving, found: UnderLoad) -> bool:
    rate, most = serving.requests_per_s, found.highest
    return rate is None or (found.asked.stable and (most is None or rate <= MOST * most.capacity_requests_per_s))


def _seen(found: Simulated, name: Holds, percentile: int) -> float | None:
    times = found.first_token_s if name is Holds.FIRST_TOKEN else found.s_per_output_token
    return None if times is None else times.at(percentile)
