"""Make the tables of ``docs/serving-load.md``: simulated loads beside published ones, and beside the closed form.

``tools/build_docs.py`` writes them; the published rows are in ``tests/golden/serving-loads.csv``.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

from build_memory_page import BLOCK, GOLDEN, ROOT

from rackrate.app.asking import read_workload
from rackrate.app.context import facts
from rackrate.evidence import Unknown, known
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.speed.replica import Replica, replica
from rackrate.speed.serving import most_in_flight, sequences_held, served
from rackrate.speed.simulation.highest import Loads
from rackrate.speed.simulation.records import Load, Server, Simulated
from rackrate.speed.simulation.run import server, simulate
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving

TABLE = GOLDEN / "serving-loads.csv"
METRICS = {
    "first_token_s_p50": "first token, median",
    "first_token_s_p99": "first token, 99 of 100",
    "s_per_output_token_p50": "each token, median",
    "s_per_output_token_p99": "each token, 99 of 100",
    "requests_per_s": "requests a second, all at once",
    "tokens_per_s": "tokens a second, users who wait",
}


class Compared(NamedTuple):
    """A published figure and the simulated one."""

    row: dict[str, str]
    simulated: float

    @property
    def error(self) -> float:
        """Simulated over published, less one."""
        return self.simulated / float(self.row["value"]) - 1


class Machine(NamedTuple):
    """A server with what the closed form needs."""

    one: Replica
    server: Server
    serving: Serving
    memory: MemoryEstimate
    engine: str


def machine(row: dict[str, str], concurrency: int) -> Machine:
    """The machine of a row, with its memory as rackrate estimates it."""
    book = facts()
    flags = {
        "model": row["model"],
        "task": "inference",
        "engine": row["engine"],
        "quantization": row["format"],
        "precision": row["precision"],
        "serving.prompt_tokens": int(row["prompt_tokens"]),
        "serving.output_tokens": int(row["output_tokens"]),
        "serving.cache_precision": row["cache_precision"],
        "serving.concurrency": concurrency,
    }
    workload = read_workload(None, flags, book).workload
    card, engine, layout = book.accelerators[row["gpu"]], book.engine(row["engine"]), Layout(tensor=int(row["tensor"]))
    memory = known(estimate_memory(workload, card, layout, engine))
    one = known(replica(workload, card, layout, engine))
    assert workload.serving is not None
    return Machine(one, known(server(one, engine, workload.serving, memory.cache)), workload.serving, memory, engine.id)


def load_of(row: dict[str, str]) -> Load:
    """The load of a row; users of a benchmark client start at once."""
    return Load(
        prompt_tokens=int(row["prompt_tokens"]),
        output_tokens=int(row["output_tokens"]),
        length_spread=float(row["length_spread"]),
        cached_share=float(row["cached_share"]),
        requests_per_s=float(row["requests_per_s"]) if row["requests_per_s"] else None,
        users=int(row["users"]) if row["users"] else None,
        together=bool(row["users"]),
    )


@cache
def compared() -> tuple[Compared, ...]:
    """Every published figure beside the simulated one."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    found: list[Compared] = []
    for _, group in groupby(rows, key=_run):
        some = list(group)
        first = some[0]
        what = machine(first, int(first["users"] or 1))
        outcome = known(simulate(what.server, load_of(first), int(first["requests"])))
        found += [Compared(row, figure(outcome, row["metric"])) for row in some]
    return tuple(found)


