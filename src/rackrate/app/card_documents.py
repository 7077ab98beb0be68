"""What is known of one card beyond its facts, as documents: measurements, slices, what it suits, variants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackrate.app.wire.gpus import MeasuredDoc, RenderDoc, SliceDoc, SuitDoc
from rackrate.evidence import Fact, Unknown
from rackrate.facts import rows
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.baselines import Baseline, Reached, published, reached
from rackrate.facts.records import MigProfile
from rackrate.facts.render import RenderScore
from rackrate.facts.suits import suits
from rackrate.speed.rendering import compared, scores_of


def measured_docs(card: Accelerator, figures: Iterable[Baseline]) -> list[MeasuredDoc]:
    """What was reached with ``card``, beside what is published of it."""
    return [_measured(card, span) for span in reached(card.id, figures)]


def _measured(card: Accelerator, span: Reached) -> MeasuredDoc:
    fact = published(card, span.quantity)
    return MeasuredDoc(
        quantity=span.quantity,
        kind=str(span.kind),
        gpus=span.gpus,
        low=span.low,
        high=span.high,
        unit=span.unit,
        figures=span.figures,
        published=fact.value if fact else None,
        share_of_published=span.high / fact.value if fact else None,
        condition=span.condition,
        source=span.source,
    )


def render_docs(card: Accelerator, first: Accelerator, scores: Sequence[RenderScore]) -> list[RenderDoc]:
    """The rendering scores of ``card``, each beside that of ``first`` in the same test."""
    beside = () if card.id == first.id else compared(card.id, first.id, scores)
    times = {} if isinstance(beside, Unknown) else {each.mine: each.times for each in beside}
    return [
        RenderDoc(
            benchmark=score.benchmark,
            version=score.version,
            backend=score.backend,
            value=score.value,
            unit=score.unit,
            higher_is_better=score.higher_is_better,
            results=score.results,
            times_first=times.get(score),
            source=score.source,
            date=score.date,
            note=score.note,
        )
        for score in scores_of(card.id, scores)
    ]


def slice_docs(card: Accelerator, profiles: Iterable[MigProfile]) -> list[SliceDoc]:
    """The ways to cut ``card`` into equal slices, and what each leaves unused.

    The compute of a card with seven slices is 7/7, the memory what its label
    says; a slice's own memory is less than its label by what the driver keeps.
    """
    return [_slice(card, profile) for profile in profiles if card.id in profile.accelerators]


def _slice(card: Accelerator, profile: MigProfile) -> SliceDoc:
    taken = profile.max_instances * profile.memory_label_gb / card.memory_sold_gb
    return SliceDoc(
        profile=profile.profile,
        compute_share=float(profile.sm_fraction),
        memory_label_gb=profile.memory_label_gb,
        at_most=profile.max_instances,
        compute_unused=float(1 - profile.max_instances * profile.sm_fraction),
        memory_unused=max(0.0, 1 - taken),
        source=profile.source,
        note=profile.notes,
    )


def suit_docs(card: Accelerator) -> list[SuitDoc]:
    """What ``card`` suits by rule."""
    return [SuitDoc(work=s.work, verdict=str(s.verdict), because=s.because, value=s.value) for s in suits(card)]


def variants_of(card: Accelerator, table: Iterable[rows.Row]) -> list[tuple[str, Fact]]:
    """Figures of ``card`` that hold under a condition only, with the quantity that each is of."""
    found = []
    for row in table:
        if row["accelerator"] == card.id and row["condition"]:
            name = rows.QUANTITIES[row["quantity"]][1]
            fact = rows.fact([row[column] for column in rows.FACT_COLUMNS])
            if fact != card.facts.get(name):
                found.append((name, fact))
    return found
