"""Images in a prompt: what the vision tower holds beside the text model."""

from __future__ import annotations

import math

from rackrate.evidence import Range
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.facts.model import Model
from rackrate.facts.sight import Look, Sight
from rackrate.memory.estimate_types import Component, Phase
from rackrate.memory.layer_pass import element_bytes
from rackrate.memory.phases import part
from rackrate.memory.towers import TOWER_BYTES
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Seen, Serving, Workload

TOWER_SPREAD = (0.5, 0.3)
"""Relative half widths around the tower's activations: smaller models of a family have narrower towers."""

_COLOURS = 3


def seen_parts(
    workload: Workload, layout: Layout, policy: ServingPolicy, batch: int, working: float
) -> list[Component]:
    """What seeing adds on the card that reads prompts: nothing for a model of text alone.

    The tower runs before the text model, so that only what it takes beyond the
    ``working`` bytes of the text model's activations is added. Its input, the
    pixels, and what it makes, a hidden state a token, stay while the text model
    reads. ``batch``: tokens that the text model reads at once.
    """
    serving, sight = workload.serving, workload.sight
    if serving is None or sight is None or not (serving.seen or policy.loads_towers):
        return []
    parts, model, size = [], workload.model, element_bytes(workload.precision)
    if model.tower_params:
        beside = "the bundled count is of the text model alone"
        parts.append(part("vision_tower", TOWER_BYTES * model.tower_params / layout.tensor, note=beside))
    at_once = images_at_once(sight, serving, math.ceil(serving.concurrency / layout.data), policy, batch)
    if not at_once.patches:
        return parts
    around = Range.around(
        tower_bytes(sight, at_once, layout.tensor, size), below=TOWER_SPREAD[0], above=TOWER_SPREAD[1]
    )
    beyond = Range(*(max(0.0, edge - working) for edge in (around.low, around.likely, around.high)))
    parts.append(part("image_encoder", beyond, Phase.PREFILL, note="beyond the activations freed by then"))
    held = size * (at_once.made * (model.hidden_size or 0) + at_once.patches * _pixels(sight))
    phases = (Phase.PREFILL, Phase.DECODE) if _tries(policy) else (Phase.PREFILL,)
    parts.append(part("image_inputs", float(held), *phases))
    if serving.seen is not None:
        parts.extend(_cross_cache(model, serving, serving.seen, layout))
    return parts


class AtOnce(Value, frozen=True, kw_only=True):
    """What the tower works on in one pass: whole images."""

    made: int
    patches: int


def images_at_once(sight: Sight, serving: Serving, requests: int, policy: ServingPolicy, batch: int) -> AtOnce:
    """The images that the tower takes in one pass.

    An engine that measures itself at start tries the image of which the family
    makes most tokens, as often as it goes into the tokens of a batch and once at
    least, whatever is asked (vllm-project/vllm v1/worker/gpu_model_runner.py
    profile_run; start-up logs: 32 images of Gemma 3, 3 of Llama 4 and 2 of
    Mistral Small 3 in 8,192 tokens, 1 of Qwen3-VL in 16,384). One that queues
    encodes images up to the tokens of a batch (v1/core/encoder_cache_manager.py,
    encoder budget). Others encode all images of their requests together.
    """
    if _tries(policy):
        from rackrate.facts import sight_rules  # imported here: a question without images does not need it

        most = sight_rules.largest(sight)
        return _times(most, max(1, batch // max(1, most.made)))
    if serving.seen is None:
        return AtOnce(made=0, patches=0)
    from rackrate.facts import sight_rules

    look = sight_rules.look(sight, serving.seen.width, serving.seen.height)
    asked = serving.seen.count * requests
    return _times(look, min(asked, max(1, batch // max(1, look.made))) if policy.continuous_batching else asked)


def _times(look: Look, images: int) -> AtOnce:
    return AtOnce(made=images * look.made, patches=images * look.patches)


def _tries(policy: ServingPolicy) -> bool:
    return policy.memory_share is not None and policy.share_of == "total" and policy.loads_towers


def tower_bytes(sight: Sight, at_once: AtOnce, tensor: int, element_size: int) -> float:
    """Held while a layer of the tower works on the patches, without stored scores and beside the pixels.

    For each patch the residual and the layer's input, then the larger of
    attention (query, key, value, output: 4 widths) and feed-forward block (the
    inner width before and after its activation, gate and up before it where
    there is a gate: vllm-project/vllm model_executor/models/siglip.py,
    qwen2_5_vl.py).
    Attention is in both directions and keeps no cache. Valid with flash
    attention or SDPA; the position table is not counted.
    """
    block = max(4 * sight.width, (2 + sight.gated) * sight.feed) / tensor
    return at_once.patches * (2 * sight.width + block) * element_size


def _pixels(sight: Sight) -> int:
    """Numbers that the tower is fed for each patch."""
    return _COLOURS * sight.frames * sight.patch**2


def _cross_cache(model: Model, serving: Serving, seen: Seen, layout: Layout) -> list[Component]:
    """Keys and values of the layers that attend to images alone, for all requests in flight.

    Every position of every tile, whatever the prompt (huggingface/transformers
    modeling_mllama.py: 8 of 40 layers of Llama 3.2 Vision 11B).
    """
    from rackrate.facts import sight_rules  # imported here: a question without images does not need it

    look = sight_rules.look(seen.sight, seen.width, seen.height)
    layers = (model.layers or 0) - (model.layers_full or 0) - (model.layers_windowed or 0)
    if not look.beside or layers <= 0:
        return []
    width = 2 * (model.kv_heads or 0) * (model.head_dim or 0) / layout.tensor * serving.cache_bits / 8
    requests = math.ceil(serving.concurrency / layout.data)
    return [part("image_cache", requests * seen.count * look.beside * layers * width)]
