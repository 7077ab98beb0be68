"""Tuning advice to documents: words and the source of each mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rackrate.app.documents import plain, span
from rackrate.app.wire.parts import ChangeDoc
from rackrate.app.wire.speed import AdviceDoc
from rackrate.plan.advice import Advice, Mechanism

WORDS: Mapping[Mechanism, tuple[str, str]] = {
    Mechanism.TOGETHER: ("all that help together and change no results", "each as below"),
    Mechanism.MIXED_PRECISION: (
        "products in 16 bits, FP32 master weights",
        "Micikevicius et al., arXiv 1710.03740",
    ),
    Mechanism.FLASH_ATTENTION: ("attention that never stores its scores", "Dao et al., arXiv 2205.14135"),
    Mechanism.PACKING: ("several rows in one sequence, no padding", "Krell et al., arXiv 2107.02027"),
    Mechanism.COMPILE: ("element-wise kernels fused by torch.compile", "pytorch/torchtune README, optimizations"),
    Mechanism.MICRO_BATCH: (
        "more rows at a time: less waiting for the host and for shards",
        "Williams et al., CACM 52(4), 2009",
    ),
    Mechanism.LESS_CHECKPOINTING: ("activations kept, not made again", "Korthikanti et al., arXiv 2205.05198"),
    Mechanism.FUSED_LOSS: ("logits never whole", "Hsu et al., Liger kernels, arXiv 2410.10989"),
    Mechanism.OPTIMIZER_8BIT: ("moments in 8 bits", "Dettmers et al., arXiv 2110.02861"),
    Mechanism.FP8: ("products in FP8", "Micikevicius et al., arXiv 2209.05433"),
    Mechanism.WIDE_BASE: ("a base in 16 bits: nothing to unpack", "Lightning-AI/litgpt tutorials/quantize"),
    Mechanism.CARDS: ("as many cards as give the cheapest result", "the estimates of this answer"),
    Mechanism.QUANTISED_WEIGHTS: ("fewer bytes of weights to read", "Lin et al., AWQ, arXiv 2306.00978"),
    Mechanism.NARROW_CACHE: ("half the KV cache: more requests in flight", "vLLM, quantized KV cache"),
    Mechanism.CAPTURED_GRAPHS: ("kernels launched as captured graphs", "vLLM, enforce_eager; CUDA graphs"),
    Mechanism.MORE_IN_FLIGHT: ("more requests share each reading of the weights", "Kwon et al., arXiv 2309.06180"),
}
"""What each mechanism does, and where that is described."""


def advice_docs(found: Iterable[Advice]) -> list[AdviceDoc]:
    """Settings with what they lead to, in their order."""
    return [_doc(each) for each in found]


def _doc(each: Advice) -> AdviceDoc:
    what, source = WORDS[each.mechanism]
    return AdviceDoc(
        mechanism=str(each.mechanism),
        what=what,
        changes=[ChangeDoc(knob=c.knob, before=c.before, after=c.after) for c in each.changes],
        pace=span(each.found.pace),
        speedup=each.speedup,
        hours=None if each.hours is None else span(each.hours),
        peak_bytes=span(each.found.memory.peak),
        cost_before=None if each.before is None else plain(each.before.amount),
        cost_after=None if each.cost is None else plain(each.cost.amount),
        currency=None if each.cost is None else each.cost.currency,
        changes_results=each.changes_results,
        source=source,
    )
