"""Parts of a screen that several verbs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.units import format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rackrate.app.wire import AssumptionDoc, FindingDoc, WorkloadDoc


def workload_line(work: WorkloadDoc) -> str:
    """The workload in one line."""
    text = f"{words.word(words.TASKS, work.task)} of {work.model}, {work.weight_format} weights, {work.precision}"
    if work.tokens is not None:
        return f"{text}, {format_count(work.tokens)} tokens, batch {work.batch} x {work.context_tokens}"
    load = f", {work.concurrency} at once, {work.prompt_tokens} in + {work.output_tokens} out tokens"
    if work.requests_per_s is not None:
        load += f", {work.requests_per_s:g} requests/s"
    if work.requests is not None:
        load += f", {format_count(work.requests)} requests"
    return f"{text}{load}"


def pairs(rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Names and texts in two columns, wrapped."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, text)
    return grid


def assumptions(made: Sequence[AssumptionDoc]) -> Iterator[RenderableType]:
    """Defaults that were made; set the key to change one."""
    if not made:
        return
    yield "Assumed (set the key to change it):"
    yield pairs([(f"  {a.key}", f"{a.value} ({a.why.replace('_', ' ')})") for a in made])
    yield ""


def warnings(found: Sequence[FindingDoc]) -> Iterator[RenderableType]:
    """Findings that do not stop the answer."""
    for finding in found:
        parts = [finding.observed, f"expected {finding.expected}" if finding.expected else "", finding.action]
        text = "; ".join(p for p in parts if p)
        yield f"{finding.severity}: {finding.subject}: {finding.code.replace('_', ' ')}: {text}"
