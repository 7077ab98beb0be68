"""Usage: the timeline of a rented machine, from which charges are computed."""

from __future__ import annotations

from decimal import Decimal

from rackrate.values import Value


class Usage(Value, frozen=True, kw_only=True):
    """What a machine does on the meter.

    ``run_seconds`` is one entry per start: the seconds from power-on to
    power-off (boot, image and model download included). ``stopped_seconds`` is
    the time in between and after, while disks exist; ``kept_seconds`` of them
    come after the last run. Sizes are decimal bytes; ``disk_bytes`` is of one
    machine, the data of all that are rented for the work.
    """

    run_seconds: tuple[Decimal, ...]
    stopped_seconds: Decimal = Decimal(0)
    kept_seconds: Decimal = Decimal(0)
    disk_bytes: Decimal = Decimal(0)
    data_in_bytes: Decimal = Decimal(0)
    data_out_bytes: Decimal = Decimal(0)

    @property
    def running_seconds(self) -> Decimal:
        """All seconds on the meter before rounding and minimum."""
        return sum(self.run_seconds, Decimal(0))

    @property
    def paused_seconds(self) -> Decimal:
        """The seconds stopped between the first start and the last stop."""
        return self.stopped_seconds - self.kept_seconds
