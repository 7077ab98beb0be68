"""Refit the fitted numbers of training or diffusion.

``python tools/fit_rates.py training FILE.csv [--out source|gpu_id]``

They stand in ``tools/rate_numbers.csv`` with their mechanism and evidence;
everything else is derived from the work and from published rates.
``--out`` prints the error of each source (or card) when every number is fitted
without it.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from score import book_with
from scoring import speed_diffusion
from scoring.cells import Row, read_rows
from scoring.memory_rows import NotScored
from scoring.printing import printed
from scoring.speed import TRAINING
from scoring.speed_rows import Case, case_of
from scoring.statistics import percentile, rounded

from rackrate.evidence import Unknown
from rackrate.facts.book import FactBook
from rackrate.speed.replica import Replica, replica
from rackrate.speed.training import step_s, tokens_per_step
from rackrate.values import Value

NUMBERS = Path(__file__).with_name("rate_numbers.csv")
PASSES = 2
FLAT = 1e-9
SOURCE_POWER = 0.35
"""A source of n rows weighs n to the power of one less this: many rows of one table are no independent evidence."""


class Number(Value, frozen=True, kw_only=True):
    """One fitted number: where it stands, its bounds and the step in which it is tried."""

    id: str
    value: float
    low: float
    high: float
    step: float
    place: str

    @property
    def grid(self) -> list[float]:
        """The values that are tried."""
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]


class Target(Value, frozen=True, kw_only=True):
    """One row with its case and replica, which no number changes (diffusion rows are read again)."""

    row: Row
    case: Case | None = None
    one: Replica | None = None


def numbers(subject: str) -> tuple[Number, ...]:
    """The fitted numbers of a subject."""
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Number(id=r["id"], place=r["place"], **{k: float(r[k]) for k in ("value", "low", "high", "step")})
            for r in csv.DictReader(lines)
            if r["subject"] == subject
        )


def used(number: Number) -> float:
    """The value that the room uses."""
    module, _, name = number.place.partition(":")
    return float(getattr(importlib.import_module(module), name))


def targets(rows: Sequence[Row], subject: str) -> list[Target]:
    """The rows of a subject that can be estimated."""
    if subject == "diffusion":
        return [Target(row=r) for r in rows if r.text("score") == "yes" and r.text("norm_task") == "diffusion"]
    book, found = book_with(None), []
    for row in rows:
        if row.text("score") != "yes" or row.text("norm_task") not in TRAINING:
            continue
        try:
            case = case_of(row, book)
        except NotScored:
            continue
        one = replica(case.workload, case.card, case.layout, case.engine)
        if not isinstance(one, Unknown):
            found.append(Target(row=row, case=case, one=one))
    return found


@contextmanager
def placed(values: Mapping[str, float], known: Sequence[Number]) -> Iterator[None]:
    """The room with these values for its numbers."""
    before = {n.place: used(n) for n in known}
    try:
        for number in known:
            _put(number.place, values[number.id])
        yield
    finally:
        for place, value in before.items():
            _put(place, value)


def _put(place: str, value: float) -> None:
    module, _, name = place.partition(":")
    setattr(importlib.import_module(module), name, value)


def errors(found: Sequence[Target], values: Mapping[str, float], known: Sequence[Number]) -> list[float]:
    """Logarithms of estimate over measurement."""
    with placed(values, known):
        return [math.log(_rate(target) / (target.row.number("norm_value") or math.nan)) for target in found]


def _rate(target: Target) -> float:
    row = target.row
    if target.case is None or target.one is None:
        return speed_diffusion.predicted(row, _book()).likely
    run = target.case.workload.training
    assert run is not None
    tokens, seconds = tokens_per_step(target.one, run), step_s(target.one, target.case.workload, run)
    metric = row.text("norm_metric")
    if metric == "s_per_step":
        return float(seconds)
    shares = {"train_tokens_per_s_per_gpu": target.case.layout.gpus, "samples_per_s": run.sequence_tokens}
    return float(tokens / seconds / shares.get(metric, 1))


def fitted(found: Sequence[Target], known: Sequence[Number]) -> dict[str, float]:
    """The values with the least mean absolute error, sources weighted, one after the other."""
    values = {n.id: n.value for n in known}
    for _ in range(PASSES):
        for number in known:
            scores = [(_loss(found, {**values, number.id: v}, known), v) for v in number.grid]
            if max(scores)[0] - min(scores)[0] > FLAT:
                values[number.id] = min(scores)[1]
    return values


def _loss(found: Sequence[Target], values: Mapping[str, float], known: Sequence[Number]) -> float:
    counts: dict[str, int] = {}
    for target in found:
        counts[target.row.text("source")] = counts.get(target.row.text("source"), 0) + 1
    weights = [counts[target.row.text("source")] ** -SOURCE_POWER for target in found]
    missed = errors(found, values, known)
    return sum(w * abs(e) for w, e in zip(weights, missed, strict=True)) / sum(weights)


def report(found: Sequence[Target], known: Sequence[Number], column: str | None) -> dict[str, Any]:
    """Refitted values with their errors, and those of each group without it."""
    values = fitted(found, known)
    told: dict[str, Any] = {
        "numbers": len(known),
        "used": {n.id: used(n) for n in known},
        "refitted": {name: float(f"{value:.4g}") for name, value in values.items()},
        "in_sample": summary(errors(found, values, known)),
    }
    if column is None:
        return told
    every: list[float] = []
    apart: dict[str, Any] = {}
    for name in sorted({t.row.text(column) for t in found}):
        kept = fitted([t for t in found if t.row.text(column) != name], known)
        missed = errors([t for t in found if t.row.text(column) == name], kept, known)
        apart[name], every = summary(missed), every + missed
    medians = [each["median_abs_error"] for each in apart.values()]
    return told | {"left_out": column, **summary(every), "median_of_medians": percentile(medians, 0.5), "apart": apart}


@cache
def _book() -> FactBook:
    return book_with(None)


def summary(missed: Sequence[float]) -> dict[str, Any]:
    """Rows, median and 90th percentile of the absolute error."""
    sizes = [abs(math.expm1(e)) for e in missed]
    return {
        "rows": len(sizes),
        "median_abs_error": rounded(percentile(sizes, 0.5)),
        "p90_abs_error": rounded(percentile(sizes, 0.9)),
    }


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", choices=("training", "diffusion"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", choices=("source", "gpu_id"), help="leave each of these out in turn")
    said = parser.parse_args(arguments)
    found = report(targets(read_rows(said.file), said.subject), numbers(said.subject), said.out)
    return printed(json.dumps(found, indent=2))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
