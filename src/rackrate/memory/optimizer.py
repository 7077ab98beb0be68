"""Optimizer: what it keeps for every trained parameter, and its working copy at the step."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown

MOMENTS = {"adamw": 2, "adam": 2, "lion": 1, "sgd": 0, "sgd-momentum": 1, "adafactor": 0, "muon": 1}
"""Moments per matrix parameter.

AdamW, arXiv 1711.05101; Lion, arXiv 2302.06675; torch.optim.SGD (none without
momentum); Adafactor without momentum keeps row and column means, arXiv
1804.04235; Muon keeps one momentum on matrices and leaves embedding and head
to AdamW (KellerJordan/Muon README).
"""

EIGHT_BIT_BYTES = 1 + 4 / 256
"""Bytes of one 8-bit moment: block-wise quantised with an FP32 scale per 256 (arXiv 2110.02861; bitsandbytes)."""


def parts(optimizer: str) -> tuple[str, bool, bool]:
    """An optimizer id as (base, 8-bit, paged), e.g. ``paged-adamw-8bit``."""
    base = optimizer.removeprefix("paged-").removesuffix("-8bit")
    return base, optimizer.endswith("-8bit"), optimizer.startswith("paged-")


def state_bytes(optimizer: str, matrices: float, embeddings: float, moment_bytes: int) -> Range | Unknown:
    """Bytes of the optimizer's states for ``matrices`` + ``embeddings`` trained parameters.

    Two FP32 moments are 8 bytes a parameter; in pure 16-bit training the
    moments take the parameter's type, 2 bytes each (torch.optim.AdamW creates
    them with zeros_like). The embedding keeps FP32 moments under 8-bit
    optimizers (transformers Trainer registers that override). Paged states
    live in managed memory that the driver moves to the host when the card is
    full (QLoRA, arXiv 2305.14314 section 3), so the card needs room for none
    of them at most times.
    """
    base, eight_bit, paged = parts(optimizer)
    if base not in MOMENTS:
        return Unknown(f"memory of the optimizer {optimizer} is not known")
    count = MOMENTS[base]
    each = EIGHT_BIT_BYTES if eight_bit else moment_bytes
    outer = 2 if base == "muon" else count
    whole = count * each * matrices + outer * (4 if eight_bit else moment_bytes) * embeddings
    if paged:
        largest = outer * 4 * embeddings  # pages in while it is updated
        return Range(0.0, 0.0, largest)
    return Range.exact(whole)


def step_temporary_bytes(optimizer: str, parameters: float, parameter_bytes: int) -> float:
    """The multi-tensor working copy of AdamW at the step: one more value per parameter.

    torch/optim/adamw.py _multi_tensor_adamw (the default on CUDA unless fused)
    makes the denominators of all parameters at once; pure 16-bit training of
    N parameters therefore peaks at 10 N bytes and not 8 N.
    """
    base, eight_bit, paged = parts(optimizer)
    whole = base in {"adamw", "adam"} and not eight_bit and not paged
    return parameters * parameter_bytes if whole else 0.0
