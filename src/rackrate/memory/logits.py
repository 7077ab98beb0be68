"""Logits: the scores over the vocabulary, which dominate small models."""

from __future__ import annotations

from rackrate.evidence import Range

FULL_KEPT, FULL_PEAK = 4.0, 12.0
"""Bytes per token and vocabulary entry after the forward pass and at the peak of the loss.

transformers loss/loss_utils.py ForCausalLMLoss upcasts to FP32 and keeps that
copy; its backward pass holds three FP32 tensors (copy, log-softmax, gradient).
"""

CHUNKED = 2.5
"""The same when the loss goes over chunks: 16-bit logits of all tokens and FP32 of one chunk in eight.

pytorch/torchtune modules/loss/ce_chunked_output_loss.py.
"""

PROMPT = 6.0
"""Bytes per prompt token and vocabulary entry when all prompt logits are made: 16-bit, then an FP32 copy.

transformers before 4.45 (num_logits_to_keep in generation/utils.py came then).
"""

SAMPLER = Range(12.0, 41.0, 41.0)
"""Bytes per sampled row and vocabulary entry while a token is drawn.

FP32 logits, sorted copy, 64-bit indices, probabilities, running sums and
scatter: vllm-project/vllm#10511 logs 1.26 GiB for 256 rows of 128,256 entries
on one card and on two; fused samplers take less.
"""


def loss_bytes(kind: str, tokens: int, vocabulary: float, hidden: int) -> tuple[float, float]:
    """Bytes held for the loss after the forward pass, and at its own peak.

    ``kind`` is the engine's loss: ``full``, ``chunked`` or ``fused`` (one chunk
    of about the size of the hidden states and their gradient at a time: Liger
    kernel, arXiv 2410.10989 section 3). ``vocabulary`` entries on this card.
    """
    if kind == "chunked":
        return CHUNKED * tokens * vocabulary, CHUNKED * tokens * vocabulary
    if kind == "fused":
        return 2.0 * tokens * hidden, 6.0 * tokens * hidden
    return FULL_KEPT * tokens * vocabulary, FULL_PEAK * tokens * vocabulary


def prompt_logit_bytes(tokens: int, vocabulary: int) -> float:
    """Logits of a whole prompt: 6 x vocabulary x prompt tokens."""
    return PROMPT * tokens * vocabulary


def sampler_bytes(rows: int, vocabulary: int) -> Range:
    """Buffers for drawing one token in each of ``rows`` sequences."""
    return SAMPLER.scaled(float(rows * vocabulary)) if rows * vocabulary else Range.exact(0.0)
