"""Cold start of the command line, as a ratio to ``python -c pass``.

Each round runs every command once, one after the other, so that a busy moment of the machine falls
on all of them; the ratio is taken within a round and its median over the rounds is what counts.
Processor time is shown beside it: it hardly feels the neighbours, but counts every thread.
Milliseconds are for orientation only. Run it alone on the machine: ``make bench``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RACKRATE = str(Path(sys.executable).with_name("rackrate"))
BASELINE = "python -c pass"
PLAN = "rackrate plan examples/lora-7b.toml"
COMMANDS = {
    BASELINE: [sys.executable, "-c", "pass"],
    "rackrate --help": [RACKRATE, "--help"],
    PLAN: [RACKRATE, "plan", "examples/lora-7b.toml"],
}
MORE_COMMANDS = {
    "rackrate plan examples/serve-13b.toml": [RACKRATE, "plan", "examples/serve-13b.toml"],
    f"{PLAN} --json": [RACKRATE, "plan", "examples/lora-7b.toml", "--json"],
    "rackrate fit examples/lora-7b.toml": [RACKRATE, "fit", "examples/lora-7b.toml", "--gpu", "a40"],
    "rackrate gpu a40": [RACKRATE, "gpu", "a40"],
    "rackrate offers --gpu a40": [RACKRATE, "offers", "--gpu", "a40"],
    "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "python -c 'import msgspec'": [sys.executable, "-c", "import msgspec"],
}
BUDGET = {"rackrate --help": 5.0, PLAN: 20.0}
"""Most that a command may cost, as a ratio to the baseline: docs/decisions/0001."""


class Run(NamedTuple):
    """Seconds that one run took: on the clock, and of processor time."""

    wall: float
    cpu: float


def run(command: list[str]) -> Run:
    """One run of ``command``, which must succeed, with compiled bytecode as an installed package has it."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, begin = os.times(), time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(wall=wall, cpu=cpu)


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Run]]:
    """The runs of each command, one per round, after a first round that is thrown away."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            taken = run(command)
            if number:
                runs[name].append(taken)
    return runs


def summary(runs: dict[str, list[Run]]) -> list[dict[str, float | str | None]]:
    """One row per command: the median and the quartiles of its ratio within a round, and its processor time.

    Processor time is counted in ticks of about 10 ms, too coarse for one run
    of the baseline: its ratio is that of the sums.
    """
    base = runs[BASELINE]
    rows: list[dict[str, float | str | None]] = []
    for name, taken in runs.items():
        ratios = [mine.wall / its.wall for mine, its in zip(taken, base, strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(
            {
                "command": name,
                "median_ms": round(statistics.median(r.wall for r in taken) * 1000, 1),
                "ratio": round(median, 2),
                "ratio_p25": round(low, 2),
                "ratio_p75": round(high, 2),
                "cpu_ms": round(statistics.fmean(r.cpu for r in taken) * 1000, 1),
                "cpu_ratio": round(sum(r.cpu for r in taken) / max(sum(r.cpu for r in base), 1e-9), 2),
                "budget_ratio": BUDGET.get(name),
            }
        )
    return rows


def table(rows: list[dict[str, float | str | None]]) -> str:
    """The rows for a person."""
    lines = [f"{'command':<42}{'ms':>7}{'ratio':>7}  {'quartiles':<15}{'cpu ms':>7}{'budget':>8}"]
    for row in rows:
        quartiles = f"{row['ratio_p25']} to {row['ratio_p75']}"
        budget = "" if row["budget_ratio"] is None else row["budget_ratio"]
        figures = f"{row['median_ms']:>7}{row['ratio']:>7}  {quartiles:<15}{row['cpu_ms']:>7}"
        lines.append(f"{row['command']:<42}{figures}{budget:>8}{'  OVER' if is_over(row) else ''}")
    return "\n".join(lines)


def is_over(row: dict[str, float | str | None]) -> bool:
    """Whether a command costs more than its budget."""
    budget, ratio = row["budget_ratio"], row["ratio"]
    return isinstance(budget, float) and isinstance(ratio, float) and ratio > budget


def main() -> None:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command (default: 15; at least 2)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--all", action="store_true", help="measure the other verbs and the libraries too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a command is over its budget")
    options = parser.parse_args()
    commands = COMMANDS | (MORE_COMMANDS if options.all else {})
    rows = summary(measure(commands, max(2, options.rounds)))
    if options.json:
        print(json.dumps({"rounds": options.rounds, "python": sys.version.split()[0], "rows": rows}, indent=2))
    else:
        print(table(rows))
    if options.check and any(map(is_over, rows)):
        sys.exit(1)


if __name__ == "__main__":
    main()
