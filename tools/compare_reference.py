"""Say what became of every row of the tables that the bundled facts and prices were collected in.

``python tools/compare_reference.py FOLDER`` prints a line for each row: the table, the row's number,
its fate, where it is and why it differs. ``--page`` prints the page ``docs/collected.md`` instead. The
exit code is 1 if a row, or a cell of it, is neither in the project's files nor in the list of reasons,
``tools/reference_changes.csv``.

The tables themselves are not part of the repository.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rackrate.facts import bundled
from rackrate.units import MIB

ROOT = Path(__file__).parents[1]
CHANGES = Path(__file__).with_name("reference_changes.csv")
LEDGER = ROOT / "tests" / "offers" / "ledger.csv"
Row = Mapping[str, str]

CARRIED, CHANGED, MERGED, LEFT_OUT, UNACCOUNTED = "carried", "changed", "merged", "left out", "unaccounted"


class Fate(NamedTuple):
    """What became of one row: where it is now, and the reasons for what differs."""

    table: str
    number: int
    what: str
    fate: str
    where: str
    reasons: tuple[str, ...] = ()


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


class Reasons:
    """Why single cells, or cells of a kind, differ: ``subject`` or ``*``, ``column``, what it was and is."""

    def __init__(self) -> None:
        self._listed = {(r["table"], r["subject"], r["column"]): r for r in read(CHANGES)}
        self.used: set[tuple[str, str, str]] = set()

    def find(self, table: str, subject: str, column: str, was: str, now: str) -> str | None:
        """The reason for one cell, or None: a reason for one row must name both values."""
        for who in (subject, "*"):
            row = self._listed.get((table, who, column))
            if row is not None and (who == "*" or (row["was"], row["is"]) == (was, now)):
                self.used.add((table, who, column))
                return row["reason"]
        return None

    @property
    def unused(self) -> list[tuple[str, str, str]]:
        """Reasons that explain nothing any more."""
        return sorted(set(self._listed) - self.used)


Differences = Sequence[tuple[str, str, str]]
"""Column, what it was, what it is."""


def judged(fate: Fate, found: Differences, reasons: Reasons) -> Fate:
    """The fate of a row that was carried but for the cells in ``found``."""
    why = [(c, reasons.find(fate.table, fate.what, c, was, now), was, now) for c, was, now in found]
    unknown = tuple(f"{column}: {was!r} is now {now!r}" for column, reason, was, now in why if reason is None)
    if unknown:
        return fate._replace(fate=UNACCOUNTED, reasons=unknown)
    told = tuple(dict.fromkeys(f"{column}: {reason}" for column, reason, _, _ in why))
    return fate._replace(fate=CHANGED if told else CARRIED, reasons=told)


# ---------------------------------------------------------------- cards

CELLS = {
    **{name: name for name in ("vendor", "product", "architecture", "chip", "compute_capability", "launch_year")},
    **{name: name for name in ("form_factor", "memory_type", "ecc", "sparsity_2_4", "rt_cores", "cooling")},
    **{name: name for name in ("nvlink_version", "nvlink_bridge_max_gpus", "nvswitch", "source", "notes")},
    "memory_gb": "memory_sold_gb",
    "mig": "mig_instances",
}
NUMBERS = {
    **{f"fp{n}_tflops": f"peak_fp{n}" for n in (64, 32)},
    **{f"{name}_dense_tflops": f"peak_{name}" for name in ("tf32", "fp16", "bf16", "fp8", "fp4")},
    **{f"int{n}_dense_tops": f"peak_int{n}" for n in (8, 4)},
    "fp16_acc16_dense_tflops": "peak_fp16_acc16",
    "bandwidth_gb_s": "bandwidth",
    "tdp_w": "power_limit",
    "min_power_w": "power_min",
    "max_power_w": "power_max",
    "pcie_gen": "pcie_gen",
    "pcie_lanes": "pcie_lanes",
    "nvlink_gb_s_total_bidir": "nvlink_total_bidir",
    "memory_bytes_usable_typical": "memory_total",
}
ROUNDING = 0.01
"""Figures of two sources that differ by less are the same figure, rounded or worked out from clocks."""


def cards(rows: Sequence[Row], reasons: Reasons) -> Iterator[Fate]:
    """gpus.csv: identities in accelerators.csv, numbers in accelerator_facts.csv."""
    known = {row["id"]: row for row in bundled.table("accelerators.csv")}
    facts: dict[tuple[str, str], list[str]] = {}
    for fact in bundled.table("accelerator_facts.csv"):
        facts.setdefault((fact["accelerator"], fact["quantity"]), []).append(fact["value"])
    for number, row in enumerate(rows, start=2):
        now = known.get(row["id"])
        if now is None:
            yield Fate("gpus.csv", number, row["id"], UNACCOUNTED, "", ("no such card",))
            continue
        found = [(c, row[c], now[n]) for c, n in CELLS.items() if row[c] != now[n] and row[c] != now["isa"]]
        found += [one for c, q in NUMBERS.items() for one in _number(c, row[c], facts.get((row["id"], q), []))]
        where = "accelerators.csv, accelerator_facts.csv"
        yield judged(Fate("gpus.csv", number, row["id"], CARRIED, where), found, reasons)


def _number(column: str, cell: str, now: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    if not cell or (column == "nvlink_gb_s_total_bidir" and not float(cell) and not now):
        return  # a card without a link has no row that says so
    value = float(cell) / (MIB if column == "memory_bytes_usable_typical" else 1)
    nearest = min(now, key=lambda text: abs(float(text) - value), default="")
    if nearest and value and float(nearest) != value and abs(float(nearest) / value - 1) <= ROUNDING:
        yield f"{column} (rounded)", cell, nearest
    elif not nearest or float(nearest) != value:
        yield column, cell, nearest


# ---------------------------------------------------------------- tables carried row by row


def same(
    table: str, file: str, keys: Sequence[tuple[str, str]], columns: Mapping[str, str]
) -> Callable[[Sequence[Row], Reasons], Iterator[Fate]]:
    """A table whose rows are those of ``file``, found by ``keys`` (there and here), with the same cells."""

    def fates(rows: Sequence[Row], reasons: Reasons) -> Iterator[Fate]:
        known = {tuple(row[here] for _, here in keys): row for row in bundled.table(file)}
        for number, row in enumerate(rows, start=2):
            key = tuple(row[there] for there, _ in keys)
            what, now = " ".join(filter(None, key)), known.get(key)
            if now is None:
                yield Fate(table, number, what, UNACCOUNTED, file, ("no such row",))
                continue
            found = [(c, row[c], now[n]) for c, n in columns.items() if row[c] != now[n]]
            yield judged(Fate(table, number, what, CARRIED, file), found, reasons)

    return fates


MODEL_COLUMNS = (
    *("family", "params_total", "params_active", "params_check", "hidden_size", "layers", "attention_heads"),
    *("kv_heads", "head_dim", "intermediate_size", "vocab_size", "tie_embeddings", "max_context", "attention"),
    *("attn_layers_full", "attn_layers_windowed", "window", "layers_linear_or_ssm", "mla_kv_lora_rank"),
    *("mla_qk_rope_head_dim", "mla_q_lora_rank", "mla_v_head_dim", "experts", "experts_per_token"),
    *("moe_intermediate_size", "shared_experts", "dense_layers_first", "mlp_gated", "modality", "native_dtype"),
    *("source", "notes"),
)

# ---------------------------------------------------------------- measurements and prices

UNITS = {"GFLOPS": ("TFLOPS", 1e-3), "MB/s": ("GB/s", 1e-3)}


def baselines(rows: Sequence[Row], reasons: Reasons) -> Iterator[Fate]:
    """gpu-baselines.csv: the same rows in the same order, in units that rackrate reads."""
    known = bundled.table("baselines.csv")
    for number, row in enumerate(rows, start=2):
        what = f"{row['gpu']} {row['metric']} {row['value']}"
        if number - 2 >= len(known):
            yield Fate("gpu-baselines.csv", number, what, UNACCOUNTED, "baselines.csv", ("no such row",))
            continue
        now = known[number - 2]
        found = [("gpu", row["gpu"], now["label"])] if row["gpu"] != now["label"] else []
        if not _same_figures(row, now):
            found.append(("value", f"{row['value']} {row['unit']}", f"{now['value']} {now['value_to']} {now['unit']}"))
        yield judged(Fate("gpu-baselines.csv", number, what, CARRIED, f"baselines.csv:{number}"), found, reasons)


def _same_figures(row: Row, now: Row) -> bool:
    scale = UNITS.get(row["unit"], ("", 1.0))[1]
    was = [float(part) * scale for part in row["value"].replace(" or ", "-").replace("/", "-").split("-") if part]
    held = [float(cell) for cell in (now["value"], now["value_to"]) if cell]
    ends = [was[0], was[-1]] if len(was) > 1 else was
    return len(ends) == len(held) and all(abs(a - b) <= 1e-6 * max(a, 1) for a, b in zip(ends, held, strict=True))


def offers(name: str, table: str) -> Callable[[Sequence[Row], Reasons], Iterator[Fate]]:
    """A price list: each row has its line in the ledger, which tests hold against the price lists."""

    def fates(rows: Sequence[Row], reasons: Reasons) -> Iterator[Fate]:
        ledger = {int(row["row"]): row for row in read(LEDGER) if row["list"] == name}
        for number, row in enumerate(rows, start=2):
            now = ledger.get(number - 1)
            what = f"{row['provider']} {row['offer_name']}"
            if now is None:
                yield Fate(table, number, what, UNACCOUNTED, "", ("no line in the ledger",))
                continue
            pairs = (("offer_name", "name"), ("provider", "provider"), ("region", "region"), ("market", "market"))
            more = (("gpu_model", "card_label"), ("gpu_count", "gpus"), ("as_of", "observed_on"))
            found = [(c, row[c], now[n]) for c, n in (*pairs, *more) if row[c] != now[n]]
            fate = judged(Fate(table, number, what, CARRIED, "offers-*.csv"), found, reasons)
            if now["fate"] == MERGED and fate.fate != UNACCOUNTED:
                fate = fate._replace(fate=MERGED, reasons=(f"row: {now['reason']}", *fate.reasons))
            yield fate

    return fates


TABLES: Mapping[str, Callable[[Sequence[Row], Reasons], Iterator[Fate]]] = {
    "gpus.csv": cards,
    "mig-profiles.csv": same(
        "mig-profiles.csv",
        "mig_profiles.csv",
        (("gpu", "label"), ("profile", "profile")),
        {
            "sm_fraction": "sm_fraction",
            "memory_gb": "memory_label_gb",
            "max_instances": "max_instances",
            "source": "source",
            "notes": "notes",
        },
    ),
    "models.csv": same("models.csv", "models.csv", (("id", "id"),), {c: c for c in MODEL_COLUMNS}),
    "gpu-baselines.csv": baselines,
    "offers-seed.csv": offers("seed", "offers-seed.csv"),
    "offers-cn.csv": offers("cn", "offers-cn.csv"),
    "offers-committed.csv": offers("committed", "offers-committed.csv"),
    "billing-rules.csv": same(
        "billing-rules.csv",
        "billing_rules.csv",
        tuple((c, c) for c in ("provider", "rule_key", "value", "unit", "state", "effective_from")),
        {"seen_at": "seen_at", "confidence": "confidence"},
    ),
}
"""The tables whose rows are facts or offers."""

ELSEWHERE = {
    "claims.csv": "the claims of the guides: `facts/data/claims.csv`, recomputed in `docs/claims.md`",
    "memory-measured.csv": "measurements to hold memory estimates against; the room of memory carries them",
    "speed-measured.csv": "measurements to hold speed estimates against; the room of speed carries them",
    "speed-measured-2.csv": "measurements to hold speed estimates against; the room of speed carries them",
    "energy-measured.csv": "power and energy under load; the room of speed carries them",
    "render-scores.csv": "scores of renderers; they belong to rendering, which no verb answers yet",
    "ownership.csv": "prices and running costs of owned machines; they belong to rent against buy, a later room",
    "ownership-cases.csv": "worked examples of rent against buy, a later room",
    "commitment-cases.csv": "worked examples of commitments, a later room",
    "field-cases-a.csv": "questions from the field with their answers, which belong to diagnosis, a later room",
}
"""The tables that hold no facts or offers, and where they belong."""


def fates(folder: Path) -> tuple[list[Fate], Reasons]:
    """The fate of every row of every table of facts or offers below ``folder``."""
    reasons = Reasons()
    found = [fate for name, judge in TABLES.items() for fate in judge(read(folder / name), reasons)]
    return found, reasons


def unlisted(folder: Path) -> list[str]:
    """Tables below ``folder`` of which nothing is said."""
    return sorted(path.name for path in folder.glob("*.csv") if path.name not in {*TABLES, *ELSEWHERE})


# ---------------------------------------------------------------- page


def page(folder: Path) -> str:
    """``docs/collected.md``: the counts, and every reason with how many rows it holds for."""
    found, _ = fates(folder)
    lines = [
        "<!-- Made by `python tools/compare_reference.py FOLDER --page`; changes here are lost. -->",
        "",
        "# What became of the collected rows",
        "",
        "The bundled facts and prices were first collected in tables, a row for each thing that was seen. No row",
        "was dropped in silence: each is in the project's files as it was collected, or differs for a reason that",
        "is listed here. `tools/compare_reference.py` compares them row by row and cell by cell.",
        "",
        "| table | rows | carried as they were | changed | merged | left out |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in TABLES:
        counts = Counter(fate.fate for fate in found if fate.table == name)
        cells = (counts[key] for key in (CARRIED, CHANGED, MERGED, LEFT_OUT))
        lines.append(f"| {name} | {sum(counts.values())} | {' | '.join(map(str, cells))} |")
    lines += ["", "Tables that hold no facts about cards, models, providers or offers:", ""]
    lines += [f"- {name}: {why}." for name, why in ELSEWHERE.items()]
    lines += ["", "## Why rows differ", "", "| table | rows | what | why |", "|---|--:|---|---|"]
    told = Counter((fate.table, *reason.split(": ", 1)) for fate in found for reason in fate.reasons)
    for (name, column, why), count in told.items():
        lines.append(f"| {name} | {count} | {column} | {why} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print every row's fate, or the page; 1 if a row is not accounted for."""
    folder = Path(arguments[0])
    if "--page" in arguments:
        sys.stdout.write(page(folder))
        return 0
    found, reasons = fates(folder)
    for fate in found:
        print(f"{fate.table}:{fate.number} {fate.what}: {fate.fate}; {fate.where}; {'; '.join(fate.reasons)}")
    bad = [fate for fate in found if fate.fate == UNACCOUNTED]
    print(f"{len(found)} rows, {len(bad)} not accounted for; unused reasons: {reasons.unused}", file=sys.stderr)
    return 1 if bad or reasons.unused or unlisted(folder) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
