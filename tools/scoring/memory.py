"""Memory: estimates against a table of published measurements.

``score(rows, book)`` gives a document of plain values: exact rows, bound rows
and component rows apart, split by task, engine and source. Fractions, not per
cent. An error inside the rounding of the printed figure counts as zero.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rackrate.evidence import Range, Unknown, add_independent
from rackrate.facts.book import FactBook
from rackrate.facts.names import resolve_model
from rackrate.memory.estimate import demand, fit_on
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.memory.overhead import visible_bytes
from rackrate.problems import Finding
from rackrate.units import GIB
from rackrate.values import Value, replace
from scoring.cells import Row
from scoring.memory_bounds import component, satisfied
from scoring.memory_columns import filled
from scoring.memory_models import NotScored, model_of
from scoring.memory_rows import Case, case_of, hypothetical, stands_in
from scoring.memory_words import WIDER
from scoring.statistics import mean, percentile, rounded, share

CARDS_GB = (8, 12, 16, 24, 32, 40, 48, 80, 96, 141, 192)
"""Sizes of the cards over which the verdict ``fits`` is tried."""

WORST = 15
BEYOND = 0.10
"""An under-estimate by more than this is named apart."""


class Scored(Value, frozen=True, kw_only=True):
    """One row with its estimate.

    ``error`` is relative to the measurement, zero inside its rounding;
    ``fits`` counts the hypothetical cards that the estimate says it fits, and
    ``wrong`` those of them that the measurement does not fit.
    """

    id: str
    task: str
    engine: str
    source: str
    measured: float
    predicted: Range
    error: float
    fits: int
    wrong: int

    @property
    def width(self) -> float:
        """The width of the interval as a part of the estimate."""
        return (self.predicted.high - self.predicted.low) / self.predicted.likely if self.predicted.likely else 0.0


def score(rows: Iterable[Row], book: FactBook) -> dict[str, object]:
    """The whole score of a table."""
    every = [filled(row) for row in rows]
    skipped: Counter[str] = Counter()
    exact: list[Scored] = []
    stand_ins: dict[str, str] = {}
    bounds: dict[str, bool] = {}
    parts: list[tuple[str, str, float]] = []
    for row in every:
        try:
            _take(row, book, exact, bounds, parts)
            stand_ins |= stand_in(row, book)
        except NotScored as why:
            skipped[str(why)] += 1
        except (ValueError, ArithmeticError) as why:
            skipped[f"numbers that make no estimate: {type(why).__name__}"] += 1
    return {
        "rows": len(every),
        "score_yes": sum(row.text("score") == "yes" for row in every),
        **figures(exact),
        "stand_ins": stand_ins,
        "skipped": dict(skipped.most_common()),
        "bounds": _bounds(bounds),
        "components": _components(parts),
        "by_task": _split(exact, lambda s: s.task),
        "by_engine": _split(exact, lambda s: s.engine),
        "by_source": _split(exact, lambda s: s.source),
        "worst": [_line(each) for each in sorted(exact, key=lambda s: -abs(s.error))[:WORST]],
    }


def stand_in(row: Row, book: FactBook) -> dict[str, str]:
    """The model that stands in for the one of the row, by the row's id; nothing where that one is known."""
    known = not row.text("model_id") or not isinstance(resolve_model(row.text("model_id"), book.model_ids), Finding)
    return {} if known else {row.text("id"): model_of(row, book)}


def _take(
    row: Row, book: FactBook, exact: list[Scored], bounds: dict[str, bool], parts: list[tuple[str, str, float]]
) -> None:
    kind = row.text("score")
    if kind == "yes":
        exact.append(scored(row, book))
    elif kind == "bound":
        case = case_of(row, book)
        found = estimated(case)
        bounds[row.text("id")] = satisfied(row, found, predicted(row, found))
    elif kind == "component":
        parts.append(_component(row, book))
    else:
        raise NotScored("no fair target (score=no)")


def scored(row: Row, book: FactBook) -> Scored:
    """The estimate of one exact row beside its measurement.

    Raises:
        NotScored: the row cannot be estimated.
    """
    measured = row.number("measured_bytes")
    if not measured or measured < 0:
        raise NotScored("no measurement")
    case = case_of(row, book)
    found = estimated(case)
    span = wider(row, predicted(row, found), book)
    if case.layout.pipeline > 1 and row.text("scope").startswith("sum"):
        span = total_over_stages(row, case)
    fits, wrong = wrong_fits(row, case, measured, found)
    return Scored(
        id=row.text("id"),
        task=row.text("norm_task"),
        engine=row.text("norm_engine"),
        source=row.text("source").partition(":")[0],
        measured=measured,
        predicted=span,
        error=error_of(row, span.likely),
        fits=fits,
        wrong=wrong,
    )


def estimated(case: Case) -> MemoryEstimate:
    """The estimate of a case.

    Raises:
        NotScored: it is not known.
    """
    needed = demand(case.workload, case.layout, case.engine)
    found = needed if isinstance(needed, Unknown) else fit_on(needed, case.card)
    if isinstance(found, Unknown):
        raise NotScored(found.reason.replace(case.workload.model.id, "the model"))
    return found


