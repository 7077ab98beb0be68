"""Machines: how many of one offer carry a load or meet a deadline, and what each of them gets to do."""

from __future__ import annotations

import math

from rackrate.evidence import Range
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.values import replace
from rackrate.workload.workload import Workload

MACHINES_AT_MOST = 16
"""Machines of one offer that a plan rents at once; more is a cluster, which is another question."""

UTILISATION_AT_MOST = 0.85
"""Share of its capacity that a service is loaded to: beyond, waiting grows without bound (M/M/1: 1 / (1 - load))."""


def machines_for(workload: Workload, speed: SpeedEstimate, startup: Range) -> int:
    """The fewest machines that carry the offered load (service) or meet the deadline (offline inference, images).

    ``speed`` is of one machine given the whole workload, ``startup`` the hours
    of all its starts. Machines are independent replicas, so throughput adds;
    training stays on one machine. A deadline is to be met in 9 of 10 cases;
    where more machines than a plan rents would be needed for that, it is the
    most that a plan rents, and the likely time decides whether that is late.
    """
    serving, deadline = workload.serving, workload.limits.deadline_hours
    if workload.training is not None:
        return 1
    if serving is not None and speed.serving is not None and serving.online:
        capacity = speed.serving.capacity_requests_per_s or speed.serving.requests_per_s
        load = serving.requests_per_s or 0.0
        return max(1, math.ceil(load / (capacity.likely * UTILISATION_AT_MOST) - 1e-9))
    if deadline is None or speed.work_hours is None:
        return 1
    left = deadline - startup.high
    needed = speed.work_hours.high / left if left > 0 else math.inf
    return math.ceil(max(1, min(needed, MACHINES_AT_MOST)))


def per_machine(workload: Workload, machines: int) -> Workload:
    """What each of ``machines`` gets of an inference workload: its part of the load, the requests or the images."""
    serving, images = workload.serving, workload.images
    if images is not None:
        return replace(workload, images=replace(images, count=images.count / machines))
    if serving is None or machines == 1:
        return workload
    part = replace(
        serving,
        concurrency=math.ceil(serving.concurrency / machines) if serving.online else serving.concurrency,
        requests_per_s=None if serving.requests_per_s is None else serving.requests_per_s / machines,
        requests=None if serving.requests is None else serving.requests / machines,
    )
    return replace(workload, serving=part)
