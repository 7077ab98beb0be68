"""What a simulation says: peaks by phase, the operation at the peak, and what was held there.

Plain records: nothing here needs torch.
"""

from __future__ import annotations

from enum import StrEnum

from rackrate.memory.estimate_types import Phase
from rackrate.values import Value


class Kind(StrEnum):
    """What a piece of memory is for."""

    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    OPTIMIZER_STATES = "optimizer_states"
    ACTIVATIONS = "activations"
    LOGITS = "logits"
    CACHE = "kv_cache"
    TEMPORARY = "temporary"
    OTHER = "other"


class Held(Value, frozen=True, kw_only=True):
    """Memory held at the peak: ``count`` equal pieces of together ``bytes``, made by ``operation`` in ``module``."""

    kind: Kind
    bytes: int
    count: int
    shape: tuple[int, ...]
    dtype: str
    operation: str
    module: str


class Simulation(Value, frozen=True, kw_only=True):
    """The peak of what a program holds on one card, in bytes that PyTorch's allocator hands out.

    ``phases``: the peak of each phase that was seen. ``operation`` and
    ``module`` reached the whole peak, in step ``step`` of ``steps``, on ``line``
    of the user's program where there is one. ``kinds`` and ``largest``: what the
    peak is made of. ``values_read``: lines that read a number off the card,
    which a simulation does not have; each got zero.
    """

    peak_bytes: int
    peak_phase: Phase
    operation: str
    module: str
    line: str
    step: int
    steps: int
    phases: tuple[tuple[Phase, int], ...]
    kinds: tuple[tuple[Kind, int], ...]
    largest: tuple[Held, ...]
    values_read: tuple[str, ...]
    allocations: int


class Adapters(Value, frozen=True, kw_only=True):
    """Low-rank adapters of ``rank`` on the linear layers named ``targets`` (last parts of module paths)."""

    rank: int
    targets: tuple[str, ...]
    element_bytes: int


class Job(Value, frozen=True, kw_only=True):
    """A run of a transformers model: ``config`` as its config.json says.

    Training: ``accumulation`` times ``batch`` sequences of ``tokens`` make an
    optimizer step. Inference:
    ``batch`` prompts of ``tokens``, then ``output_tokens`` more, one at a time.
    With ``source_tokens`` an encoder reads that many positions for each
    sequence, and ``tokens`` are the decoder's.
    ``dtype`` is torch's name of the weights' type; ``autocast`` the type that
    FP32 weights are computed in, empty for none. ``optimizer``: an id such as
    ``adamw``, with ``-foreach`` (PyTorch's default on a card), ``-fused`` or
    ``-loop`` for its form. ``attention``: ``flash`` or ``eager``.
    """

    config: tuple[tuple[str, object], ...]
    trains: bool
    batch: int
    tokens: int
    output_tokens: int = 0
    source_tokens: int = 0
    accumulation: int = 1
    dtype: str = "bfloat16"
    autocast: str = ""
    optimizer: str = "adamw-foreach"
    checkpointing: bool = False
    attention: str = "flash"
    adapters: Adapters | None = None
