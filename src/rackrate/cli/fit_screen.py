"""The screen of ``fit``: the verdict, the account of memory as a picture, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli import fit_parts, words
from rackrate.cli.layout import Part, Table, drawn, pairs
from rackrate.cli.numbers import bytes_span
from rackrate.cli.sections import assumptions, warnings, workload_line
from rackrate.units import GIB, MB, format_bytes

if TYPE_CHECKING:
    from rackrate.app.wire.fit import FitDocument
    from rackrate.app.wire.parts import CacheDoc, ComponentDoc

_BAR_CELLS = 56
_FILLS = "█▓▒░#=+~-·"


def table(document: FitDocument) -> Table:
    """The account: a row for each component on each number of cards, beside the verdict."""
    rows = tuple(
        (*(document.accelerator, str(on.gpus), on.verdict or "", on.layout or ""), *cells)
        for on in document.counts
        for cells in (map(_component, on.components) if on.components else [("", "", "", "", "", on.reason or "")])
    )
    keys = ("accelerator", "gpus", "verdict", "layout", "component", "phase", "low_gib", "likely_gib", "high_gib")
    titles = ("card", "n", "verdict", "layout", "component", "held in", "low GiB", "GiB", "high GiB", "note")
    return Table(keys=(*keys, "note"), titles=titles, rows=rows, right=frozenset({1, 6, 7, 8}))


def _component(part: ComponentDoc) -> tuple[str, ...]:
    sizes = (f"{size / GIB:.3f}" for size in (part.bytes.low, part.bytes.likely, part.bytes.high))
    return (part.name, part.phase, *sizes, part.note)


def _account(document: FitDocument) -> Table:
    """The account in words; the column of notes only where there are any."""
    rows = tuple(
        (
            c.name.replace("_", " "),
            ", ".join(words.word(words.PHASES, phase) for phase in c.phase.split("+")),
            *(f"{b / GIB:.2f}" for b in (c.bytes.low, c.bytes.likely, c.bytes.high)),
            *([c.note] if any(part.note for part in document.components) else []),
        )
        for c in document.components
    )
    titles = ("component", "held in", "low GiB", "GiB", "high GiB", "note")[: len(rows[0]) if rows else 0]
    return Table(keys=titles, titles=titles, rows=rows, right=frozenset({2, 3, 4}))


def screen(document: FitDocument) -> Iterator[Part]:
    """What a person sees, top to bottom."""
    yield workload_line(document.workload)
    yield ""
    yield pairs(_summary(document))
    yield ""
    yield from _bar(document)
    yield ""
    yield drawn(_account(document))
    yield ""
    yield from _changes(document)
    yield from fit_parts.counts(document)
    yield from fit_parts.more(document)
    yield from assumptions(document.assumptions)
    yield from warnings(document.warnings)


def _summary(document: FitDocument) -> list[tuple[str, str]]:
    peak = document.peak_bytes
    phase = words.word(words.PHASES, document.peak_phase)
    reports = f"{format_bytes(document.memory_total_bytes)} that the driver reports"
    metrics = f"allocated {format_bytes(document.allocated_bytes.likely)}, "
    metrics += f"reserved {format_bytes(document.reserved_bytes.likely)}"
    headroom = format_bytes(document.headroom_bytes)
    rows = [
        ("Verdict", words.word(words.VERDICTS, document.verdict)),
        (
            "Card",
            f"{_machines(document)}{document.gpus} x {document.accelerator} ({document.product}){_devices(document)}",
        ),
        ("Peak", f"{bytes_span(peak)} on the fullest card, in {phase}, as the driver sees it"),
        ("Usable", f"{format_bytes(document.usable_bytes)} of {reports}; headroom {headroom}"),
        ("Metrics", metrics),
        ("Layout", document.layout),
    ]
    return [*rows, *([("KV cache", _cache_text(document.cache))] if document.cache else [])]


def _cache_text(cache: CacheDoc) -> str:
    each = f"{cache.bytes_per_token / MB:.4g} MB a token on a card"
    room = f"room {format_bytes(cache.room_bytes.likely)} = {cache.tokens.likely:,.0f} tokens"
    return f"{each}; {room} = {cache.full_sequences:,} full sequences of {cache.context_tokens:,}"


def _machines(document: FitDocument) -> str:
    return f"{document.nodes} machines of " if document.nodes > 1 else ""


def _devices(document: FitDocument) -> str:
    if document.gpus * document.nodes == 1:
        return ""
    link = words.word(words.INTERCONNECTS, document.interconnect)
    joined = f"joined by {link}" if document.gpus > 1 else ""
    if document.nodes > 1:
        joined = f"{joined}, machines by a network" if joined else "joined by a network"
    return f": {document.gpus * document.nodes} devices {joined}, not one larger card"


def _bar(document: FitDocument) -> Iterator[Part]:
    """The parts held at the peak as one bar against what is usable."""
    held = [c for c in document.components if _held_at_peak(c.phase, document.peak_phase) and c.bytes.likely > 0]
    scale = _BAR_CELLS / max(document.usable_bytes, document.peak_bytes.likely)
    bar, legend = "", []
    for fill, part in zip(_FILLS, sorted(held, key=lambda c: -c.bytes.likely), strict=False):
        cells = round(part.bytes.likely * scale)
        bar += fill * cells
        if cells:
            # no-break spaces: a mark stays with its part when the legend is wrapped
            legend.append(
                f"{fill} {part.name.replace('_', ' ')} {format_bytes(part.bytes.likely)}".replace(" ", "\xa0")
            )
    edge = round(document.usable_bytes * scale)
    drawn = bar[:edge].ljust(edge) + "|" + bar[edge:]
    yield f"{drawn} {format_bytes(document.usable_bytes)} usable"
    yield "  ".join(legend)


def _held_at_peak(phases: str, peak: str) -> bool:
    return "always" in phases.split("+") or peak in phases.split("+")


def _changes(document: FitDocument) -> Iterator[Part]:
    if not document.changes:
        return
    yield "What would make it fit:" if document.verdict != "fits" else "What else fits:"
    rows = [
        (
            f"  {c.knob}",
            f"{c.before} -> {c.after}" + (f" (peak {format_bytes(c.peak_bytes.likely)})" if c.peak_bytes else ""),
        )
        for c in document.changes
    ]
    yield pairs(rows)
    yield ""
