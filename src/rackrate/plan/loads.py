"""Loads: machines under a simulated load, held to the targets at the percentile that was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.plan.answer import Plan, ShapeEstimate, likely_of
from rackrate.plan.machines import per_machine
from rackrate.plan.question import Question
from rackrate.plan.scaling import Missed, OnCards, Target
from rackrate.plan.slices import as_rented
from rackrate.problems import Code, Finding, Severity
from rackrate.speed.simulation.highest import MOST, Holds
from rackrate.speed.simulation.machine import UnderLoad, load_of, server_of, targets_of, under_load
from rackrate.speed.simulation.records import Simulated
from rackrate.speed.simulation.run import simulate
from rackrate.values import replace
from rackrate.workload.workload import Serving

MEDIAN = 50

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


def with_tail(question: Question, plan: Plan) -> Plan:
    """``plan`` with a warning where its machines, simulated under their part of the load, miss a target of the tail.

    Plans are sized by the closed form, which knows the median request; nothing is done for targets of that.
    """
    serving = question.workload.serving
    if serving is None or not serving.online or serving.percentile <= MEDIAN:
        return plan
    likely = likely_of(plan.estimates)
    part = per_machine(question.workload, likely.machines)
    card = as_rented(question.book.accelerators[likely.shape.accelerator], likely.shape)
    what = server_of(part, card, likely.layout, question.engine, likely.memory)
    if isinstance(what, Unknown) or part.serving is None:
        return plan
    found = simulate(what, load_of(part.serving))
    if isinstance(found, Unknown):
        return plan
    missed = targets_of(serving).missed(found)
    return plan if missed is None else replace(plan, warnings=(_tail(serving, missed, found, plan), *plan.warnings))


def _tail(serving: Serving, missed: Holds, found: Simulated, plan: Plan) -> Finding:
    targets, share = targets_of(serving), f"for {serving.percentile} of 100 requests, simulated"
    limit = targets.first_token_s if missed is Holds.FIRST_TOKEN else targets.s_per_output_token
    seen = _seen(found, missed, serving.percentile)
    told = missed is not Holds.CAPACITY and seen is not None and limit is not None
    return Finding(
        code=Code.SLOW_ANSWER,
        severity=Severity.WARNING,
        subject=plan.offer.id,
        observed=f"{seen:.3g} {_UNITS[missed]} {share}" if told else f"the queue grows, {share}",
        expected=f"at most {limit:.3g} s" if told else "",
        action="`rackrate speed --simulate` has the highest load that it takes; rent more machines or a faster card",
    )


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
