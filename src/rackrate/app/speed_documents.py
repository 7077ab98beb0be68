"""Speeds to documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rackrate.app.card_documents import measured_docs
from rackrate.app.documents import fit_change_docs, span
from rackrate.app.load_documents import load_docs, shared_docs
from rackrate.app.wire.gpus import MeasuredDoc
from rackrate.app.wire.parts import FactDoc, RangeDoc
from rackrate.app.wire.speed import BusyDoc, CardSpeedDoc, EnergyDoc, MachineSpeedDoc, MissedDoc, NodesDoc, PartSpeedDoc
from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.baselines import Baseline
from rackrate.memory.fit_search import Change
from rackrate.plan.answer import NoEstimate, ShapeEstimate
from rackrate.plan.scaling import OnCards, OnNodes, fastest, fewest_that_meet
from rackrate.speed.energy import Energy
from rackrate.speed.estimate_types import ServingSpeed, SpeedEstimate
from rackrate.speed.network import usual_network
from rackrate.speed.roofline import Rates
from rackrate.speed.roofs import PartSpeed
from rackrate.speed.simulation.highest import Targets

Changes = Mapping[int, Sequence[Change]]


def card_doc(
    card: Accelerator, machines: Sequence[OnCards], changes: Changes, figures: Iterable[Baseline], targets: Targets
) -> CardSpeedDoc:
    """One card with its machines; ``changes`` by number of cards would make the work fit.

    ``targets`` are those that a simulated load was held to.
    """
    rates = next((each.roofs.rates for each in machines if each.roofs is not None), None)
    fewest, best = fewest_that_meet(machines), fastest(machines)
    return CardSpeedDoc(
        accelerator=card.id,
        product=card.product,
        computes_in=str(rates.precision) if rates else None,
        roofs=_roof_docs(card, rates) if rates else [],
        powered_flop_per_s=rates.powered_flop_per_s if rates and rates.is_power_known else None,
        measured=_measured(card, rates, machines, figures),
        machines=[_machine(card, each, changes.get(each.shape.gpus, ()), targets) for each in machines],
        fewest_gpus=fewest.shape.gpus if fewest else None,
        fastest_gpus=best.shape.gpus if best else None,
    )


def _roof_docs(card: Accelerator, rates: Rates) -> list[FactDoc]:
    """The published rates of one device that the work is held against, each with its source."""
    values = {
        "bandwidth_bytes_per_s": rates.bandwidth_bytes_per_s,
        f"peak_{rates.precision}_flop_per_s": rates.flop_per_s,
    }
    return [
        FactDoc(
            quantity=name,
            value=value,
            unit=card.facts[name].unit,
            condition=card.facts[name].condition,
            kind=str(card.facts[name].kind),
            source=card.facts[name].source,
            note=card.facts[name].note,
        )
        for name, value in values.items()
    ]


def _measured(
    card: Accelerator, rates: Rates | None, machines: Sequence[OnCards], figures: Iterable[Baseline]
) -> list[MeasuredDoc]:
    """What others measured of the rates that the work meets, on as many cards as are asked for."""
    counts = {1, *(each.shape.gpus for each in machines)}
    product = f"matmul_{rates.precision}" if rates else ""
    return [
        doc
        for doc in measured_docs(card, figures)
        if doc.gpus in counts
        and (doc.quantity.startswith("memory_") or doc.quantity in {product, "allreduce_bus"})
        and doc.quantity != "memory_total"
    ]


def _machine(card: Accelerator, each: OnCards, changes: Sequence[Change], targets: Targets) -> MachineSpeedDoc:
    """One machine; where the work cannot be done, the reason and nothing else."""
    found = each.found
    done = found if isinstance(found, ShapeEstimate) else None
    failed = found if isinstance(found, NoEstimate) else None
    serving = done.speed.serving if done else None
    training = done.speed.training if done else None
    images = done.speed.images if done else None
    ceiling = _ceiling(done.speed) if done else None
    load, most = load_docs(each.load, targets)
    nodes = max((one.nodes for one in each.by_nodes), default=1)
    network = each.network or usual_network(card, each.shape.gpus) if nodes > 1 else None
    return MachineSpeedDoc(
        gpus=each.shape.gpus,
        interconnect=str(card.interconnect(each.shape.gpus)),
        layout=found.layout.label if found.layout else None,
        verdict=str(done.memory.verdict) if done else None,
        tokens_per_s=_span(done.tokens_per_s if done and not images else None),
        images_per_s=_span(images.images_per_s if images else None),
        s_per_image=_span(images.s_per_image if images else None),
        steps_per_s=_span(images.steps_per_s if images else None),
        ceiling_images_per_s=images.ceiling_images_per_s if images else None,
        encode_s=_span(images.encode_s if images else None),
        denoise_s=_span(images.denoise_s if images else None),
        decode_s=_span(images.decode_s if images else None),
        limited_by=str(done.speed.limited_by) if done else None,
        ceiling_tokens_per_s=done.speed.ceiling_tokens_per_s if done else None,
        share_of_ceiling=done.pace.likely / ceiling if done and ceiling else None,
        parts=[_part(part, each.roofs.rates) for part in each.roofs.parts] if each.roofs else [],
        concurrency=serving.concurrency if serving else None,
        first_token_s=_span(serving.first_token_s if serving else None),
        per_user_tokens_per_s=_span(serving.per_user_tokens_per_s if serving else None),
        s_per_output_token=_span(_each_token(serving) if serving else None),
        requests_per_s=_span(serving.requests_per_s if serving else None),
        capacity_requests_per_s=_span(serving.capacity_requests_per_s if serving else None),
        audio_s_per_s=_span(serving.audio_s_per_s if serving else None),
        step_s=_span(training.step_s if training else None),
        checkpoint_s=_span(training.checkpoint_s if training else None),
        pauses_hours=_span(training.pauses_hours if training else None),
        model_flop_utilisation=_span(training.model_flop_utilisation if training else None),
        energy=_energy(each.energy),
        speedup=each.speedup,
        efficiency=each.efficiency,
        work_hours=_span(done.speed.work_hours if done and each.hours else None),
        startup_hours=_span(done.startup_hours if done else None),
        hours=_span(each.hours),
        missed=[MissedDoc(target=str(m.target), observed=m.observed, limit=m.limit, unit=m.unit) for m in each.missed],
        reason=str(failed.reason) if failed else None,
        detail=failed.detail if failed else "",
        changes=fit_change_docs(changes),
        load=load,
        highest_load=most,
        shared=shared_docs(each.shared),
        nodes=nodes,
        network=network.text if network is not None else None,
        by_nodes=tuple(_nodes(one) for one in each.by_nodes),
    )


def _nodes(one: OnNodes) -> NodesDoc:
    done = one.found if isinstance(one.found, ShapeEstimate) else None
    return NodesDoc(
        nodes=one.nodes,
        layout=one.found.layout.label if one.found.layout else None,
        pace=_span(done.pace if done else None),
        speedup=one.speedup,
        meets_targets=one.meets,
        reason=str(one.found.reason) if isinstance(one.found, NoEstimate) else None,
    )


def _ceiling(speed: SpeedEstimate) -> float | None:
    return speed.ceiling_tokens_per_s if speed.images is None else speed.images.ceiling_images_per_s


def _energy(found: Energy | Unknown | None) -> EnergyDoc | None:
    if found is None:
        return None
    if isinstance(found, Unknown):
        return EnergyDoc(
            watts_per_gpu=None, watts=None, wh_per_million_tokens=None, wh_per_image=None, reason=found.reason
        )
    return EnergyDoc(
        watts_per_gpu=span(found.watts_per_gpu),
        watts=span(found.watts),
        wh_per_million_tokens=_span(found.wh_per_million_tokens),
        wh_per_image=_span(found.wh_per_image),
        reason=None,
    )


def _span(value: Range | None) -> RangeDoc | None:
    return None if value is None else span(value)


def _each_token(serving: ServingSpeed) -> Range:
    """Seconds of one output token as its user sees it."""
    return serving.per_user_tokens_per_s.inverse(1.0)


def _part(part: PartSpeed, rates: Rates) -> PartSpeedDoc:
    memory = part.bandwidth_share
    return PartSpeedDoc(
        part=str(part.part),
        tokens_per_s=span(part.tokens_per_s),
        ceiling_tokens_per_s=part.ceiling_tokens_per_s,
        share_of_ceiling=part.share_of_ceiling,
        seconds=span(part.seconds),
        limited_by=str(part.limited_by),
        bandwidth_share=memory,
        bytes_per_s_per_card=None if memory is None else memory * rates.bandwidth_bytes_per_s,
        arithmetic_share=part.arithmetic_share,
        flop_per_s_per_card=part.arithmetic_share * rates.flop_per_s,
        busy=[BusyDoc(resource=str(bound), share=share) for bound, share in part.busy],
    )
