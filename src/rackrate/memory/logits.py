"""Logits: the scores over the vocabulary, which dominate small models."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.values import Value

FULL_KEPT = 4.0
"""Bytes per token and vocabulary entry after the forward pass; 12 at the peak of the loss unless the engine says less.

transformers loss/loss_utils.py ForCausalLMLoss upcasts to FP32 and keeps that
copy; its backward pass holds three FP32 tensors (copy, log-softmax, gradient).
"""

FULL_PEAK = 12.0
"""Bytes per token and vocabulary entry in the backward pass of the full loss: log-softmax and two gradients in FP32."""

COMPILED_SAVES = 2.0
"""What a compiled full loss does without: Inductor fuses the softmax with what reads it (torchtune README, 3B run)."""

DIVIDED_PEAK = 16.0
"""Bytes per token and entry of one card's part where torch divides the full loss over tensor-parallel cards.

torch/distributed/tensor/parallel/loss.py _nll_loss_and_log_softmax_backward:
log-softmax, the gradient's zeros, the exponential and their sum, in FP32.
"""

COMPILED_PEAK, COMPILED_KEPT = 4.0, 2.0
"""Bytes per token and entry of a loss compiled with its FP32 copy: 16-bit logits and their gradient.

Inductor makes the softmax again from the 16-bit logits in one kernel, so no
FP32 copy is stored (pytorch/torchtitan components/loss.py, since April 2025;
its commit bbb1b616e compares both).
"""

LOGITS_HOLE = 2.0
"""Bytes per token and entry that the allocator cannot use again after the full loss of FP32 logits.

16-bit logits and their FP32 copy are freed before the backward pass (6 bytes);
the first FP32 gradient takes 4 of them, the next finds no room in what is left
and is allocated anew (pytorch c10/cuda/CUDACachingAllocator.cpp: best fit, no
moving). Divided over cards: 10 are freed, two of three new tensors fit.
"""

LISTED_KEPT, LISTED_FORWARD, LISTED_LEFT = 8.0, 6.0, 4.0
"""Logits in a list of FP32 chunks: with the log-softmax at the loss, before it, and of the batch before.

litgpt/finetune/lora.py: Fabric turns every chunk of 16-bit logits into FP32
(plugins/precision/half.py convert_output), and the loop's variable holds the
list until the next forward pass has ended.
"""

PROMPT = 6.0
"""Bytes per prompt token and vocabulary entry when all prompt logits are made: 16-bit, then an FP32 copy.

transformers before 4.45 (num_logits_to_keep in generation/utils.py came then).
"""


class Loss(Value, frozen=True, kw_only=True):
    """How logits become a loss: ``kind`` full, chunked or fused, and ``chunked_bytes`` per token and entry.

    ``compiled``: without the steps between; ``fused_compile``: from 16-bit logits.
    """

    kind: str
    chunked_bytes: float
    compiled: bool = False
    full_bytes: float = FULL_PEAK
    fused_compile: bool = False


def loss_bytes(loss: Loss, tokens: int, vocabulary: float, hidden: int) -> tuple[float, float]:
    """Bytes held for the loss after the forward pass, and at its own peak.

    ``fused``: one chunk of about the size of the hidden states and their
    gradient at a time (Liger kernel, arXiv 2410.10989 section 3). ``chunked``:
    16-bit logits of all tokens and the gradient of one chunk in eight
    (pytorch/torchtune modules/loss/ce_chunked_output_loss.py, compiled), or what
    the engine's own list of chunks holds. ``vocabulary`` entries on this card.
    """
    if loss.kind == "chunked":
        return loss.chunked_bytes * tokens * vocabulary, loss.chunked_bytes * tokens * vocabulary
    if loss.kind == "fused":
        return 2.0 * tokens * hidden, 6.0 * tokens * hidden
    if loss.fused_compile:
        return COMPILED_KEPT * tokens * vocabulary, COMPILED_PEAK * tokens * vocabulary
    peak = loss.full_bytes - (COMPILED_SAVES if loss.compiled else 0.0)
    return FULL_KEPT * tokens * vocabulary, peak * tokens * vocabulary


def prompt_logit_bytes(tokens: int, vocabulary: int) -> float:
    """Logits of a whole prompt: 6 x vocabulary x prompt tokens."""
    return PROMPT * tokens * vocabulary


def sampler_bytes(rows: int, vocabulary: int, each: Range) -> Range:
    """Buffers for drawing one token in each of ``rows`` sequences: ``each`` by row and vocabulary entry."""
    return each.scaled(float(rows * vocabulary)) if rows * vocabulary else Range.exact(0.0)