def total_over_stages(row: Row, case: Case) -> Range:
    """The sum of every card's own peak, for a model split by layers over two cards."""
    needed = demand(case.workload, case.layout, case.engine)
    assert not isinstance(needed, Unknown)
    each = [fit_on(replace(needed, stages=(stage,)), case.card) for stage in needed.stages]
    return add_independent(predicted(row, found) for found in each if not isinstance(found, Unknown))


def predicted(row: Row, found: MemoryEstimate) -> Range:
    """The estimate in the metric of the row; where it is not known, what the framework allocates."""
    return {"nvml": found.peak, "reserved": found.reserved}.get(row.text("metric_id"), found.allocated)


def wider(row: Row, span: Range, book: FactBook) -> Range:
    """The range of an estimate, wider where the engine's kin stands in for it."""
    below, above = WIDER if stands_in(row, book) else (1.0, 1.0)
    return Range(span.low * below, span.likely, span.high * above)


def error_of(row: Row, likely: float) -> float:
    """The relative error; zero where the estimate is within the rounding of the printed figure."""
    measured = row.number("measured_bytes") or math.nan
    low, high = row.number("measured_bytes_low") or measured, row.number("measured_bytes_high") or measured
    return 0.0 if low <= likely <= high else likely / measured - 1


def wrong_fits(row: Row, case: Case, measured: float, found: MemoryEstimate) -> tuple[int, int]:
    """Hypothetical cards that the estimate fits, and those of them that the measurement does not.

    The measurement as the driver sees it: what the framework held, and the
    likely CUDA context; a sum over cards counts by card.
    """
    if row.text("scope").startswith("sum"):
        measured /= case.layout.pipeline
    context = sum(part.bytes.likely for part in found.components if part.name == "cuda_context")
    on_card = measured + (0 if row.text("metric_id") == "nvml" else context)
    needed = demand(case.workload, case.layout, case.engine)
    fits = wrong = 0
    for size in CARDS_GB:
        card = hypothetical(size, case.card.compute_capability or (8, 0))
        there = needed if isinstance(needed, Unknown) else fit_on(needed, card)
        if isinstance(there, MemoryEstimate) and there.verdict is Verdict.FITS:
            fits += 1
            wrong += on_card > visible_bytes(size * GIB)
    return fits, wrong


def figures(found: Sequence[Scored]) -> dict[str, object]:
    """The statistics of some rows."""
    return {
        "scored": len(found),
        "median_abs_error": rounded(percentile((abs(s.error) for s in found), 0.5)),
        "p90_abs_error": rounded(percentile((abs(s.error) for s in found), 0.9)),
        "bias": rounded(mean([s.error for s in found])),
        "median_error": rounded(percentile((s.error for s in found), 0.5)),
        "share_above_high": rounded(share([s.measured > s.predicted.high for s in found])),
        "share_below_low": rounded(share([s.measured < s.predicted.low for s in found])),
        "share_under_10": rounded(share([s.error < -BEYOND for s in found])),
        "width_p50": rounded(percentile((s.width for s in found), 0.5)),
        "width_p90": rounded(percentile((s.width for s in found), 0.9)),
        "share_wrong_fit": rounded(sum(s.wrong for s in found) / max(1, sum(s.fits for s in found))),
    }


def _component(row: Row, book: FactBook) -> tuple[str, str, float]:
    name = row.text("task").rpartition(":")[2]
    if not row.text("model_id"):
        raise NotScored(f"component without a model: {name}")
    if (row.number("measured_bytes") or 0.0) <= 0:
        raise NotScored("no measurement")
    if "weights" in name and not row.text("weight_format"):
        raise NotScored("component: weights of a format that is not stated")
    case = component_case(row, book)
    needed = demand(case.workload, case.layout, case.engine)
    found = needed if isinstance(needed, Unknown) else fit_on(needed, case.card)
    return row.text("id"), name, error_of(row, component(row, case, found))


def component_case(row: Row, book: FactBook) -> Case:
    """The case of a component: inference of the cached tokens in the row's engine."""
    told = {"norm_task": "inference", "prompt_tokens": row.text("prompt_tokens") or "1", "new_tokens": "1"}
    return case_of(Row({**row.cells, **told, "norm_seq_len": ""}), book)


def _components(parts: Sequence[tuple[str, str, float]]) -> dict[str, object]:
    names = sorted({name.partition("_for_")[0] for _, name, _ in parts})
    return {
        name: {
            "rows": sum(n.startswith(name) for _, n, _ in parts),
            "median_abs_error": rounded(percentile((abs(e) for _, n, e in parts if n.startswith(name)), 0.5)),
            "errors": {i: rounded(e) for i, n, e in parts if n.startswith(name)},
        }
        for name in names
    }


def _bounds(found: dict[str, bool]) -> dict[str, object]:
    return {
        "scored": len(found),
        "satisfied": rounded(share(list(found.values()))),
        "broken": [name for name, held in found.items() if not held],
    }


def _split(found: Sequence[Scored], key: Callable[[Scored], str]) -> dict[str, object]:
    return {name: figures([s for s in found if key(s) == name]) for name in sorted({key(s) for s in found})}


def _line(each: Scored) -> dict[str, object]:
    return {
        "id": each.id,
        "task": each.task,
        "engine": each.engine,
        "measured_gib": round(each.measured / GIB, 3),
        "predicted_gib": [round(v / GIB, 3) for v in (each.predicted.low, each.predicted.likely, each.predicted.high)],
        "error": rounded(each.error),
    }
