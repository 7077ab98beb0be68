"""How a layer is run when it is trained: what decides which of its values are kept."""

from __future__ import annotations

from rackrate.facts.accelerator import Precision
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.values import Value

FP32_BYTES = 4


class Pass(Value, frozen=True, kw_only=True):
    """How a layer is run when it is trained.

    ``element_bytes`` of an activation (2, or 4 in FP32); ``tensor``: cards that
    divide a layer; ``flash``: attention never stores scores; ``adapters``: the
    linear layers with adapters, empty when all weights are trained;
    ``adapter_bytes`` of one adapter weight; ``tokens_per_sequence`` and
    ``tokens`` of one micro-batch. ``code`` says what the engine's own layers
    keep; ``quantised``: the frozen weights are unpacked for each product.
    """

    element_bytes: int
    tensor: int
    flash: bool
    adapters: tuple[str, ...]
    adapter_bytes: int
    tokens_per_sequence: int
    tokens: int
    code: TrainingPolicy | None = None
    quantised: bool = False
    compiled: bool = False
    sequence: bool = False

    @property
    def whole(self) -> int:
        """Cards that divide what tensor parallelism leaves whole: norms, their outputs and residuals."""
        return self.tensor if self.sequence else 1

    @property
    def expands_heads(self) -> bool:
        """Whether grouped keys and values are copied to all query heads."""
        return self.code is not None and self.code.expands_heads

    @property
    def fused_qkv(self) -> bool:
        """Whether one matrix makes queries, keys and values."""
        return self.code is not None and self.code.fused_qkv

    @property
    def dropout(self) -> bool:
        """Whether the inputs of adapters are dropped out."""
        return self.code is not None and self.code.adapter_dropout

    @property
    def hub(self) -> bool:
        """Whether layers are those of transformers."""
        return self.code is not None and self.code.hub_code

    @property
    def fused(self) -> bool:
        """Whether norms and gates are single kernels that keep their inputs alone."""
        return self.code is not None and self.code.fused_layers

    @property
    def plain_norms(self) -> bool:
        """Whether norms keep their input alone, in the compute type."""
        return self.compiled or self.fused or (self.code is not None and self.code.fused_norms)

    @property
    def writes_over(self) -> bool:
        """Whether hand-written kernels put gradients where kept values were."""
        return self.code is not None and self.code.writes_over

    @property
    def keeps_inputs(self) -> bool:
        """Whether quantised layers keep their inputs."""
        return self.quantised and self.code is not None and self.code.keeps_inputs


def element_bytes(precision: Precision) -> int:
    """Bytes of one activation: 4 in FP32 and TF32, else 2 (8-bit and 4-bit types keep 16-bit activations)."""
    return FP32_BYTES if precision in {Precision.FP32, Precision.TF32} else 2
