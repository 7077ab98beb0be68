"""Refit the fitted numbers of the memory room: ``python tools/fit_memory.py FILE.csv [--models extra.csv] [--json]``.

Everything else in that room is derived from the code of the engines. The
numbers stand in ``tools/memory_numbers.csv`` with their mechanism and evidence.
Printed are the refitted values and, for each source, the error of its rows when
every number is fitted without that source (a number that then has no evidence
takes its prior).
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from score import book_with
from scoring.cells import Row, read_rows
from scoring.memory import BEYOND, error_of, estimated, predicted, total_over_stages
from scoring.memory_models import NotScored
from scoring.memory_rows import Case, case_of
from scoring.printing import printed
from scoring.statistics import mean, percentile, rounded, share

from rackrate.evidence import Range
from rackrate.facts.bundled import load
from rackrate.facts.engine import Engine
from rackrate.values import Value, replace

NUMBERS = Path(__file__).with_name("memory_numbers.csv")
PASSES = 2
FLAT = 1e-9


class Number(Value, frozen=True, kw_only=True):
    """One fitted number: where it stands, its bounds and step, and the value without evidence."""

    id: str
    value: float
    low: float
    high: float
    step: float
    prior: float
    place: str

    @property
    def grid(self) -> list[float]:
        """The values that are tried."""
        count = round((self.high - self.low) / self.step)
        return [round(self.low + i * self.step, 6) for i in range(count + 1)]


class Target(Value, frozen=True, kw_only=True):
    """One exact row with its case."""

    row: Row
    case: Case

    @property
    def source(self) -> str:
        """The publication that the row comes from."""
        return self.row.text("source").partition(":")[0]


def numbers() -> tuple[Number, ...]:
    """The fitted numbers."""
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Number(id=r["id"], place=r["place"], **{k: float(r[k]) for k in Number.__struct_fields__ if k in _FLOATS})
            for r in csv.DictReader(lines)
        )


_FLOATS = ("value", "low", "high", "step", "prior")


def used(number: Number, engine: Callable[[str], Engine]) -> float:
    """The value that the room uses."""
    where, _, name = number.place.partition(":")
    if where.startswith("rackrate."):
        found = getattr(importlib.import_module(where), name)
    else:
        found = getattr(engine(where).training, name.removeprefix("training."))
    return float(found.likely if isinstance(found, Range) else found)


def targets(rows: Sequence[Row], models: Path | None) -> list[Target]:
    """The exact rows that can be estimated."""
    book, found = book_with(models), []
    for row in rows:
        if row.text("score") == "yes":
            try:
                found.append(Target(row=row, case=case_of(row, book)))
            except NotScored:
                continue
    return found


def errors(found: Sequence[Target], values: Mapping[str, float], known: Sequence[Number]) -> list[float]:
    """The errors of rows under some values of the numbers."""
    constants = [n for n in known if n.place.startswith("rackrate.")]
    before = [(importlib.import_module(n.place.partition(":")[0]), n) for n in constants]
    kept = [(module, n.place.partition(":")[2], getattr(module, n.place.partition(":")[2])) for module, n in before]
    users = [sys.modules[name] for name in list(sys.modules) if name.startswith("rackrate.memory")]
    try:
        for (_, name, old), (_, number) in zip(kept, before, strict=True):
            new = _moved(old, values[number.id])
            for user in users:
                if hasattr(user, name):
                    setattr(user, name, new)
        return [_error(_with(target, values, known)) for target in found]
    finally:
        for _, name, old in kept:
            for user in users:
                if hasattr(user, name):
                    setattr(user, name, old)


def _moved(old: float | Range, likely: float) -> float | Range:
    if not isinstance(old, Range):
        return likely
    return Range(min(old.low, likely), likely, max(old.high, likely))


def _with(target: Target, values: Mapping[str, float], known: Sequence[Number]) -> Target:
    """The target with the numbers that belong to its engine."""
    engine = target.case.engine
    for number in known:
        where, _, key = number.place.partition(":")
        name = key.removeprefix("training.")
        if engine.training is not None and _is_of(engine, where, name):
            new = {name: _moved(getattr(engine.training, name), values[number.id])}
            engine = replace(engine, training=replace(engine.training, **new))
    return replace(target, case=replace(target.case, engine=engine))


def _is_of(engine: Engine, where: str, name: str) -> bool:
    """Whether a number of ``where`` is this engine's: of the same version, or of the newest where it kept the value."""
    if where == engine.id or engine.id.partition("==")[0] != where:
        return where == engine.id
    newest = load().engine(where)
    return bool(getattr(engine.training, name) == getattr(newest.training, name))


def _error(target: Target) -> float:
    row, case = target.row, target.case
    if case.layout.pipeline > 1 and row.text("scope").startswith("sum"):
        return error_of(row, total_over_stages(row, case).likely)
    return error_of(row, predicted(row, estimated(case)).likely)


def fitted(found: Sequence[Target], known: Sequence[Number]) -> dict[str, float]:
    """The values with the least mean absolute error, one after the other; the prior where nothing depends on one."""
    values = {n.id: n.value for n in known}
    for _ in range(PASSES):
        for number in known:
            scores = [(_loss(found, {**values, number.id: v}, known), v) for v in number.grid]
            best, worst = min(scores), max(scores)
            values[number.id] = number.prior if worst[0] - best[0] < FLAT else best[1]
    return values


def _loss(found: Sequence[Target], values: Mapping[str, float], known: Sequence[Number]) -> float:
    return mean([abs(e) for e in errors(found, values, known)]) or 0.0


def report(found: Sequence[Target]) -> dict[str, Any]:
    """Refitted values, in-sample errors, and the errors of each source without it."""
    known = numbers()
    inside = fitted(found, known)
    apart: dict[str, dict[str, Any]] = {}
    out: list[tuple[Target, float]] = []
    for source in sorted({t.source for t in found}):
        left = [t for t in found if t.source == source]
        values = fitted([t for t in found if t.source != source], known)
        missed = errors(left, values, known)
        out += list(zip(left, missed, strict=True))
        apart[source] = {**summary(missed), "values": values}
    tasks = sorted({t.row.text("norm_task") for t in found})
    return {
        "numbers": len(known),
        "used": {n.id: n.value for n in known},
        "refitted": inside,
        "in_sample": summary(errors(found, inside, known)),
        "leave_one_source_out": summary([e for _, e in out]),
        "by_task": {name: summary([e for t, e in out if t.row.text("norm_task") == name]) for name in tasks},
        "by_source": apart,
    }


def summary(missed: Sequence[float]) -> dict[str, Any]:
    """Rows, median and 90th percentile of the absolute error, and how many are under by more than a tenth."""
    return {
        "rows": len(missed),
        "median_abs_error": rounded(percentile((abs(e) for e in missed), 0.5)),
        "p90_abs_error": rounded(percentile((abs(e) for e in missed), 0.9)),
        "share_under_10": rounded(share([e < -BEYOND for e in missed])),
    }


def shown(found: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{found['numbers']} fitted numbers: used {found['used']}", f"refitted: {found['refitted']}", ""]
    lines += [f"in sample: {found['in_sample']}", f"leave one source out: {found['leave_one_source_out']}", ""]
    for group in ("by_task", "by_source"):
        lines += [f"without its source, {group.replace('_', ' ')}:"]
        lines += [f"  {name}: {each}" for name, each in found[group].items()]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--models", type=Path, help="more models, in the columns of models.csv")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    said = parser.parse_args(arguments)
    found = report(targets(read_rows(said.file), said.models))
    return printed(json.dumps(found, indent=2) if said.json else shown(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
