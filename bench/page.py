"""Everything that is measured, as the page docs/performance.md; ``make bench``.

    python bench/page.py [--rounds N] [--check]

Run it alone on the machine: the page says how busy it was.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench import cold_start, scale  # noqa: E402 - the scripts are no package

PAGE = ROOT / "docs" / "performance.md"

INTRODUCTION = """# Performance

What rackrate takes to start, to plan over long price lists and to estimate one machine. Written by
`make bench`; milliseconds are of the machine below, ratios hardly are.
"""

SCALE = """## Plans over long price lists

`python bench/scale.py`: synthetic offers (`bench/offers.py`, seed 1: cards, sellers, billing rules and
price levels of the bundled list; half machine types of clouds, half hosts of marketplaces), as a file of
columns ([decision 0013](decisions/0013-column-files.md)). Offers that differ in price alone are
one lot, and what a plan costs beside a fixed part follows the lots.

Warm: the file is open. *Anew* estimates memory and speed of every machine shape first, as for each new
workload; *again* keeps those estimates. *Ranked* is the part of *again* up to the 20 best by exact cost,
with the count of offers that each rule leaves out; the rest is the frontier and each rule's nearest miss.
The workloads are `examples/lora-7b.toml` (a budget and a deadline) and `examples/serve-13b.toml` (latency
targets).
"""

BARE = """### The bare query beside it

`python bench/bare.py`: eight cards on demand in six regions, the 20 cheapest per card and hour, over the
same offers: in numpy over columns of codes, in DuckDB over Parquet. No memory, speed, bill or reasons.
"""

COLD = """### Cold

One process from the start of Python to the printed answer (`python bench/one_plan.py FILE WORKLOAD`,
`python bench/bare.py KIND FOLDER`), its processor time, and its peak of resident memory.
"""

ESTIMATES = """## Estimates

`python bench/estimates.py`: every machine shape of the bundled list in its best layout, and of one shape
the memory estimate and the speed estimate alone.
"""

LOADS = """## Simulated loads

`python bench/serving.py`: Llama 3 8B on one A100, requests of 1,024 + 128 tokens, 1,000 of which count
([how](serving-load.md)). The search for the highest load runs several simulations of 600. Processor time, and the
most that Python allocated.
"""

SIMULATIONS = """## Simulations

`python bench/simulate.py`: two training steps of transformers' own code without a GPU
([how](how-to/simulate.md)), beside the closed form's likely peak of what the framework allocates. One sequence
a step, 16 bits throughout (adapters of rank 16 on every linear layer, in FP32). Seconds are of one simulation; the
start of PyTorch comes on top. Each model runs in a process of its own.
"""


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table, numbers to the right."""
    marks = ["---:" if cell[:1].isdigit() else "---" for cell in rows[0]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *rows)) + "\n"


def machine(load: float, rounds: int) -> str:
    """What the figures were measured on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "msgspec", "click", "rich", "duckdb"))
    return (
        f"Measured {datetime.now(UTC).date()}: {processor()}, {cores} cores, {platform.system()};"
        f" Python {platform.python_version()}, {libraries}.\n{rounds} rounds, medians. Processes that ran or"
        f" waited in the minute before: {load:.1f}.\n"
    )


def processor() -> str:
    """The processor's name where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def start_section(rounds: int) -> tuple[str, bool]:
    """Cold starts as ratios, and whether all are within their budgets."""
    rows = cold_start.summary(cold_start.measure(cold_start.COMMANDS | cold_start.MORE_COMMANDS, rounds))
    cells = [
        [
            f"`{row['command']}`",
            f"{row['ratio']:.1f}",
            f"{row['ratio_p25']:.1f} to {row['ratio_p75']:.1f}",
            f"{row['cpu_ratio']:.1f}",
            f"{row['median_ms']:.0f}",
            "" if row["budget_ratio"] is None else f"{row['budget_ratio']:g}",
        ]
        for row in rows
    ]
    header = ["command", "ratio", "quartiles", "of processor time", "ms", "budget"]
    text = "## Cold start\n\n`python bench/cold_start.py --all`: the whole process, as a ratio to `python -c pass`.\n\n"
    return text + table(header, cells), not any(map(cold_start.is_over, rows))


