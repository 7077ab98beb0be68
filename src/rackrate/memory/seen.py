"""Images in a prompt: what the vision tower holds beside the text model."""

from __future__ import annotations

import math

from rackrate.evidence import Range
from rackrate.facts.engine import ServingPolicy
from rackrate.facts.sight import Sight
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_pass import element_bytes
from rackrate.memory.phases import part
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Seen, Workload

TOWER_SPREAD = (0.5, 0.3)
"""Relative half widths around the tower's activations: smaller models of a family have narrower towers."""

_COLOURS = 3


def seen_parts(
    workload: Workload, layout: Layout, policy: ServingPolicy, batch: int, working: float
) -> list[Component]:
    """What images add on the card that reads prompts: nothing without any.

    The tower runs before the text model, so that only what it takes beyond the
    ``working`` bytes of the text model's activations is added; what it makes,
    a hidden state a token, waits for the text model. ``batch``: tokens that the
    text model reads at once.
    """
    serving = workload.serving
    if serving is None or serving.seen is None:
        return []
    seen, size = serving.seen, element_bytes(workload.precision)
    tokens = tokens_at_once(seen, math.ceil(serving.concurrency / layout.data), policy, batch)
    tower = tower_bytes(seen.sight, tokens, layout.tensor, size)
    below, above = TOWER_SPREAD
    around = Range.around(tower, below=below, above=above)
    beyond = Range(*(max(0.0, edge - working) for edge in (around.low, around.likely, around.high)))
    made = float(size * tokens * (workload.model.hidden_size or 0))
    parts = [part("image_encoder", beyond.shifted(made), Phase.PREFILL, note="beyond the activations freed by then")]
    if "text tower only" in workload.model.notes and seen.sight.tower_params:
        weights = 2.0 * seen.sight.tower_params / layout.tensor
        parts.append(part("vision_tower", weights, note="the bundled count is of the text model alone"))
    return parts


def tokens_at_once(seen: Seen, requests: int, policy: ServingPolicy, batch: int) -> int:
    """Image tokens that the tower makes in one pass, whole images always.

    An engine that queues encodes images up to the tokens of a batch, one at
    least (vllm-project/vllm v1/core/encoder_cache_manager.py, encoder budget);
    one that measures itself at start tries the largest image that the family
    takes, whatever is asked (v1/worker/gpu_model_runner.py profile_run: 16,384
    tokens for Qwen2.5-VL). Others encode all images of their requests together.
    """
    each = seen.sight.merged_tokens(seen.width, seen.height)
    if policy.memory_share is not None and policy.share_of == "total":
        largest = seen.sight.most_tokens
        return max(1, batch // largest) * largest
    asked = each * seen.count * requests
    return min(asked, max(1, batch // each) * each) if policy.continuous_batching else asked


def tower_bytes(sight: Sight, tokens: int, tensor: int, element_size: int) -> float:
    """Held while a layer of the tower works on the patches of ``tokens`` tokens, without stored scores.

    For each patch its pixels, the residual and the layer's input, then the
    larger of attention (query, key, value, output: 4 widths) and feed-forward
    block (huggingface/transformers modeling_qwen2_5_vl.py,
    modeling_siglip.py). Attention is in both directions and keeps no cache.
    Valid with flash attention or SDPA; the position table is not counted.
    """
    pixels = _COLOURS * sight.frames * sight.patch**2
    block = max(4 * sight.width, sight.feed) / tensor
    return tokens * sight.patches_per_token * (pixels + 2 * sight.width + block) * element_size
