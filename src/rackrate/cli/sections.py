"""Parts of a screen that several verbs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import ALERT, PLAIN, Part, pairs
from rackrate.units import format_count

if TYPE_CHECKING:
    from rackrate.app.wire.parts import AssumptionDoc, FindingDoc, WorkloadDoc

UNPRICED = "unknown_rule"
NOT_KEYS = frozenset({"startup", "interconnect"})
"""What is assumed of machines, not of the workload: no key says otherwise."""
_NAMES = {"little_law": "Little's law", "qlora_format": "QLoRA format", "usual_lora_rank": "usual LoRA rank"}
"""Reasons with a name in them, spelt as it is."""


def workload_line(work: WorkloadDoc) -> str:
    """The workload in one line."""
    text = f"{words.word(words.TASKS, work.task)} of {work.model}, {work.weight_format} weights, {work.precision}"
    if work.tokens is not None and work.image_width is not None and work.context_tokens:
        count = f"{work.tokens / work.context_tokens:,.0f} images of {work.image_width} x {work.image_height} pixels"
        return f"{text}, {count}, batch {work.batch}"
    if work.tokens is not None:
        return f"{text}, {format_count(work.tokens)} tokens, batch {work.batch} x {work.context_tokens}"
    if work.image_width is not None:
        offload = f", offload {work.offload}" if work.offload != "none" else ""
        made = (
            f"videos of {work.frames} frames, {work.steps} steps each"
            if work.frames
            else f"images of {work.steps} steps"
        )
        count = f", {work.images:,.0f} {made}"
        return f"{text}, {work.image_width} x {work.image_height} pixels, {work.batch} at a time{offload}{count}"
    load = f", {work.concurrency} at once, {work.prompt_tokens} in + {work.output_tokens} out tokens"
    if work.audio_seconds is not None:
        load = f", {work.concurrency} at once, {work.audio_seconds:g} s of sound, {work.output_tokens} tokens a window"
    if (work.beams or 1) > 1:
        load += f", {work.beams} beams"
    if work.requests_per_s is not None:
        load += f", {work.requests_per_s:g} requests/s"
    if work.requests is not None:
        load += f", {format_count(work.requests)} requests"
    return f"{text}{load}"


def assumptions(made: Sequence[AssumptionDoc]) -> Iterator[Part]:
    """Defaults that were made; set the key to change one."""
    if not made:
        return
    for heading, some in (
        ("Assumed (set the key to change it):", [a for a in made if a.key not in NOT_KEYS]),
        ("Assumed, and no key changes it:", [a for a in made if a.key in NOT_KEYS]),
    ):
        if some:
            yield heading
            yield pairs([(f"  {a.key}", f"{a.value} ({_reason(a.why)})") for a in some], style=PLAIN)
    yield ""


def _reason(why: str) -> str:
    """The code of a reason as words, and what it was taken from: ``native_dtype(float16)``."""
    reason, _, taken_from = why.rstrip(")").partition("(")
    words = _NAMES.get(reason, reason.replace("_", " "))
    return f"{words}: {taken_from}" if taken_from else words


def warnings(found: Sequence[FindingDoc]) -> Iterator[Part]:
    """Findings that do not stop the answer: those of one code share a line; parts without a price are with the cost."""
    by_code: dict[str, list[FindingDoc]] = {}
    for finding in found:
        by_code.setdefault(finding.code, []).append(finding)
    if rows := [_told(code, group) for code, group in by_code.items() if not all(map(is_unpriced, group))]:
        yield pairs(rows, style=ALERT)


def is_unpriced(finding: FindingDoc) -> bool:
    """Whether a finding says that a part of the bill is not in the total."""
    return finding.code == UNPRICED and finding.severity != "info"


def unpriced(found: Sequence[FindingDoc]) -> list[str]:
    """Parts of the bill that no rule was seen for."""
    parts = (f.subject.rpartition(": ")[2] for f in found if is_unpriced(f))
    return list(dict.fromkeys(words.word(words.BILL, part) for part in parts))


def _told(code: str, group: Sequence[FindingDoc]) -> tuple[str, str]:
    told = [f for f in group if not is_unpriced(f)]
    seen = dict.fromkeys(f.observed + (f" (expected {f.expected})" if f.expected else "") for f in told)
    steps = dict.fromkeys(f.action for f in told if f.action)
    mark = "!" if any(f.severity != "info" for f in told) else "-"
    return mark, f"{code.replace('_', ' ')}: {'; '.join(seen)}" + (f"; next: {'; '.join(steps)}" if steps else "")
