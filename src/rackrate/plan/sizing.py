"""Sizing: the largest models that one card holds for a kind of work, and up to which it stays half empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.model import Model
from rackrate.memory.estimate import Demand, demand, fit_on
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.plan.idle import OVERSIZED_FRACTION
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload


class Held(Value, frozen=True, kw_only=True):
    """A model on a card: the likely peak as a fraction of what is usable."""

    model: Model
    fraction: float


class Sized(Value, frozen=True, kw_only=True):
    """What one card is large enough for.

    ``largest`` surely fits, ``too_small_for`` is the next larger model, which
    does not surely fit; up to ``half_empty`` the work leaves more than half of the card idle.
    """

    largest: Held | None
    half_empty: Held | None
    too_small_for: Model | None


class Ladder:
    """Dense text models by size under one kind of work; needs are computed once and held against many cards.

    Models whose own context is shorter than the work's are left out.
    """

    def __init__(self, work: Workload, engine: Engine, models: Iterable[Model]) -> None:
        self.work = work
        self.engine = engine
        can = [model for model in models if model.max_context is None or model.max_context >= _tokens(work)]
        self.models: Sequence[Model] = sorted(can, key=lambda model: (model.params_total, model.id))
        self._demands: dict[str, Demand | Unknown] = {}

    def on(self, card: Accelerator) -> Sized | Unknown:
        """What one ``card`` is large enough for, or why it is not known.

        Walks down from the largest model whose weights alone find room, so
        that a long context or a wide vocabulary counts and not the size alone.
        """
        total = card.memory_total_bytes
        if isinstance(total, Unknown):
            return total
        largest = self._largest(card, total, fraction=1.0)
        half = self._largest(card, total, fraction=1 - OVERSIZED_FRACTION)
        above = self.models.index(largest.model) + 1 if largest else 0
        next_up = self.models[above] if above < len(self.models) else None
        return Sized(largest=largest, half_empty=half, too_small_for=next_up)

    def _largest(self, card: Accelerator, total_bytes: float, fraction: float) -> Held | None:
        """The largest model that fits and whose likely peak is at most ``fraction`` of what is usable."""
        for model in reversed(self.models):
            if model.params_total * self.work.weights.bytes_per_weight > fraction * total_bytes:
                continue
            memory = self._memory(model, card)
            if memory is None or memory.verdict is not Verdict.FITS:
                continue
            used = memory.peak.likely / memory.usable_bytes
            if used <= fraction:
                return Held(model=model, fraction=used)
        return None

    def _memory(self, model: Model, card: Accelerator) -> MemoryEstimate | None:
        if model.id not in self._demands:
            self._demands[model.id] = demand(replace(self.work, model=model), Layout(), self.engine)
        needed = self._demands[model.id]
        memory = needed if isinstance(needed, Unknown) else fit_on(needed, card)
        return None if isinstance(memory, Unknown) else memory


def _tokens(work: Workload) -> int:
    """Tokens of one sequence."""
    return work.training.sequence_tokens if work.training else work.serving.context_tokens if work.serving else 0


def ladder_models(models: Iterable[Model]) -> list[Model]:
    """Models to measure a card with: dense ones that generate text (experts take more memory than they compute)."""
    return [model for model in models if model.modality == "text" and not model.is_moe and model.generates_text]
