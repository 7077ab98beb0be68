"""Timelines: what one machine does on the meter, for a job or a service."""

from __future__ import annotations

import math
from decimal import Decimal

from rackrate.cost.usage import Usage
from rackrate.units import HOURS_PER_DAY, SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.decide_use import download_bytes
from rackrate.workload.workload import Use, Workload

_SECONDS_PER_DAY = int(SECONDS_PER_HOUR * HOURS_PER_DAY)


class Startup(Value, frozen=True):
    """Hours from power-on until work begins, at the first start of a machine and at each later one."""

    first_hours: float
    later_hours: float


def usage_of(workload: Workload, work_hours: float, startup: Startup, machines: int) -> Usage:
    """The timeline of each of ``machines``; every start pays boot, image and model download again, own data come once.

    A job's work is divided over ``use.starts`` sessions. A service that runs
    all day starts once; one that rests starts each day, its disks kept between.
    """
    use = workload.use
    runs = _service_runs(use, startup) if workload.is_service else _job_runs(use, work_hours, startup)
    model = download_bytes(workload.model, workload.weights, workload.task) * len(runs) * machines
    paused, kept = _paused(workload, runs), Decimal(round(use.keep_disk_days * _SECONDS_PER_DAY))
    return Usage(
        run_seconds=runs,
        stopped_seconds=paused + kept,
        kept_seconds=kept,
        disk_bytes=Decimal(round(use.disk_bytes)),
        data_in_bytes=Decimal(round(use.data_in_bytes + model)),
        data_out_bytes=Decimal(round(use.data_out_bytes)),
    )


def starts_by_kind(workload: Workload) -> tuple[int, ...]:
    """How many starts of one length follow each other: the first, the later ones, and what is left of a day."""
    if not workload.is_service:
        counts = (1, workload.use.starts - 1, 0)
    elif workload.use.hours_per_day >= HOURS_PER_DAY:
        counts = (1, 0, 0)
    else:
        days, rest = _days(workload.use)
        counts = (min(days, 1), max(days - 1, 0), 1 if rest else 0)
    return tuple(count for count in counts if count)


def _days(use: Use) -> tuple[int, float]:
    """Whole days of the horizon, and the part of a day that is left."""
    days = math.floor(use.horizon_days)
    return days, use.horizon_days - days


def _job_runs(use: Use, work_hours: float, startup: Startup) -> tuple[Decimal, ...]:
    hours = work_hours / use.starts
    return (_seconds(startup.first_hours + hours), *(_seconds(startup.later_hours + hours),) * (use.starts - 1))


def _service_runs(use: Use, startup: Startup) -> tuple[Decimal, ...]:
    if use.hours_per_day >= HOURS_PER_DAY:
        return (Decimal(round(use.horizon_days * _SECONDS_PER_DAY)),)
    days, rest = _days(use)
    parts = [1.0] * days + ([rest] if rest else [])
    startups = [startup.first_hours, *[startup.later_hours] * (len(parts) - 1)]
    return tuple(_day_run(use, part, hours) for part, hours in zip(parts, startups, strict=True))


def _day_run(use: Use, part: float, startup_hours: float) -> Decimal:
    """Seconds of the run of a day, or of a ``part`` of one, which is over when it is over."""
    return _seconds(min(use.hours_per_day * part + startup_hours, HOURS_PER_DAY * part))


def _seconds(hours: float) -> Decimal:
    return Decimal(math.ceil(hours * SECONDS_PER_HOUR))


def _paused(workload: Workload, runs: tuple[Decimal, ...]) -> Decimal:
    """Seconds between the runs of a service, for which its disks are kept."""
    if not workload.is_service:
        return Decimal(0)
    whole = Decimal(round(workload.use.horizon_days * _SECONDS_PER_DAY))
    return max(Decimal(0), whole - sum(runs, Decimal(0)))
