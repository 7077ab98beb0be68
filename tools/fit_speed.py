"""Refit the fitted numbers of inference speed: ``python tools/fit_speed.py FILE.csv... [--write] [--json]``.

Everything else in that room is physics or published facts. The numbers stand in
``tools/speed_numbers.csv`` with mechanism, bounds, prior and evidence; several
engines share one where they work alike. Least squares on the logarithm of the
estimate over the measurement, by Gauss-Newton steps, robust (soft L1), each
source weighed by the square root of its rows, each number drawn to its prior.
Left out in turn are each source and each card; numbers are then refitted from
the same derivatives, and what was left out is estimated anew. ``--write`` puts
the fitted values where they are used.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from score import book_with
from scoring.cells import Row, read_rows
from scoring.memory_rows import NotScored
from scoring.printing import printed
from scoring.speed import group_of
from scoring.speed_metrics import prepared
from scoring.speed_quick import likely
from scoring.speed_rows import INFERENCE, Case
from scoring.statistics import percentile, rounded

from rackrate.facts.engine import Engine, version_parts
from rackrate.speed import mechanisms
from rackrate.values import Value, replace

NUMBERS = Path(__file__).with_name("speed_numbers.csv")
ENGINES = Path(__file__).parent.parent / "src" / "rackrate" / "facts" / "data" / "engines"
MECHANISMS = Path(__file__).parent.parent / "src" / "rackrate" / "speed" / "mechanisms.py"
STEPS = 5
STEP = 0.02
LIMIT = 0.5
"""Most that a number changes in one Gauss-Newton step (logarithm)."""

ROBUST = 0.12
"""Residual beyond which a row counts less."""

NOISE = 0.15
"""Spread of rows against which priors are weighed."""

Vector = NDArray[np.float64]


class Number(Value, frozen=True, kw_only=True):
    """One fitted number: where it is used, its bounds, and what it is drawn to."""

    id: str
    value: float
    low: float
    high: float
    prior: float
    prior_sd: float
    places: str
    mechanism: str
    source: str

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that use it (none: a mechanism of all)."""
        where = self.places.partition(":")[0]
        return () if where == "mechanisms" else tuple(where.split("|"))

    @property
    def field(self) -> str:
        """The field that holds it."""
        return self.places.partition(":")[2]

    def touches(self, engine_id: str) -> bool:
        """Whether an engine (at its version) uses it."""
        name, _, version = engine_id.partition("==")
        for place in self.engines:
            own, _, before = place.partition("<")
            if own == name:
                limit = before or SINCE.get((name, self.field), "0")
                old = bool(version) and version_parts(version) < version_parts(limit)
                return old == bool(before)
        return not self.engines


SINCE = {
    ("llama.cpp", "attention_flop"): "3100",
    ("llama.cpp", "unpack_flop"): "3100",
    ("llama.cpp", "launch_s_per_layer"): "6000",
    ("vllm", "step_s"): "0.8",
}
"""Versions before which an engine has a number of its own."""


class Target(Value, frozen=True, kw_only=True):
    """One row with its case."""

    row: Row
    case: Case
    measured: float

    @property
    def source(self) -> str:
        """The publication that the row comes from."""
        return self.row.text("source")

    @property
    def card(self) -> str:
        """The card."""
        return self.row.text("gpu_id")

    @property
    def group(self) -> str:
        """The group that has a goal of its own."""
        return group_of(self.row.text("norm_task"), self.row.text("norm_engine"))


def numbers() -> tuple[Number, ...]:
    """The fitted numbers."""
    floats = ("value", "low", "high", "prior", "prior_sd")
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Number(**{k: float(v) if k in floats else v for k, v in row.items() if k in Number.__struct_fields__})
            for row in csv.DictReader(lines)
        )


def older_than(version: str) -> str:
    """A version just before one: 6000 gives 5999, 0.8 gives 0.7."""
    head, dot, last = version.rpartition(".")
    return f"{head}{dot}{int(last) - 1}"


def used(number: Number, engine: Callable[[str], Engine]) -> tuple[float, ...]:
    """The values that the room uses, one for each place."""
    if not number.engines:
        return (float(getattr(mechanisms.FITTED, number.field)),)
    found = []
    for place in number.engines:
        name, _, before = place.partition("<")
        one = engine(f"{name}=={older_than(before)}") if before else engine(name)
        found.append(float(getattr(one.speed, number.field)))
    return tuple(found)


