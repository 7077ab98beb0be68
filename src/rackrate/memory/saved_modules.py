"""Modules trained whole beside adapters: copies of embedding and head, with their gradients and states.

PEFT copies each module, trains the copy and keeps the original (huggingface/peft
utils/other.py ModulesToSaveWrapper). The copy has the type of the base: adapters
are cast to FP32, these copies are not (tuners_utils.py cast_adapter_dtype looks at
adapter layers alone); beside a 4-bit base prepared for training it is FP32. Embedding
and head of a tied model are two copies.
"""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.model import Model
from rackrate.memory.layer_pass import FP32_BYTES
from rackrate.memory.optimizer import state_bytes
from rackrate.memory.stages import Stage
from rackrate.memory.weights import is_encoder
from rackrate.values import Value
from rackrate.workload.workload import Training, Workload


class Saved(Value, frozen=True, kw_only=True):
    """Parameters of the copies on one card before ZeRO divides them, ``element_bytes`` each.

    ``masters``: the engine keeps FP32 copies of 16-bit weights itself.
    """

    embedding: float = 0.0
    head: float = 0.0
    element_bytes: int = 2
    masters: bool = False

    @property
    def params(self) -> float:
        """All parameters."""
        return self.embedding + self.head

    @property
    def weight_bytes(self) -> float:
        """Bytes of the copies; their gradients take as much."""
        return self.element_bytes * self.params

    def state_bytes(self, optimizer: str) -> Range | Unknown:
        """States of the optimizer: in the copies' own type, or FP32 where the engine keeps masters."""
        moment = FP32_BYTES if self.masters else self.element_bytes
        return state_bytes(optimizer, self.head, self.embedding, moment)

    @property
    def master_bytes(self) -> float:
        """FP32 copies of 16-bit weights."""
        return FP32_BYTES * self.params if self.masters and self.element_bytes < FP32_BYTES else 0.0


NOT_SAVED = Saved()


def saved_modules(
    workload: Workload, training: Training, policy: TrainingPolicy, stage: Stage, *, widened: bool
) -> Saved:
    """The copies that ``stage`` trains (before tensor parallelism); ``widened``: the base around them is in FP32."""
    names = training.modules_to_save if workload.task.trains_adapters else ()
    if not names:
        return NOT_SAVED
    table = float((workload.model.vocab_size or 0) * (workload.model.hidden_size or 0))
    wide = widened or workload.weights.bits_per_weight >= 8 * FP32_BYTES
    return Saved(
        embedding=table if "embedding" in names and stage.first else 0.0,
        head=table if "head" in names and stage.last and _has_head(workload.model) else 0.0,
        element_bytes=FP32_BYTES if wide else 2,
        masters=policy.master_weights and policy.adapter_bytes < FP32_BYTES,
    )


def _has_head(model: Model) -> bool:
    return not is_encoder(model)
