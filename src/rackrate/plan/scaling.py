"""Scaling: one machine with few or many cards, each given the whole work; whether more are faster, and how many do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, Reason, ShapeEstimate
from rackrate.plan.filters import lacking_arithmetic, reads_cache, runs_on
from rackrate.plan.machines import UTILISATION_AT_MOST
from rackrate.plan.pricing import finish_hours
from rackrate.plan.shapes import Estimator, missed_latencies
from rackrate.plan.sharing import SharedCard
from rackrate.speed.energy import Energy, energy
from rackrate.speed.roofs import Roofs, roofs
from rackrate.speed.simulation.machine import UnderLoad
from rackrate.values import Value, replace
from rackrate.workload.network import Network
from rackrate.workload.workload import Workload


class Target(StrEnum):
    """What a machine may be held to."""

    DEADLINE = "deadline"
    LATENCY = "latency"
    LOAD = "load"


class Missed(Value, frozen=True, kw_only=True):
    """A target that the likely value misses."""

    target: Target
    observed: float
    limit: float
    unit: str


class OnNodes(Value, frozen=True, kw_only=True):
    """What ``nodes`` machines of equally many cards do with the whole work.

    ``speedup`` is over one machine alone, or the fewest machines that do the
    work (None: so many do not); ``meets``: no target is missed.
    """

    nodes: int
    found: ShapeEstimate | NoEstimate
    speedup: float | None = None
    meets: bool = False


class OnCards(Value, frozen=True, kw_only=True):
    """What one machine of some cards does with the whole work.

    ``speedup`` is tokens per second (under an offered load: the capacity in
    requests) over those of the fewest cards that do the work at all,
    ``efficiency`` that over the ratio of the cards (1: each card adds its full
    share); ``energy`` while it works (``None``: it does not); ``hours`` until
    the work is finished, start-up included, where it ends. ``load``: what requests
    meet, where that was simulated; ``missed`` is then held against it, and ``shared`` has
    the ways in which several programs serve the same users on one card.
    ``by_nodes``: where several machines share the work, what fewer of them do,
    and the ``network`` that was named.
    """

    shape: MachineShape
    found: ShapeEstimate | NoEstimate
    roofs: Roofs | None = None
    energy: Energy | Unknown | None = None
    hours: Range | None = None
    missed: tuple[Missed, ...] = ()
    speedup: float | None = None
    efficiency: float | None = None
    load: UnderLoad | Unknown | None = None
    shared: tuple[SharedCard, ...] = ()
    by_nodes: tuple[OnNodes, ...] = ()
    network: Network | None = None


def on_cards(estimator: Estimator, card: Accelerator, counts: Iterable[int]) -> tuple[OnCards, ...]:
    """The work on one machine for each of ``counts`` of ``card``, fewest first."""
    found = [_on(estimator, card, gpus) for gpus in sorted(set(counts))]
    if nodes_of(estimator.question.workload) > 1:
        named = estimator.question.workload.parallel
        network = named.network if named is not None else None
        found = [replace(each, by_nodes=on_nodes(estimator, card, each), network=network) for each in found]
    first = next((each for each in found if isinstance(each.found, ShapeEstimate)), None)
    serving = estimator.question.workload.serving
    loaded = serving is not None and serving.requests_per_s is not None
    return tuple(_compared(each, first, loaded=loaded) for each in found) if first else tuple(found)


def nodes_of(workload: Workload) -> int:
    """Machines that share the work."""
    return workload.parallel.nodes if workload.parallel is not None else 1


def on_nodes(estimator: Estimator, card: Accelerator, most: OnCards) -> tuple[OnNodes, ...]:
    """The work on 1, 2, 4 and so on machines, up to as many as were asked for, which ``most`` has already."""
    question = estimator.question
    asked = question.workload.parallel
    assert asked is not None
    tried: list[OnNodes] = []
    for nodes in (*_doubled(asked.nodes), asked.nodes):
        each = most
        if nodes < asked.nodes:
            work = replace(question.workload, parallel=replace(asked, nodes=nodes))
            each = _on(Estimator(replace(question, workload=work)), card, most.shape.gpus)
        meets = isinstance(each.found, ShapeEstimate) and not each.missed
        tried.append(OnNodes(nodes=nodes, found=each.found, meets=meets))
    first = next((one.found for one in tried if isinstance(one.found, ShapeEstimate)), None)
    serving = question.workload.serving
    loaded = serving is not None and serving.requests_per_s is not None
    return tuple(
        replace(one, speedup=compared_rate(one.found, loaded=loaded) / compared_rate(first, loaded=loaded))
        if first is not None and isinstance(one.found, ShapeEstimate)
        else one
        for one in tried
    )


def _doubled(end: int) -> Iterable[int]:
    """1, 2, 4 and so on, below ``end``."""
    return (2**power for power in range((end - 1).bit_length()))


def fewest_that_meet(found: Sequence[OnCards]) -> OnCards | None:
    """The fewest cards that do the work and miss no target."""
    return next((each for each in found if isinstance(each.found, ShapeEstimate) and not each.missed), None)


def fastest(found: Sequence[OnCards]) -> OnCards | None:
    """The highest speed; of equals the fewest cards."""
    able = [each for each in found if each.speedup is not None]
    return max(able, key=lambda each: each.speedup or 0.0) if able else None


def _on(estimator: Estimator, card: Accelerator, gpus: int) -> OnCards:
    shape = MachineShape(accelerator=card.id, gpus=gpus, bridged=True)
    found = _unable(estimator, card, shape) or estimator.alone(shape)
    if isinstance(found, NoEstimate):
        return OnCards(shape=shape, found=found)
    question = estimator.question
    beside = roofs(question.workload, card, found.layout, question.engine, found.speed)
    return OnCards(
        shape=shape,
        found=found,
        roofs=None if isinstance(beside, Unknown) else beside,
        energy=energy(question.workload, card, found.layout, question.engine, found.speed),
        hours=None if found.speed.work_hours is None or question.workload.is_service else finish_hours(found),
        missed=tuple(_missed(estimator, found)),
    )


def _unable(estimator: Estimator, card: Accelerator, shape: MachineShape) -> NoEstimate | None:
    """Why the card cannot do the work in any number, if so."""
    work, engine = estimator.question.workload, estimator.question.engine
    nothing = NoEstimate(shape=shape, reason=Reason.ENGINE_UNSUPPORTED, observed=0, limit=0, unit="")
    if not runs_on(engine, card):
        return replace(nothing, detail=f"{engine.title} does not run on {card.id}")
    if not reads_cache(work, card):
        return replace(nothing, detail=f"{engine.title} does not keep such a cache on {card.id}")
    if lacking_arithmetic(work, card) is not None:
        return replace(nothing, reason=Reason.ARITHMETIC, detail=f"{card.id} does not multiply in {work.precision}")
    return None


def _missed(estimator: Estimator, found: ShapeEstimate) -> Iterable[Missed]:
    """The targets of the question that the likely values miss."""
    work, speed = estimator.question.workload, found.speed
    for late in missed_latencies(work, speed):
        yield Missed(target=Target.LATENCY, observed=late.seen, limit=late.limit, unit=late.unit)
    deadline = work.limits.deadline_hours
    if deadline is not None and not work.is_service and speed.work_hours is not None:
        hours = finish_hours(found).likely
        if hours > deadline:
            yield Missed(target=Target.DEADLINE, observed=hours, limit=deadline, unit="hours")
    if work.serving is not None and work.serving.requests_per_s and speed.serving is not None:
        capacity = (speed.serving.capacity_requests_per_s or speed.serving.requests_per_s).likely * UTILISATION_AT_MOST
        if capacity < work.serving.requests_per_s:
            yield Missed(target=Target.LOAD, observed=capacity, limit=work.serving.requests_per_s, unit="requests/s")


def _compared(each: OnCards, first: OnCards, *, loaded: bool) -> OnCards:
    if not isinstance(each.found, ShapeEstimate) or not isinstance(first.found, ShapeEstimate):
        return each
    speedup = compared_rate(each.found, loaded=loaded) / compared_rate(first.found, loaded=loaded)
    return replace(each, speedup=speedup, efficiency=speedup * first.shape.gpus / each.shape.gpus)


def compared_rate(found: ShapeEstimate, *, loaded: bool) -> float:
    """What grows with cards: tokens or images per second, or the capacity of a service whose load is given."""
    serving = found.speed.serving
    if loaded and serving is not None and serving.capacity_requests_per_s is not None:
        return serving.capacity_requests_per_s.likely
    return found.pace.likely
