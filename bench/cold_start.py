"""Cold start of the command line, as a ratio to ``python -c pass``.

Each round runs every command once, one after the other, so that a busy moment of the machine falls
on all of them; the ratio is taken within a round and its median over the rounds is what counts.
Milliseconds are shown for orientation only. Run it alone on the machine: ``make bench``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RACKRATE = str(Path(sys.executable).with_name("rackrate"))
BASELINE = "python -c pass"
COMMANDS = {
    BASELINE: [sys.executable, "-c", "pass"],
    "rackrate --help": [RACKRATE, "--help"],
    "rackrate plan examples/lora-7b.toml": [RACKRATE, "plan", "examples/lora-7b.toml"],
}
BUDGET = {"rackrate plan examples/lora-7b.toml": 20.0}  # docs/decisions/0001


def seconds(command: list[str]) -> float:
    """Wall time in seconds of one run of ``command``, which must succeed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def measure(rounds: int) -> dict[str, list[float]]:
    """Wall times in seconds of each command, one per round, after a first round that is thrown away."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, command in COMMANDS.items():
            taken = seconds(command)
            if number:
                times[name].append(taken)
    return times


def summary(times: dict[str, list[float]]) -> list[dict[str, float | str | None]]:
    """One row per command: median milliseconds, and the quartiles of the ratio within a round."""
    rows: list[dict[str, float | str | None]] = []
    for name, taken in times.items():
        ratios = [mine / base for mine, base in zip(taken, times[BASELINE], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(
            {
                "command": name,
                "median_ms": round(statistics.median(taken) * 1000, 1),
                "ratio": round(median, 2),
                "ratio_p25": round(low, 2),
                "ratio_p75": round(high, 2),
                "budget_ratio": BUDGET.get(name),
            }
        )
    return rows


def main() -> None:
    """Measure and print, as a table or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command (default: 15; at least 2)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    rows = summary(measure(max(2, options.rounds)))
    if options.json:
        print(json.dumps({"rounds": options.rounds, "python": sys.version.split()[0], "rows": rows}, indent=2))
        return
    print(f"{'command':<38}{'ms':>8}{'ratio':>8}  {'quartiles':<14}{'budget':>8}")
    for row in rows:
        quartiles = f"{row['ratio_p25']} to {row['ratio_p75']}"
        budget = row["budget_ratio"] or ""
        print(f"{row['command']:<38}{row['median_ms']:>8}{row['ratio']:>8}  {quartiles:<14}{budget:>8}")


if __name__ == "__main__":
    main()