def targets(paths: Sequence[Path]) -> list[Target]:
    """The rows of inference that can be estimated."""
    book, found = book_with(None), []
    for path in paths:
        for row in read_rows(path):
            if row.text("score") != "yes" or row.text("norm_task") not in INFERENCE:
                continue
            try:
                found.append(Target(row=row, case=prepared(row, book), measured=row.number("norm_value") or 1.0))
            except NotScored:
                continue
    return found


def residuals(found: Sequence[Target], known: Sequence[Number], values: Vector) -> Vector:
    """Logarithm of the estimate over the measurement."""
    kept = mechanisms.FITTED
    by_field = {n.field: float(v) for n, v in zip(known, values, strict=True) if not n.engines}
    mechanisms.FITTED = replace(kept, **by_field)
    engines: dict[str, Engine] = {}
    try:
        out = []
        for target in found:
            engine = target.case.engine
            if engine.id not in engines:
                own = {
                    n.field: float(v) for n, v in zip(known, values, strict=True) if n.engines and n.touches(engine.id)
                }
                engines[engine.id] = replace(engine, speed=replace(engine.speed, **own))
            out.append(likely(target.row, replace(target.case, engine=engines[engine.id])) / target.measured)
        return np.log(np.array(out))
    finally:
        mechanisms.FITTED = kept


def jacobian(found: Sequence[Target], known: Sequence[Number], values: Vector, base: Vector) -> NDArray[np.float64]:
    """Derivatives of the residuals by the logarithm of each number, over the rows that it touches."""
    out = np.zeros((len(found), len(known)))
    for column, number in enumerate(known):
        rows = [i for i, t in enumerate(found) if number.touches(t.case.engine.id)]
        moved = values.copy()
        moved[column] *= np.exp(STEP)
        out[rows, column] = (residuals([found[i] for i in rows], known, moved) - base[rows]) / STEP
    return out


def weights(found: Sequence[Target]) -> Vector:
    """Each source counts by the square root of its rows, and so each group of goals within it."""
    keys = [(t.source, t.group) for t in found]
    counts = {key: keys.count(key) for key in set(keys)}
    raw = np.array([counts[key] ** -0.5 for key in keys])
    return np.asarray(raw / raw.mean())


def solved(matrix: Vector, base: Vector, weight: Vector, known: Sequence[Number], values: Vector) -> Vector:
    """New values from one step of robust least squares with priors."""
    logs = np.log(values)
    prior = np.log([n.prior for n in known])
    stiff = (NOISE / np.array([n.prior_sd for n in known])) ** 2
    change = np.zeros(len(known))
    for _ in range(8):
        now = base + matrix @ change
        each = weight / np.sqrt(1 + (now / ROBUST) ** 2)
        left = matrix.T @ (matrix * each[:, None]) + np.diag(stiff)
        right = -(matrix.T @ (each * base)) + stiff * (prior - logs)
        change = np.linalg.solve(left, right)
    change = np.clip(change, -LIMIT, LIMIT)
    low, high = np.array([n.low for n in known]), np.array([n.high for n in known])
    return np.asarray(np.clip(np.exp(logs + change), low, high))


def fitted(found: Sequence[Target], known: Sequence[Number]) -> tuple[Vector, NDArray[np.float64], Vector]:
    """The fitted values, with the derivatives and residuals there."""
    values = np.array([n.value for n in known])
    weight = weights(found)
    base = residuals(found, known, values)
    best = (np.inf, values)
    for _ in range(STEPS):
        loss = float(np.sum(weight * ROBUST**2 * (np.sqrt(1 + (base / ROBUST) ** 2) - 1)))
        best = min(best, (loss, values), key=lambda pair: pair[0])
        matrix = jacobian(found, known, values, base)
        values = solved(matrix, base, weight, known, values)
        base = residuals(found, known, values)
    return values, jacobian(found, known, values, base), base


def without(
    found: Sequence[Target], known: Sequence[Number], fit: tuple[Vector, Vector, Vector], key: Callable[[Target], str]
) -> Vector:
    """Residuals of each group of rows with every number refitted without that group."""
    values, matrix, base = fit
    weight, out = weights(found), np.zeros(len(found))
    for name in sorted({key(t) for t in found}):
        gone = np.array([key(t) == name for t in found])
        apart = solved(matrix[~gone], base[~gone], weight[~gone], known, values)
        out[gone] = residuals([t for t in found if key(t) == name], known, apart)
    return out


