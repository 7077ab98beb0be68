"""Plans over synthetic price lists of a thousand to a million offers, warm and cold, and the bare query beside.

    python bench/scale.py [--rounds N] [--json] [SIZE ...]

Warm: in one process, the file of columns open. "Anew" estimates memory and speed of every shape first, as
for each new workload; "again" keeps these estimates, as for the same workload ranked another way.
"Ranked" is of "again" the part up to the 20 best, priced exactly, with the counts of what each rule
leaves out; the whole answer adds the frontier and, for each rule, the nearest miss. Cold: a process of its
own from the start of Python to the printed answer, with its peak of resident memory. The bare query is
that of ``bench/bare.py``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

WORK = ROOT / "build" / "bench"
SIZES = (1_000, 100_000, 1_000_000)
WORKLOADS = ("lora-7b", "serve-13b")
NEWEST = date(2026, 11, 30)
MIB = 1024


class Warm(NamedTuple):
    """Milliseconds of a plan in a process that runs already."""

    size: int
    workload: str
    lots: int
    shapes: int
    anew_ms: float
    again_ms: float
    ranked_ms: float


class Cold(NamedTuple):
    """One command in a process of its own: milliseconds, as a ratio to ``python -c pass``, and peak memory."""

    size: int
    what: str
    wall_ms: float
    cpu_ms: float
    ratio: float
    peak_mib: float


class Bare(NamedTuple):
    """Milliseconds of the bare query in a process that runs already."""

    size: int
    what: str
    warm_ms: float


def prepare(sizes: list[int]) -> None:
    """Write the price lists: a file of columns for the planner, arrays and Parquet for the bare query."""
    from bench.bare import prepare as prepare_bare
    from bench.offers import generate, places_of

    from rackrate.app.context import context
    from rackrate.offers import column_file

    here = context(NEWEST)
    bundled = here.catalog.table.records()
    for size in sizes:
        texts = generate(size, here.book, bundled)
        folder = WORK / str(size)
        folder.mkdir(parents=True, exist_ok=True)
        column_file.write(folder / "offers.columns", texts, places_of(bundled), here.book)
        prepare_bare(texts, folder)


def warm(size: int, name: str, rounds: int) -> Warm:
    """Measured in this process."""
    from rackrate.app.asking import read_workload
    from rackrate.app.long_lists import context_over
    from rackrate.plan.answer import Rank
    from rackrate.plan.planner import plan
    from rackrate.plan.possible import searched
    from rackrate.plan.question import Question
    from rackrate.plan.reasons import counts_of
    from rackrate.plan.shapes import Estimator

    here = context_over(WORK / str(size) / "offers.columns", NEWEST)
    workload = read_workload(ROOT / "examples" / f"{name}.toml", {}, here.book).workload
    question = Question(
        workload=workload,
        engine=here.book.engine(workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency="USD",
        rank=Rank.COST,
        limit=20,
    )
    estimator = Estimator(question)
    plan(question, estimator)

    def ranked() -> None:
        search, excluded = searched(question, estimator)
        counts_of(question, excluded, search)
        search.best(question.limit)

    each = (lambda: plan(question), lambda: plan(question, estimator), ranked)
    taken: list[list[float]] = [[] for _ in each]
    for _ in range(rounds):
        for do, times in zip(each, taken, strict=True):
            begin = time.perf_counter()
            do()
            times.append(time.perf_counter() - begin)
    shapes = len({shape for shapes in question.offers.shape_sets for shape in shapes})
    return Warm(size, name, len(question.offers), shapes, *(statistics.median(times) * 1000 for times in taken))


class _Run(NamedTuple):
    wall: float
    cpu: float
    peak_mib: float


def run(command: list[str]) -> _Run:
    """One process, which must succeed: seconds on the clock and of processor time, and its peak memory."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    per_mib = MIB if sys.platform != "darwin" else MIB * MIB
    return _Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / per_mib)


def cold(sizes: list[int], rounds: int) -> list[Cold]:
    """Every command once a round, one after the other, after a first round that is thrown away."""
    base = "python -c pass"
    commands = {(0, base): [sys.executable, "-c", "pass"]}
    for size in sizes:
        folder = f"build/bench/{size}"
        for name in WORKLOADS:
            plan_it = ["bench/one_plan.py", f"{folder}/offers.columns", f"examples/{name}.toml"]
            commands[size, f"plan {name}"] = [sys.executable, *plan_it]
        for kind in ("numpy", "duckdb"):
            commands[size, f"bare query, {kind}"] = [sys.executable, "bench/bare.py", kind, folder]
    runs: dict[tuple[int, str], list[_Run]] = {key: [] for key in commands}
    for number in range(rounds + 1):
        for key, command in commands.items():
            taken = run(command)
            if number:
                runs[key].append(taken)
    passes = runs.pop((0, base))
    return [_cold(*key, taken, passes) for key, taken in runs.items()]


def _cold(size: int, what: str, taken: list[_Run], passes: list[_Run]) -> Cold:
    ratios = [mine.wall / its.wall for mine, its in zip(taken, passes, strict=True)]
    wall, cpu = (statistics.median(getattr(r, name) for r in taken) * 1000 for name in ("wall", "cpu"))
    return Cold(size, what, wall, cpu, statistics.median(ratios), max(r.peak_mib for r in taken))


def bare(size: int, kind: str, rounds: int) -> Bare:
    """The warm bare query, in a process of its own."""
    command = [sys.executable, "bench/bare.py", kind, f"build/bench/{size}", str(rounds)]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return Bare(size, kind, float(said))


def measure(sizes: list[int], rounds: int) -> tuple[list[Warm], list[Cold], list[Bare]]:
    """Everything, each size prepared first."""
    prepared = [sys.executable, "bench/scale.py", "--prepare", *map(str, sizes)]
    subprocess.run(
        prepared, cwd=ROOT, check=True
    )  # in its own process: a child's peak memory is not below its parent's
    warms = [_in_its_own_process(size, name, rounds) for size in sizes for name in WORKLOADS]
    bares = [bare(size, kind, rounds) for size in sizes for kind in ("numpy", "duckdb")]
    return warms, cold(sizes, rounds), bares


def _in_its_own_process(size: int, name: str, rounds: int) -> Warm:
    command = [sys.executable, "bench/scale.py", "--warm", name, "--rounds", str(rounds), str(size)]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return Warm(*json.loads(said))


def main() -> None:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), help="numbers of offers")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each (default: 9)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--prepare", action="store_true", help="only write the price lists")
    parser.add_argument("--warm", metavar="WORKLOAD", help="only the warm plan of one size, as JSON")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.sizes)
        return
    if options.warm:
        print(json.dumps(warm(options.sizes[0], options.warm, options.rounds)))
        return
    warms, colds, bares = measure(options.sizes, options.rounds)
    if options.json:
        print(json.dumps([[row._asdict() for row in rows] for rows in (warms, colds, bares)], indent=2))
        return
    for row in warms:
        times = f"{row.anew_ms:.1f} ms anew, {row.again_ms:.1f} ms again, {row.ranked_ms:.1f} ms ranked"
        print(f"{row.size:>9,} offers in {row.lots:,} lots, {row.shapes} shapes, {row.workload}: {times}")
    for each in bares:
        print(f"{each.size:>9,} offers, bare query, {each.what}: {each.warm_ms:.1f} ms warm")
    for one in colds:
        figures = f"{one.wall_ms:.0f} ms cold ({one.ratio:.1f} x python -c pass), {one.cpu_ms:.0f} ms of processor"
        print(f"{one.size:>9,} offers, {one.what}: {figures}, {one.peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
