"""Bounds and components: rows that say an inequality, or measure one part of the memory of a card."""

from __future__ import annotations

from rackrate.evidence import Range, Unknown
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.memory.kv_cache import cache_shape
from rackrate.memory.layer_pass import element_bytes
from rackrate.memory.stages import stages
from scoring.cells import Row
from scoring.memory_models import NotScored
from scoring.memory_rows import Case

STATIC = ("weights", "adapters", "master_weights", "optimizer_states")
"""Parts that are there whatever the lengths of the sequences."""

PARTS = {
    "weights": ("weights", "rotary_tables", "vision_tower"),
    "weights_gpu": ("weights",),
    "load": ("weights", "adapters", "cuda_context"),
    "non_torch": ("non_torch", "tensor_buffers"),
    "cudagraph": ("graphs",),
    "cudagraph_delta_nvidia_smi": ("graphs",),
    "compute_buffer": ("activations",),
    "cuda_context": ("cuda_context",),
}
"""Parts of an estimate by the name of the component in the table."""


def satisfied(row: Row, found: MemoryEstimate, predicted: Range) -> bool:
    """Whether an estimate keeps to the bound of a row.

    The kind stands in front of the reason: ``at_least`` the low side (real
    sequences were shorter than those estimated), ``at_most`` the high side,
    ``static`` weights and states within the high side, ``interval`` the estimate
    between the framework's and the driver's reading meets the interval.

    Raises:
        NotScored: the side that the kind needs is not stated.
    """
    kind = row.text("score_reason").partition(":")[0].strip()
    low, high = _sides(row, kind)
    if kind == "at_least":
        return low is None or predicted.likely >= low
    if kind == "at_most":
        return high is None or predicted.likely <= high
    if kind == "static":
        return high is None or likely_parts(found, STATIC) <= high
    above = max(predicted.high, found.peak.high) if row.text("metric_id") == "unknown" else predicted.high
    return (low is None or above >= low) and (high is None or predicted.low <= high)


def _sides(row: Row, kind: str) -> tuple[float | None, float | None]:
    """The bounds of a row; where the one that the kind needs is not stated, the measurement itself."""
    low, high, said = (row.number(f"measured_bytes{side}") for side in ("_low", "_high", ""))
    told = {"at_least": low, "at_most": high, "static": high}.get(kind, high if low is None else low)
    low, high = (low, high) if told is not None else (said, said)
    if (low or 0.0) <= 0 and (high or 0.0) <= 0:
        raise NotScored("no measurement")
    return low, high


def likely_parts(found: MemoryEstimate, names: tuple[str, ...]) -> float:
    """The likely bytes of the parts with these names."""
    return sum(part.bytes.likely for part in found.components if part.name in names)


def component(row: Row, case: Case, found: MemoryEstimate | Unknown) -> float:
    """What the estimate says of the component that a row measures.

    Raises:
        NotScored: the estimate has no such part.
    """
    name = row.text("task").partition(":")[2] or row.text("task")
    if name == "kv" or name.startswith("kv_pool"):
        return cached_bytes(row, case)
    names = PARTS.get(name)
    if names is None and name != "peak_activation":
        raise NotScored(f"component {name}")
    if isinstance(found, Unknown):
        raise NotScored("component: " + found.reason)
    if names is None:
        return peak_activation(found)
    if name == "load" and row.text("metric_id") != "nvml":
        names = names[:-1]
    return likely_parts(found, names)


def peak_activation(found: MemoryEstimate) -> float:
    """The most that an engine's own first batch adds to its weights: while it is read, or while tokens are drawn."""
    drawn = likely_parts(found, ("sampler", "batch_buffers"))
    read = likely_parts(found, ("activations", "image_encoder"))
    return max(read, drawn) + likely_parts(found, ("workspace", "image_inputs"))


def cached_bytes(row: Row, case: Case) -> float:
    """The KV cache of ``prompt_tokens`` tokens on one card, in the model's precision unless the row says otherwise.

    Raises:
        NotScored: the model's cache is not known.
    """
    policy, model = case.engine.serving, case.workload.model
    if policy is None:
        raise NotScored("component: engine without a cache")
    bits = 8.0 * element_bytes(case.workload.precision)
    bits = 8.5 if "q8_0" in row.text("precision") + row.text("score_reason") else bits
    stage = stages(model.layers or 1, case.layout)[0]
    shape = cache_shape(model, stage, case.layout.tensor, 16, policy)
    if isinstance(shape, Unknown):
        raise NotScored("component: " + shape.reason)
    tokens = row.whole("prompt_tokens")
    batch = max(1, row.whole("norm_batch", 1))
    return bits / 16 * shape.sequence_bytes(tokens).likely * batch
