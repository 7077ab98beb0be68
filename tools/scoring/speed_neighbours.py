"""Neighbours: what one measured row says of the others that the same source made on the same machine.

Each row is scored as it stands, and again with its estimate corrected by one other row, in turn by each. A
row counts once, however many neighbours it has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from rackrate.facts.book import FactBook
from rackrate.speed.calibration import shared
from rackrate.values import Value
from scoring.cells import Row
from scoring.memory_rows import NotScored
from scoring.speed import Scored, group_of, scored

SHARES = (0.5, 0.8, 0.9)


class Placed(Value, frozen=True, kw_only=True):
    """A scored row with what it was measured on (``machine``) and what ran there (``work``)."""

    group: str
    machine: tuple[str, ...]
    work: tuple[str, ...]
    times: float
    spread: float


class Neighbours(Value, frozen=True, kw_only=True):
    """Absolute errors of rows of a group before and after a correction, at the shares of ``SHARES``."""

    group: str
    rows: int
    before: tuple[float, ...]
    after: tuple[float, ...]


def placed(rows: Iterable[Row], book: FactBook) -> list[Placed]:
    """Rows that can be scored, each once."""
    found: dict[str, Placed] = {}
    for row in rows:
        try:
            each = scored(row, book)
        except NotScored:
            continue
        found[each.id] = _placed(row, each)
    return list(found.values())


def _placed(row: Row, each: Scored) -> Placed:
    cards = math.prod(max(1, row.whole(name, 1)) for name in ("tp", "pp", "dp"))
    ratio = each.measured / each.predicted.likely
    return Placed(
        group=group_of(each.task, each.engine),
        machine=(each.source, each.gpu, each.engine, row.text("engine_version"), row.text("power_limit_w")),
        work=(row.text("model"), row.text("weight_format"), str(cards)),
        times=ratio if each.slow else 1 / ratio,
        spread=each.predicted.high / each.predicted.likely - 1,
    )


def near(found: Sequence[Placed]) -> list[Neighbours]:
    """The same model and format on as many of the same cards: other batches and lengths."""
    return _compared(found, lambda a, b: a.work == b.work, lambda a: a.times)


def elsewhere(found: Sequence[Placed]) -> list[Neighbours]:
    """Another model, format or number of cards on the same machine."""
    return _compared(found, lambda a, b: a.work != b.work, lambda a: shared(a.times, a.spread))


def _compared(
    found: Sequence[Placed], related: Callable[[Placed, Placed], bool], factor: Callable[[Placed], float]
) -> list[Neighbours]:
    machines: dict[tuple[str, ...], list[Placed]] = defaultdict(list)
    for each in found:
        machines[each.group, *each.machine].append(each)
    errors: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for rows in machines.values():
        for row in rows:
            others = [other for other in rows if other is not row and related(row, other)]
            for other in others:
                after = abs(row.times / factor(other) - 1)
                errors[row.group].append((abs(row.times - 1), after, 1 / len(others)))
    return [
        Neighbours(
            group=group,
            rows=round(sum(weight for _, _, weight in each)),
            before=tuple(_weighted([(e, w) for e, _, w in each], share) for share in SHARES),
            after=tuple(_weighted([(e, w) for _, e, w in each], share) for share in SHARES),
        )
        for group, each in sorted(errors.items())
    ]


def _weighted(values: Sequence[tuple[float, float]], share: float) -> float:
    """The value below which ``share`` of the weights lie."""
    whole, reached = sum(weight for _, weight in values), 0.0
    for value, weight in sorted(values):
        reached += weight
        if reached >= share * whole:
            return value
    return math.nan
