"""Domain values to wire documents: no decisions, only spelling."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, TypedDict

from rackrate.app.context import Context
from rackrate.app.version import VERSION
from rackrate.app.wire.parts import (
    AssumptionDoc,
    CacheDoc,
    ChangeDoc,
    ComponentDoc,
    FindingDoc,
    PhaseDoc,
    ProblemDocument,
    RangeDoc,
    WorkloadDoc,
)
from rackrate.app.wire.plan import LineDoc
from rackrate.units import HOURS_PER_DAY

if TYPE_CHECKING:
    from rackrate.cost.charge_types import Line
    from rackrate.evidence import Range
    from rackrate.memory.estimate_types import CacheRoom, Component, MemoryEstimate
    from rackrate.memory.fit_search import Change as FitChange
    from rackrate.problems import Finding
    from rackrate.workload.workload import Assumption, Workload


class Header(TypedDict):
    """The keys that every document carries."""

    schema: str
    rackrate_version: str
    facts_digest: str
    as_of: str


class _WorkloadHead(TypedDict):
    task: str
    model: str
    engine: str
    precision: str
    weight_format: str


def header(name: str, context: Context) -> Header:
    """The header of a document of kind ``name``."""
    return Header(
        schema=f"rackrate.{name}/1",
        rackrate_version=VERSION,
        facts_digest=context.digest,
        as_of=context.at.isoformat(),
    )


def problems_document(findings: Iterable[Finding], context: Context) -> ProblemDocument:
    """Findings that stopped a request."""
    return ProblemDocument(**header("problems", context), problems=finding_docs(findings))


def span(value: Range) -> RangeDoc:
    """A range."""
    return RangeDoc(low=value.low, likely=value.likely, high=value.high)


def finding_docs(findings: Iterable[Finding]) -> list[FindingDoc]:
    """Findings in the order given."""
    return [
        FindingDoc(
            code=str(f.code),
            severity=str(f.severity),
            subject=f.subject,
            observed=f.observed,
            expected=f.expected,
            action=f.action,
        )
        for f in findings
    ]


def assumption_docs(made: Iterable[Assumption]) -> list[AssumptionDoc]:
    """Defaults that were made."""
    from rackrate.workload.reasons import explain

    return [AssumptionDoc(key=a.key, value=a.value, why=a.why, explanation=explain(a)) for a in made]


def component_docs(parts: Iterable[Component]) -> list[ComponentDoc]:
    """Parts of memory; phases joined by ``+``."""
    return [
        ComponentDoc(name=p.name, phase="+".join(p.phases), bytes=span(p.bytes), note=p.note)
        for p in parts
        if p.bytes.high > 0
    ]


def phase_docs(memory: MemoryEstimate) -> list[PhaseDoc]:
    """Peaks by phase."""
    return [PhaseDoc(phase=str(phase), bytes=span(peak)) for phase, peak in memory.phases]


def cache_doc(cache: CacheRoom | None) -> CacheDoc | None:
    """Room for the KV cache."""
    if cache is None:
        return None
    return CacheDoc(
        bytes_per_token=cache.bytes_per_token,
        room_bytes=span(cache.room_bytes),
        tokens=span(cache.tokens),
        context_tokens=cache.context_tokens,
        full_sequences=cache.full_sequences,
    )


def fit_change_docs(changes: Iterable[FitChange]) -> list[ChangeDoc]:
    """Single changes that make a workload fit."""
    return [ChangeDoc(knob=c.knob, before=c.before, after=c.after, peak_bytes=span(c.peak)) for c in changes]


def plain(amount: Decimal) -> str:
    """A decimal number in full, without exponent or trailing zeros."""
    return f"{amount.normalize():f}"


def line_docs(lines: Iterable[Line]) -> list[LineDoc]:
    """Lines of a bill, amounts as decimal strings."""
    return [
        LineDoc(
            name=line.name,
            quantity=plain(line.quantity),
            unit=line.unit,
            unit_price=plain(line.unit_price.amount),
            amount=plain(line.amount.amount),
            currency=line.amount.currency,
            rule=line.rule,
        )
        for line in lines
    ]


def workload_doc(work: Workload) -> WorkloadDoc:
    """The workload as understood."""
    training, serving = work.training, work.serving
    common = _WorkloadHead(
        task=str(work.task),
        model=work.model.id,
        engine=work.engine_id,
        precision=str(work.precision),
        weight_format=work.weights.id,
    )
    if training is not None:
        context, batch = training.sequence_tokens, training.micro_batch
        seen = training.pictured
        return WorkloadDoc(
            **common,
            context_tokens=context,
            batch=batch,
            tokens=training.tokens,
            image_width=seen.width if seen else None,
            image_height=seen.height if seen else None,
        )
    if work.images is not None:
        return WorkloadDoc(
            **common,
            context_tokens=None,
            batch=work.images.at_once,
            image_width=work.images.width,
            image_height=work.images.height,
            images=work.images.count,
            steps=work.images.steps,
            frames=work.images.frames if work.images.frames > 1 else None,
            offload=work.images.pipeline_offload,
        )
    if serving is None:
        raise ValueError("a workload trains, serves or makes images")
    return WorkloadDoc(
        **common,
        context_tokens=serving.context_tokens,
        batch=serving.concurrency,
        prompt_tokens=serving.prompt_tokens,
        output_tokens=serving.output_tokens,
        audio_seconds=serving.audio_seconds,
        beams=serving.beams if serving.encoded else None,
        concurrency=serving.concurrency,
        requests=serving.requests,
        requests_per_s=serving.requests_per_s,
        online=serving.online,
        horizon_hours=work.use.horizon_days * HOURS_PER_DAY if work.is_service else None,
    )
