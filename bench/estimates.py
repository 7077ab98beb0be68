"""How many estimates of memory and speed there are in a second, one machine shape each.

    python bench/estimates.py [ROUNDS]

For each example workload: every shape of the bundled price list in its best layout (memory, speed,
startup, number of machines), and of one shape the memory estimate and the speed estimate alone.
"""

import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from rackrate.app.asking import read_workload
from rackrate.app.context import context
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.plan.answer import Rank, ShapeEstimate
from rackrate.plan.question import Question
from rackrate.plan.shapes import Estimator
from rackrate.speed.estimate import estimate as estimate_speed

ROOT = Path(__file__).parents[1]
NEWEST = date(2026, 11, 30)
WORKLOADS = ("lora-7b", "serve-13b")
ONE_FOR = 0.2
"""Seconds for which one estimate is repeated."""


class Row(NamedTuple):
    """Estimates in a second."""

    workload: str
    shapes: int
    shapes_per_s: float
    memory_per_s: float
    speed_per_s: float


def measure(name: str, rounds: int) -> Row:
    """The rates for one example workload."""
    here = context(NEWEST)
    workload = read_workload(ROOT / "examples" / f"{name}.toml", {}, here.book).workload
    question = Question(
        workload=workload,
        engine=here.book.engine(workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency="USD",
        rank=Rank.COST,
    )
    shapes = sorted({s for shapes in question.offers.shape_sets for s in shapes}, key=str)
    taken = []
    for _ in range(rounds):
        estimator, begin = Estimator(question), time.perf_counter()
        found = [estimator.outcome(shape) for shape in shapes]
        taken.append(time.perf_counter() - begin)
    one = next(outcome for outcome in found if isinstance(outcome, ShapeEstimate))
    card, layout, engine = here.book.accelerators[one.shape.accelerator], one.layout, question.engine
    return Row(
        name,
        len(shapes),
        len(shapes) / statistics.median(taken),
        _per_s(lambda: estimate_memory(workload, card, layout, engine)),
        _per_s(lambda: estimate_speed(workload, card, layout, engine, one.memory)),
    )


def _per_s(do: Callable[[], object]) -> float:
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < ONE_FOR:
        do()
        count += 1
    return count / (time.perf_counter() - begin)


def main(rounds: str = "7") -> list[Row]:
    """Measure and print."""
    rows = [measure(name, int(rounds)) for name in WORKLOADS]
    for row in rows:
        print(
            f"{row.workload:<12}{row.shapes:>5} shapes: {row.shapes_per_s:,.0f} shapes/s,"
            f" {row.memory_per_s:,.0f} memory estimates/s, {row.speed_per_s:,.0f} speed estimates/s"
        )
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:])
