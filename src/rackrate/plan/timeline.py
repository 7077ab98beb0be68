"""Timelines: what one machine does on the meter, for a job or a service."""

from __future__ import annotations

import math
from decimal import Decimal

from rackrate.cost.usage import Usage
from rackrate.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from rackrate.workload.decide import download_bytes
from rackrate.workload.workload import Use, Workload

_SECONDS_PER_DAY = int(SECONDS_PER_HOUR * HOURS_PER_DAY)


def usage_of(workload: Workload, work_hours: float, startup_hours: float, machines: int) -> Usage:
    """The timeline of each of ``machines``; every start pays boot, image and model download again.

    A job's work is divided over ``use.starts`` sessions. A service that runs
    all day starts once; one that rests starts each day, its disks kept between.
    """
    use = workload.use
    runs = _service_runs(use, startup_hours) if workload.is_service else _job_runs(use, work_hours, startup_hours)
    model = download_bytes(workload.model, workload.weights, workload.task) * len(runs)
    return Usage(
        run_seconds=runs,
        stopped_seconds=_stopped(workload, runs),
        disk_bytes=Decimal(round(use.disk_bytes)),
        data_in_bytes=Decimal(round(use.data_in_bytes / machines + model)),
        data_out_bytes=Decimal(round(use.data_out_bytes / machines)),
    )


def _job_runs(use: Use, work_hours: float, startup_hours: float) -> tuple[Decimal, ...]:
    seconds = math.ceil((startup_hours + work_hours / use.starts) * SECONDS_PER_HOUR)
    return (Decimal(seconds),) * use.starts


def _service_runs(use: Use, startup_hours: float) -> tuple[Decimal, ...]:
    if use.hours_per_day >= HOURS_PER_DAY:
        return (Decimal(round(use.horizon_days * _SECONDS_PER_DAY)),)
    each = min(use.hours_per_day + startup_hours, HOURS_PER_DAY)
    return (Decimal(math.ceil(each * SECONDS_PER_HOUR)),) * max(1, round(use.horizon_days))


def _stopped(workload: Workload, runs: tuple[Decimal, ...]) -> Decimal:
    """Seconds for which disks are kept without running."""
    use = workload.use
    if not workload.is_service:
        return Decimal(round(use.keep_disk_days * _SECONDS_PER_DAY))
    whole = Decimal(round(use.horizon_days * _SECONDS_PER_DAY))
    return max(Decimal(0), whole - sum(runs, Decimal(0)))
