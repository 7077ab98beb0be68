"""The screen of ``fit --simulate``: the peak, where it was reached, what it is made of, and what it cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.numbers import bytes_span
from rackrate.cli.sections import warnings, workload_line
from rackrate.units import GIB, format_bytes

if TYPE_CHECKING:
    from rackrate.app.wire.simulation import OnCardDoc, SimulationDocument


_LEAST_SHARE = 0.0005
"""What is less is not shown: it is 0.0 %."""


def table(document: SimulationDocument) -> Table:
    """The largest tensors at the peak: a row for equal ones."""
    rows = tuple(
        (
            held.name,
            f"{held.bytes / GIB:.3f}",
            f"{held.count}",
            " x ".join(map(str, held.shape)) or "1",
            held.dtype,
            held.operation,
            held.module,
        )
        for held in document.largest
    )
    return Table(
        keys=("kind", "gib", "count", "shape", "dtype", "operation", "module"),
        titles=("kind", "GiB", "count", "shape", "dtype", "operation", "first in module"),
        rows=rows,
        right=frozenset({1, 2}),
    )


def screen(document: SimulationDocument) -> Iterator[Part]:
    """What a person sees, top to bottom."""
    yield workload_line(document.workload) if document.workload else f"Program {document.subject}"
    yield ""
    yield pairs(_summary(document))
    yield ""
    yield drawn(_phases(document))
    yield ""
    yield drawn(_parts(document))
    yield ""
    yield "The largest tensors held at the peak, equal ones together:"
    yield drawn(_largest(document))
    yield ""
    yield "Not seen:"
    yield pairs([("  -", text) for text in document.not_seen], style=PLAIN)
    yield ""
    yield from warnings(document.warnings)


def _summary(document: SimulationDocument) -> list[tuple[str, str]]:
    libraries = ", ".join(f"{name} {number}" for name, number in document.libraries.items())
    phase = words.word(words.PHASES, document.peak_phase)
    rows = [
        ("Peak", f"{format_bytes(document.peak_bytes)} allocated, in {phase} of step {document.step}"),
        ("Reached by", f"{document.operation}{_where(document)}"),
    ]
    if document.estimated_bytes is not None:
        difference = document.estimated_bytes / document.peak_bytes - 1
        rows.append(("Estimate", f"{format_bytes(document.estimated_bytes)} without simulation ({difference:+.1%})"))
    if document.card is not None:
        rows += _card(document.card)
    return [*rows, ("Simulated", f"{document.steps} steps on tensors without values, with {libraries}")]


def _where(document: SimulationDocument) -> str:
    module = f" in {document.module}" if document.module else ""
    return f"{module}, {document.line}" if document.line else module


def _card(card: OnCardDoc) -> list[tuple[str, str]]:
    peak = f"{bytes_span(card.peak_bytes)} as the driver sees it, with the allocator's slack and the CUDA context"
    usable = f"{format_bytes(card.usable_bytes)}; headroom {format_bytes(card.headroom_bytes)}"
    return [
        ("Verdict", words.word(words.VERDICTS, card.verdict)),
        ("Card", f"{card.accelerator} ({card.product})"),
        ("On it", peak),
        ("Usable", usable),
    ]


def _phases(document: SimulationDocument) -> Table:
    rows = tuple((words.word(words.PHASES, each.phase), format_bytes(each.bytes)) for each in document.phases)
    return Table(keys=("phase", "peak"), titles=("phase", "peak"), rows=rows, right=frozenset({1}))


def _parts(document: SimulationDocument) -> Table:
    rows = tuple(
        (each.name.replace("_", " "), format_bytes(each.bytes), f"{each.bytes / document.peak_bytes:.1%}")
        for each in document.parts
        if each.bytes >= _LEAST_SHARE * document.peak_bytes
    )
    return Table(
        keys=("part", "size", "share"), titles=("at the peak", "size", "share"), rows=rows, right=frozenset({1, 2})
    )


def _largest(document: SimulationDocument) -> Table:
    """The table in words, with the unit that each size asks for."""
    found = table(document)
    sizes = (format_bytes(held.bytes) for held in document.largest)
    rows = tuple((row[0].replace("_", " "), size, *row[2:]) for row, size in zip(found.rows, sizes, strict=True))
    titles = tuple("size" if title == "GiB" else title for title in found.titles)
    return Table(keys=found.keys, titles=titles, rows=rows, right=found.right)