def _run(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(value for key, value in row.items() if key not in {"id", "metric", "value", "note"})


def figure(found: Simulated, metric: str) -> float:
    """One figure of a simulation by its name in the table."""
    if metric in {"tokens_per_s", "requests_per_s"}:
        return found.output_tokens_per_s if metric == "tokens_per_s" else found.requests_per_s
    name, _, share = metric.rpartition("_")
    return float(getattr(getattr(found, name), share))


# ---------------------------------------------------------------- the closed form


class Beside(NamedTuple):
    """The closed form over the simulation at one load."""

    kind: str
    load: str
    rate: float
    first_token: float
    each_token: float


ENGINES = ("vllm", "vllm==0.6", "sglang", "tensorrt-llm", "llama.cpp")
CARDS = ("l4", "a100-sxm4-80")
SIZES = ((1024, 128), (256, 512))
USERS = (1, 8, 32, 128)
SHARES = (0.25, 0.5, 0.75, 0.9)
COUNTED = 400


@cache
def beside_closed_form() -> tuple[Beside, ...]:
    """A grid of engines, cards, sizes and loads of Llama 3 8B."""
    return tuple(each for engine in ENGINES for card in CARDS for size in SIZES for each in _beside(engine, card, size))


def _beside(engine: str, card: str, size: tuple[int, int]) -> Iterator[Beside]:
    row = {
        "model": "meta-llama/Meta-Llama-3-8B", "engine": engine, "gpu": card, "tensor": "1", "format": "gguf-q8_0"
        if engine == "llama.cpp" else "bf16", "precision": "bf16", "cache_precision": "bf16",
        "prompt_tokens": str(size[0]), "output_tokens": str(size[1]),
    }  # fmt: skip
    for users in USERS:
        what = machine(row, users)
        held = sequences_held(what.memory.cache, what.serving, facts().engine(engine))
        if isinstance(held, Unknown):
            continue
        found = known(simulate(what.server, _alike(size, users=users), COUNTED))
        kind = "users beyond the cache" if users > held else "users"
        yield _ratios(kind, str(users), what, served(what.one, users, held, what.serving), found)
    what = machine(row, 64)
    held = known(sequences_held(what.memory.cache, what.serving, facts().engine(engine)))
    most = most_in_flight(what.one, what.serving, facts().engine(engine), held)
    loads = Loads(what.server, _alike(size, users=1), COUNTED)
    capacity = loads.capacity().requests_per_s
    for share in SHARES:
        found = loads.at(share * capacity)
        in_flight = _in_flight(what, share * capacity, most)
        yield _ratios("requests a second", f"{share:.0%}", what, served(what.one, in_flight, held, what.serving), found)


def _alike(size: tuple[int, int], *, users: int) -> Load:
    return Load(prompt_tokens=size[0], output_tokens=size[1], users=users)


def _in_flight(what: Machine, rate: float, most: int) -> int:
    from rackrate.speed.serving import in_flight_for_load

    return in_flight_for_load(what.one, rate, most, what.serving)


def _ratios(kind: str, load: str, what: Machine, closed: object, found: Simulated) -> Beside:
    del what
    tokens = found.s_per_output_token
    assert tokens is not None
    return Beside(
        kind,
        load,
        closed.requests_per_s.likely / found.requests_per_s,  # type: ignore[attr-defined]
        closed.first_token_s.likely / found.first_token_s.p50,  # type: ignore[attr-defined]
        1 / closed.per_user_tokens_per_s.likely / tokens.p50,  # type: ignore[attr-defined]
    )


# ---------------------------------------------------------------- tables


def load_page() -> str:
    """The hand-written page with its tables made again."""
    made = {"published": _published, "rows": _rows, "closed": _closed}

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{made[match['name']]()}\n{match[4]}"

    return BLOCK.sub(fill, (ROOT / "docs" / "serving-load.md").read_text("utf-8"))


def _published() -> str:
    lines = ["| figure | rows | sources | median error | bias | largest |", "|---|--:|--:|--:|--:|--:|"]
    for metric, name in METRICS.items():
        some = [each for each in compared() if each.row["metric"] == metric]
        errors = [each.error for each in some]
        sources = len({each.row["source"] for each in some})
        lines.append(
            f"| {name} | {len(some)} | {sources} | {statistics.median(map(abs, errors)):.0%} "
            f"| {statistics.median(errors):+.0%} | {max(errors, key=abs):+.0%} |"
        )
    return "\n".join(lines)


def _rows() -> str:
    head = (
        "| model | engine | cards | load | figure | published | simulated | error |\n|---|---|---|---|---|--:|--:|--:|"
    )
    return "\n".join([head, *map(_row, compared())])


def _row(each: Compared) -> str:
    row = each.row
    load = f"{row['requests_per_s']}/s" if row["requests_per_s"] else f"{row['users']} users"
    model = row["model"].rpartition("/")[2]
    value = float(row["value"])
    return (
        f"| {model} | `{row['engine']}` | {row['tensor']} x `{row['gpu']}` | {load} | {METRICS[row['metric']]} "
        f"| {value:.4g} | {each.simulated:.4g} | {each.error:+.0%} |"
    )


def _closed() -> str:
    head = (
        "| load | cases | rate | largest | first token, median | largest | each token | largest |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    lines = [head]
    kinds = [("users", load) for load in map(str, USERS)] + [("users beyond the cache", "any")]
    kinds += [("requests a second", f"{share:.0%}") for share in SHARES]
    for kind, load in kinds:
        some = [b for b in beside_closed_form() if b.kind == kind and load in {b.load, "any"}]
        name = f"{kind}, {load} of the capacity" if kind == "requests a second" else f"{load} {kind}"
        cells = [_off([getattr(b, key) for b in some]) for key in ("rate", "first_token", "each_token")]
        lines.append(f"| {name} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _off(ratios: Iterable[float]) -> str:
    errors = [ratio - 1 for ratio in ratios]
    return f"{statistics.median(errors):+.0%} | {max(errors, key=abs):+.0%}"


if __name__ == "__main__":
    print(_published(), _rows(), _closed(), sep="\n\n")
