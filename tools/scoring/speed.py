"""Speed: estimates against a table of published measurements.

``score(rows, book)`` gives a document of plain values, split by task, engine,
card and source. Fractions, not per cent; an error is ``estimate / measured - 1``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rackrate.evidence import Range
from rackrate.facts.book import FactBook
from rackrate.values import Value
from scoring import speed_diffusion
from scoring.cells import Row
from scoring.memory_rows import NotScored
from scoring.speed_metrics import predicted
from scoring.speed_rows import case_of
from scoring.statistics import mean, percentile, rounded, share

COLUMNS = ("gpu_id", "score", "norm_task", "norm_value")
"""Columns without which no row can be scored."""

BEYOND = 1e15
"""No published speed or time is above this, or under one over it."""

WORST = 15
APART = 0.10
"""Cards further apart than this in measured speed are pairs to be put in order."""

MISSED = 10.0
"""Weight of what an 80 % interval misses in the interval score, 2 / (1 - 0.8) (Gneiting and Raftery 2007)."""


class Scored(Value, frozen=True, kw_only=True):
    """One row with its estimate; ``alike`` is the same for rows that differ by the card alone."""

    id: str
    task: str
    engine: str
    gpu: str
    source: str
    alike: str
    slow: bool
    measured: float
    predicted: Range

    @property
    def error(self) -> float:
        """The relative error."""
        return self.predicted.likely / self.measured - 1

    @property
    def covered(self) -> bool:
        """Whether the 80 % interval holds the measurement."""
        return self.predicted.low <= self.measured <= self.predicted.high

    @property
    def interval_score(self) -> float:
        """Width of the interval and what it misses, relative to the measurement (Gneiting and Raftery 2007)."""
        low, high = self.predicted.low, self.predicted.high
        missed = max(0.0, low - self.measured) + max(0.0, self.measured - high)
        return (high - low + MISSED * missed) / self.measured


def score(rows: Iterable[Row], book: FactBook) -> dict[str, object]:
    """The whole score of a table."""
    every = list(rows)
    skipped: Counter[str] = Counter()
    found: list[Scored] = []
    suspects: list[dict[str, object]] = []
    for row in every:
        if row.text("score") == "suspect":
            suspects.append(suspect(row, book))
            continue
        try:
            found.append(scored(row, book))
        except NotScored as why:
            skipped[str(why)] += 1
    return {
        "rows": len(every),
        "score_yes": sum(row.text("score") == "yes" for row in every),
        **figures(found),
        "skipped": dict(skipped.most_common()),
        "by_group": _split(found, lambda s: group_of(s.task, s.engine)),
        "by_task": _split(found, lambda s: s.task),
        "by_engine": _split(found, lambda s: s.engine),
        "by_gpu": _split(found, lambda s: s.gpu),
        "by_source": _split(found, lambda s: s.source),
        "suspect": suspects,
        "worst": [_line(each) for each in sorted(found, key=lambda s: -abs(math.log1p(s.error)))[:WORST]],
    }


def scored(row: Row, book: FactBook) -> Scored:
    """The estimate of one row beside its measurement.

    Raises:
        NotScored: the row is no fair target, or cannot be estimated.
    """
    if row.text("score") != "yes":
        raise NotScored(f"no fair target (score={row.text('score') or 'empty'})")
    measured = measured_of(row)
    if measured is None:
        raise NotScored("no measurement (norm_value)")
    found = estimated(row, book)
    same = ("model", "norm_task", "norm_engine", "engine_version", "weight_format", "dp", "tp", "pp", "concurrency",
            "prompt_tokens", "new_tokens", "micro_batch", "global_batch", "seq_len", "source", "norm_metric",
            "input_len")  # fmt: skip
    return Scored(
        id=row.text("id"),
        task=row.text("norm_task"),
        engine=row.text("norm_engine"),
        gpu=row.text("gpu_id"),
        source=row.text("source").partition(":")[0] if "://" not in row.text("source") else row.text("source"),
        alike="|".join(row.text(column) for column in same),
        slow=row.text("norm_metric").startswith("s_per"),
        measured=measured,
        predicted=found,
    )


def suspect(row: Row, book: FactBook) -> dict[str, object]:
    """A row that breaks a physical limit or contradicts its own table, with the reason."""
    measured, why = measured_of(row), ""
    try:
        likely = estimated(row, book).likely
    except NotScored as reason:
        likely, why = None, str(reason)
    return {
        "id": row.text("id"),
        "reason": row.text("score_reason"),
        "measured_over_estimate": rounded(measured / likely) if measured and likely else None,
        "not_estimated": why,
    }


def measured_of(row: Row) -> float | None:
    """The measured speed or time; None where the cell holds nothing that a machine can have done."""
    value = row.number("norm_value")
    return value if value is not None and 1 / BEYOND < value < BEYOND else None


def estimated(row: Row, book: FactBook) -> Range:
    """The estimate in the metric of a row, whatever stands in its cells.

    Raises:
        NotScored: it is not known, or a cell makes no sense.
    """
    diffuses = row.text("norm_task") == "diffusion"
    try:
        found = speed_diffusion.predicted(row, book) if diffuses else predicted(row, case_of(row, book))
    except (ValueError, TypeError, LookupError, ArithmeticError) as why:
        raise NotScored(f"a cell that makes no sense ({type(why).__name__}: {str(why)[:60]})") from why
    if not 1 / BEYOND < found.likely < BEYOND:
        raise NotScored("no speed")
    return found


EAGER = ("transformers", "litgpt", "autogptq", "flexgen")
TRAINING = ("pretrain", "full_finetune", "lora", "qlora")


def group_of(task: str, engine: str) -> str:
    """The groups that have goals of their own: eager decode apart, all training together."""
    if task in TRAINING:
        return "training"
    return "decode-eager" if task == "decode" and engine.startswith(EAGER) else task


def figures(found: Sequence[Scored]) -> dict[str, object]:
    """The statistics of some rows."""
    by_source: dict[str, list[float]] = {}
    for each in found:
        by_source.setdefault(each.source, []).append(abs(each.error))
    return {
        "scored": len(found),
        "median_abs_error": rounded(percentile((abs(s.error) for s in found), 0.5)),
        "p90_abs_error": rounded(percentile((abs(s.error) for s in found), 0.9)),
        "bias": rounded(mean([s.error for s in found])),
        "median_error": rounded(percentile((s.error for s in found), 0.5)),
        "median_of_sources": rounded(percentile((percentile(e, 0.5) or 0.0 for e in by_source.values()), 0.5)),
        "coverage_80": rounded(share([s.covered for s in found])),
        "interval_score": rounded(mean([s.interval_score for s in found])),
        "pair_order": rounded(pair_order(found)),
    }


def pair_order(found: Sequence[Scored]) -> float | None:
    """The share of pairs of cards, alike in all else and more than 10 % apart, that the estimates order right."""
    groups: dict[str, list[Scored]] = {}
    for each in found:
        groups.setdefault(each.alike, []).append(each)
    right = [
        (a.measured > b.measured) == (a.predicted.likely > b.predicted.likely)
        for group in groups.values()
        for a, b in itertools.combinations(group, 2)
        if a.gpu != b.gpu and max(a.measured, b.measured) > (1 + APART) * min(a.measured, b.measured)
    ]
    return share(right)


def _split(found: Sequence[Scored], key: Callable[[Scored], str]) -> dict[str, object]:
    return {name: figures([s for s in found if key(s) == name]) for name in sorted({key(s) for s in found})}


def _line(each: Scored) -> dict[str, object]:
    return {
        "id": each.id,
        "task": each.task,
        "engine": each.engine,
        "gpu": each.gpu,
        "measured": each.measured,
        "predicted": [float(f"{v:.5g}") for v in (each.predicted.low, each.predicted.likely, each.predicted.high)],
        "error": rounded(each.error),
    }
