"""How much processor time a simulated load takes, and the memory it needs.

    python bench/serving.py [ROUNDS]

Llama 3 8B, requests of 1,024 + 128 tokens on one card, of which 1,000 count: a closed loop, an open loop at
three quarters of the capacity, the same with lengths that differ, and the search for the highest load.
"""

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from rackrate.app.asking import read_workload
from rackrate.app.context import context
from rackrate.evidence import known
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.speed.replica import replica
from rackrate.speed.simulation.highest import Loads, Targets, highest
from rackrate.speed.simulation.records import Load, Server
from rackrate.speed.simulation.run import server, simulate
from rackrate.values import replace
from rackrate.workload.layout import Layout

NEWEST = date(2026, 11, 30)
CARD, MODEL = "a100-sxm4-80", "meta-llama/Meta-Llama-3-8B"
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
LOAD = Load(prompt_tokens=1024, output_tokens=128, users=32)


class Row(NamedTuple):
    """Milliseconds of processor time of one piece of work, requests a second of it, and mebibytes at its peak."""

    engine: str
    work: str
    ms: float
    requests_per_s: float
    mib: float


def machine(engine: str) -> Server:
    """One card with the model in ``engine``."""
    here = context(NEWEST)
    flags = {"model": MODEL, "task": "inference", "engine": engine, "serving.concurrency": 32}
    workload = read_workload(None, flags, here.book).workload
    card, found = here.book.accelerators[CARD], here.book.engine(engine)
    memory = known(estimate_memory(workload, card, Layout(), found))
    assert workload.serving is not None
    return known(server(known(replica(workload, card, Layout(), found)), found, workload.serving, memory.cache))


def measure(engine: str, rounds: int) -> list[Row]:
    """The rows of one engine."""
    what = machine(engine)
    loads = Loads(what, LOAD, 600)
    capacity = loads.capacity().requests_per_s
    busy = {"requests_per_s": 0.75 * capacity, "users": None}
    work: dict[str, tuple[int, Callable[[], object]]] = {
        "32 users": (1000, lambda: simulate(what, LOAD)),
        "0.75 of the capacity": (1000, lambda: simulate(what, replace(LOAD, **busy))),
        "the same, lengths differ": (1000, lambda: simulate(what, replace(LOAD, length_spread=1.0, **busy))),
        "highest load at p90": (0, lambda: _search(what)),
    }
    return [_row(engine, name, count, do, rounds) for name, (count, do) in work.items()]


def _search(what: Server) -> object:
    loads = Loads(what, LOAD, 600)
    return highest(loads, Targets(percentile=90, first_token_s=0.5), loads.capacity().requests_per_s)


def _row(engine: str, name: str, count: int, do: Callable[[], object], rounds: int) -> Row:
    taken = []
    for _ in range(rounds):
        begin = time.process_time()
        do()
        taken.append(time.process_time() - begin)
    tracemalloc.start()
    do()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = statistics.median(taken)
    return Row(engine, name, 1000 * seconds, count / seconds, peak / 2**20)


def main(rounds: str = "7") -> list[Row]:
    """Measure and print."""
    rows = [row for engine in ENGINES for row in measure(engine, int(rounds))]
    for row in rows:
        rate = f"{row.requests_per_s:,.0f} requests/s" if row.requests_per_s else ""
        print(f"{row.engine:<14}{row.work:<26}{row.ms:>7.0f} ms  {row.mib:>5.1f} MiB  {rate}")
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:])
