"""One machine under the load of a workload, simulated: what requests meet, and the highest load."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.speed.replica import replica
from rackrate.speed.simulation.highest import Highest, Loads, Targets, highest
from rackrate.speed.simulation.records import Load, Server, Simulated
from rackrate.speed.simulation.run import COUNTED, server, simulate
from rackrate.speed.spread import Phase, inference_spread
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

SEARCHED = 600
"""Requests of each load on the way to the highest one; of the 99th percentile as many as anywhere."""


class UnderLoad(Value, frozen=True, kw_only=True):
    """The load that was asked for, and the highest that meets the targets (services alone).

    Times are at the likely speed. ``spreads`` are the factors less one by which decode, prefill
    and serving may be off either way, as in the closed form.
    """

    asked: Simulated
    highest: Highest | None
    spreads: dict[Phase, float]


def under_load(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, memory: MemoryEstimate
) -> UnderLoad | Unknown:
    """``workload`` on ``layout.gpus`` cards of one machine, or why it is not simulated."""
    serving = workload.serving
    what = server_of(workload, accelerator, layout, engine, memory)
    if isinstance(what, Unknown) or serving is None:
        return what if isinstance(what, Unknown) else Unknown(f"{workload.task} is not simulated")
    load = load_of(serving)
    asked = simulate(what, load)
    if isinstance(asked, Unknown):
        return asked
    loads = Loads(what, load, COUNTED if serving.percentile == 99 else SEARCHED)  # noqa: PLR2004 - the percentile
    return UnderLoad(
        asked=asked,
        highest=highest(loads, targets_of(serving), loads.capacity().requests_per_s) if serving.online else None,
        spreads={phase: inference_spread(phase, engine, accelerator, what.replica) for phase in Phase},
    )


def server_of(
    workload: Workload, accelerator: Accelerator, layout: Layout, engine: Engine, memory: MemoryEstimate
) -> Server | Unknown:
    """What serves ``workload`` on one machine, or why that is not simulated."""
    if workload.serving is None or not workload.model.generates_text:
        return Unknown(f"{workload.task} is not simulated")
    one = replica(workload, accelerator, layout, engine)
    return one if isinstance(one, Unknown) else server(one, engine, workload.serving, memory.cache)


def load_of(serving: Serving) -> Load:
    """The load that was asked for: a rate where one was given, else as many users as requests in flight."""
    return Load(
        prompt_tokens=serving.prompt_tokens,
        output_tokens=serving.output_tokens,
        requests_per_s=serving.requests_per_s,
        users=serving.concurrency if serving.requests_per_s is None else None,
        length_spread=serving.length_spread,
        shared_prefix_tokens=serving.shared_prefix_tokens,
    )


def targets_of(serving: Serving) -> Targets:
    """The latency targets of a service."""
    return Targets(
        percentile=serving.percentile,
        first_token_s=serving.max_first_token_s,
        s_per_output_token=serving.max_s_per_output_token,
    )