def scale_sections(rounds: int) -> str:
    """Plans over long lists, the bare query, and both cold."""
    warms, colds, bares = scale.measure(list(scale.SIZES), rounds)
    warm = [
        [f"{w.size:,}", f"{w.lots:,}", w.workload, f"{w.anew_ms:.1f}", f"{w.again_ms:.1f}", f"{w.ranked_ms:.1f}"]
        for w in warms
    ]
    bare = [
        [f"{size:,}", *(f"{b.warm_ms:.2g}" if b.warm_ms < 1 else f"{b.warm_ms:.1f}" for b in bares if b.size == size)]
        for size in scale.SIZES
    ]
    cold = [
        [f"{c.size:,}", c.what, f"{c.wall_ms:.0f}", f"{c.ratio:.1f}", f"{c.cpu_ms:.0f}", f"{c.peak_mib:.0f}"]
        for c in colds
    ]
    parts = (
        SCALE,
        table(["offers", "lots", "workload", "anew, ms", "again, ms", "ranked, ms"], warm),
        BARE,
        table(["offers", "numpy, ms", "DuckDB, ms"], bare),
        COLD,
        table(["offers", "what", "ms", "ratio", "processor, ms", "peak, MiB"], cold),
    )
    return "\n".join(parts)


def estimate_section(rounds: int) -> str:
    """Estimates in a second."""
    from bench import estimates  # imported last: a child's peak memory is not below its parent's

    rows = [estimates.measure(name, rounds) for name in estimates.WORKLOADS]
    cells = [
        [r.workload, f"{r.shapes}", f"{r.shapes_per_s:,.0f}", f"{r.memory_per_s:,.0f}", f"{r.speed_per_s:,.0f}"]
        for r in rows
    ]
    header = ["workload", "shapes", "shapes in a second", "memory estimates", "speed estimates"]
    return ESTIMATES + "\n" + table(header, cells)


def load_section(rounds: int) -> str:
    """Simulated loads of a service, and what they took."""
    from bench import serving

    rows = [row for engine in serving.ENGINES for row in serving.measure(engine, rounds)]
    cells = [[row.engine, row.work, f"{row.ms:.0f}", f"{row.mib:.1f}"] for row in rows]
    return LOADS + "\n" + table(["engine", "load", "processor, ms", "MiB"], cells)


def simulation_section() -> str:
    """Simulations beside the closed form, and what they took."""
    from bench import simulate

    runs = [simulate.in_process(model) for model in (*simulate.MODELS, simulate.LARGE)]
    cells = [
        [
            case.model,
            "full" if case.task == "full_finetune" else "LoRA",
            case.checkpointing,
            f"{case.tokens:,}",
            f"{case.simulated_gib:.2f}",
            f"{case.estimated_gib:.2f}",
            f"{case.difference:+.2%}",
            f"{case.seconds:.1f}",
            f"{case.cpu_seconds:.1f}",
        ]
        for run in runs
        for case in run.cases
    ]
    header = ["model", "training", "checkpointing", "tokens", "simulated, GiB", "closed form, GiB", "difference"]
    peak = max(run.peak_mib for run in runs)
    said = f"\nThe most that any of these processes held: {peak:.0f} MiB of resident memory.\n"
    return SIMULATIONS + "\n" + table([*header, "s", "processor, s"], cells) + said


def main() -> None:
    """Measure, write the page, and fail with ``--check`` when a start is over its budget."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each (default: 15)")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a start is over its budget")
    options = parser.parse_args()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    started, within = start_section(options.rounds)
    sections = [
        started,
        scale_sections(options.rounds),
        estimate_section(options.rounds),
        load_section(options.rounds),
        simulation_section(),
    ]
    PAGE.write_text("\n".join([INTRODUCTION, machine(load, options.rounds), *sections]), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    if options.check and not within:
        sys.exit(1)


if __name__ == "__main__":
    main()