def summary(found: Sequence[Target], logs: Vector) -> dict[str, Any]:
    """By group of goals: rows, median and 90th percentile of the absolute error, median of source medians."""
    out: dict[str, Any] = {}
    for group in sorted({t.group for t in found}):
        pairs = [(t.source, abs(float(np.expm1(r)))) for t, r in zip(found, logs, strict=True) if t.group == group]
        sources = {s for s, _ in pairs}
        medians = [percentile((e for s, e in pairs if s == name), 0.5) or 0.0 for name in sources]
        out[group] = {
            "rows": len(pairs),
            "median": rounded(percentile((e for _, e in pairs), 0.5)),
            "p90": rounded(percentile((e for _, e in pairs), 0.9)),
            "of_sources": rounded(percentile(medians, 0.5)),
        }
    return out


def evidence(
    found: Sequence[Target], known: Sequence[Number], fit: tuple[Vector, Vector, Vector]
) -> list[dict[str, Any]]:
    """For each number the rows and sources that depend on it, and what is left of their errors."""
    _, matrix, base = fit
    out = []
    for column, number in enumerate(known):
        rows = np.flatnonzero(np.abs(matrix[:, column]) > 0.05)  # noqa: PLR2004 - a twentieth of the speed
        out.append(
            {
                "id": number.id,
                "value": float(f"{fit[0][column]:.4g}"),
                "rows": len(rows),
                "sources": len({found[i].source for i in rows}),
                "residual": rounded(float(np.median(np.abs(np.expm1(base[rows]))))) if len(rows) else None,
            }
        )
    return out


def report(found: Sequence[Target]) -> dict[str, Any]:
    """Refitted values with evidence, in-sample errors, and errors without a row's own source or card."""
    known = numbers()
    fit = fitted(found, known)
    return {
        "numbers": len(known),
        "in_sample": summary(found, fit[2]),
        "leave_one_source_out": summary(found, without(found, known, fit, lambda t: t.source)),
        "leave_one_card_out": summary(found, without(found, known, fit, lambda t: t.card)),
        "fitted": evidence(found, known, fit),
    }


def write(found: Sequence[Mapping[str, Any]]) -> None:
    """Put values and their evidence where they are used."""
    by_id = {each["id"]: each for each in found}
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        each = by_id[row["id"]]
        row |= {"value": f"{each['value']:.4g}", **{k: str(each[k]) for k in ("rows", "sources", "residual")}}
    with NUMBERS.open("w", encoding="utf-8", newline="") as out:
        table = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    for number in numbers():
        for place in number.engines or ("",):
            _put(number, place)


def _put(number: Number, place: str) -> None:
    if not place:
        text = MECHANISMS.read_text("utf-8")
        MECHANISMS.write_text(re.sub(rf"({number.field}: float = )\S+", rf"\g<1>{number.value!r}", text), "utf-8")
        return
    name, _, before = place.partition("<")
    path = ENGINES / f"{name.replace('.', '-')}.toml"
    text = path.read_text("utf-8")
    since = text.index(f'version = "{before}"') if before else 0
    mark = "[before.speed]" if before else "[speed]"
    start = text.index(mark, since)
    head, tail = text[:start], text[start + len(mark) :]
    field = (
        number.field.replace("launch_s", "launch_us").replace("sequence_s", "sequence_us").replace("step_s", "step_us")
    )
    value = number.value * 1e6 if field != number.field else number.value
    path.write_text(
        head + mark + re.sub(rf"(?m)^({field} = )\S+", rf"\g<1>{float(f'{value:.4g}')!r}", tail, count=1), "utf-8"
    )


def shown(found: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{found['numbers']} fitted numbers"]
    lines += [
        "  {id:<26} {value:<10.4g} {rows:>5} rows {sources:>3} sources, residual {residual}".format(**e)
        for e in found["fitted"]
    ]
    for kind in ("in_sample", "leave_one_source_out", "leave_one_card_out"):
        lines += [f"{kind}:"]
        lines += [
            "  {0:<14} {rows:>5} rows  median {median:.1%}  p90 {p90:.1%}  of sources {of_sources:.1%}".format(g, **e)
            for g, e in found[kind].items()
        ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="put the values where they are used")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    said = parser.parse_args(arguments)
    found = report(targets(said.files))
    if said.write:
        write(found["fitted"])
    return printed(json.dumps(found, indent=2) if said.json else shown(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
