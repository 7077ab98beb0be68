"""Parts of a screen that several verbs share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """Findings that do not stop the answer: those of one code share a line, and so do parts without a price."""
    by_code: dict[str, list[FindingDoc]] = {}
    for finding in found:
        by_code.setdefault(finding.code, []).append(finding)
    for code, group in by_code.items():
        if code == "unknown_rule":
            yield from _without_rule(group)
        else:
            yield _told(code, group)


def _without_rule(group: Sequence[FindingDoc]) -> Iterator[str]:
    """Parts of the bill that no rule was seen for: left out of the total, or assumed in it."""
    left_out = _parts(f for f in group if f.severity != "info")
    assumed = _parts(f for f in group if f.severity == "info")
    if left_out:
        yield f"! not in the cost, no price was seen: {left_out} (ask the provider)"
    if assumed:
        yield f"- no rule was seen, the careful side is assumed: {assumed}"


def _parts(findings: Iterable[FindingDoc]) -> str:
    return ", ".join(dict.fromkeys(f.subject.rpartition(": ")[2].replace("_", " ") for f in findings))


def _told(code: str, group: Sequence[FindingDoc]) -> str:
    seen = dict.fromkeys(f.observed + (f", expected {f.expected}" if f.expected else "") for f in group)
    steps = dict.fromkeys(f.action for f in group if f.action)
    mark = "!" if any(f.severity != "info" for f in group) else "-"
    return f"{mark} {code.replace('_', ' ')}: {'; '.join(seen)}" + (f" ({'; '.join(steps)})" if steps else "")
