"""Render scores: what cards reached in public rendering benchmarks."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.values import Value


class RenderScore(Value, frozen=True, kw_only=True):
    """One published score; scores are comparable within one benchmark, version and backend alone.

    ``backend`` is the interface to the card (OptiX, CUDA, HIP), empty where it
    is not stated. ``results``: how many runs the score is the median of (None: not stated).
    """

    accelerator: str
    benchmark: str
    version: str
    backend: str
    value: float
    unit: str
    higher_is_better: bool
    results: int | None
    source: str
    date: str
    note: str

    @property
    def test(self) -> tuple[str, str, str, str]:
        """What two scores must share to be compared."""
        return (self.benchmark, self.version, self.backend, self.unit)


def render_score(row: Mapping[str, str]) -> RenderScore:
    """One row of render_scores.csv.

    Raises:
        ValueError: a number cannot be read.
    """
    texts = {name: row[name] for name in _TEXTS}
    return RenderScore(
        **texts,
        value=float(row["value"]),
        higher_is_better=row["higher_is_better"] == "true",
        results=int(row["results"]) if row["results"] else None,
    )


_TEXTS = ("accelerator", "benchmark", "version", "backend", "unit", "source", "date", "note")
