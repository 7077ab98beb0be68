"""Optimizer: what it keeps for every trained parameter, and its working copy at the step."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.values import Value

FP32_BYTES = 4

MOMENTS = {"adamw": 2, "adam": 2, "lion": 1, "sgd": 0, "sgd-momentum": 1, "adafactor": 0, "muon": 1, "prodigy": 4}
"""Moments per matrix parameter.

AdamW, arXiv 1711.05101; Lion, arXiv 2302.06675; torch.optim.SGD (none without
momentum); Adafactor without momentum keeps row and column means, arXiv
1804.04235; Prodigy keeps two moments, the first weights and a running sum
(konstmish/prodigy prodigy.py); Muon keeps one momentum on matrices and leaves
embedding and head to AdamW (KellerJordan/Muon README).
"""

EIGHT_BIT_BYTES = 1 + 4 / 256
"""Bytes of one 8-bit moment: block-wise quantised with an FP32 scale per 256 (arXiv 2110.02861; bitsandbytes)."""


FORMS = ("-8bit", "-fused", "-loop")

NEWTON_SCHULZ_COPIES = 3
"""16-bit copies of a matrix while Muon orthogonalises it (KellerJordan/Muon zeropower_via_newtonschulz5: X, A, B X)."""

FACTORED_COPIES = 2
"""FP32 copies of a tensor in Adafactor's step: its squared gradient and its update (arXiv 1804.04235, algorithm 4)."""


class Form(Value, frozen=True, kw_only=True):
    """An optimizer id taken apart, e.g. ``paged-adamw-8bit``: its ``base``, and the way it is run."""

    base: str
    eight_bit: bool
    paged: bool
    fused: bool
    loop: bool


def form(optimizer: str) -> Form:
    """The parts of an optimizer id."""
    name = optimizer.removeprefix("paged-")
    return Form(
        base=name.removesuffix("-8bit").removesuffix("-fused").removesuffix("-loop"),
        eight_bit=name.endswith("-8bit"),
        paged=optimizer.startswith("paged-"),
        fused=name.endswith("-fused"),
        loop=name.endswith("-loop"),
    )


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
    how = form(optimizer)
    if how.base not in MOMENTS:
        return Unknown(f"memory of the optimizer {optimizer} is not known")
    count = MOMENTS[how.base]
    each = EIGHT_BIT_BYTES if how.eight_bit else moment_bytes
    outer = 2 if how.base == "muon" else count
    whole = count * each * matrices + outer * (FP32_BYTES if how.eight_bit else moment_bytes) * embeddings
    if how.paged:
        largest = outer * FP32_BYTES * embeddings  # pages in while it is updated
        return Range(0.0, 0.0, largest)
    return Range.exact(whole)


def step_temporary_bytes(optimizer: str, parameters: float, parameter_bytes: int, largest: float) -> float:
    """Working memory of the step beyond the states.

    The multi-tensor AdamW (torch/optim/adamw.py _multi_tensor_adamw, the
    default on CUDA unless fused) makes the denominators of all parameters at
    once, one more value per parameter: pure 16-bit training of N parameters
    peaks at 10 N bytes and not 8 N. A loop does so for one tensor at a time, of
    at most ``largest`` parameters; a fused kernel makes none. Adafactor and
    Muon work on FP32 and 16-bit copies of one tensor.
    """
    how = form(optimizer)
    if how.base == "muon":
        return NEWTON_SCHULZ_COPIES * 2 * largest
    if how.base == "adafactor":
        return FACTORED_COPIES * FP32_BYTES * largest
    if how.base not in {"adamw", "adam"} or how.eight_bit or how.paged or how.fused:
        return 0.0
    return (largest if how.loop else parameters) * parameter_bytes
