"""KV cache: what one token and one sequence leave behind on one card."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.engine_serving import ServingPolicy
from rackrate.facts.model import Model
from rackrate.memory.stages import Stage
from rackrate.values import Value, replace

NEARLY_EQUAL = 1.25
"""Kinds of layers whose numbers are this near make groups of the larger number."""

INDEXER_BYTES = 132
"""A key of the sparse-attention indexer per token and layer: 128 FP8 values and an FP32 scale.

deepseek-ai/DeepSeek-V3.2-Exp inference/model.py; DeepSeek sparse attention only.
"""

STATE_VALUES = (16, 128, 256)
"""State values per channel of a linear-attention or state-space layer: low, likely, high.

Mamba keeps 16 (arXiv 2312.00752), Mamba-2 128 and more (arXiv 2405.21060),
gated delta networks one 128 x 128 matrix per head (arXiv 2412.06464).
"""


class CacheShape(Value, frozen=True, kw_only=True):
    """How the cache of one card grows.

    ``layer_bytes``: of one token in one layer with attention; ``full_layers``
    keep every token, ``windowed_layers`` the last ``window``. ``page_tokens``:
    tokens are given out in blocks of this many. ``state_bytes``: of one
    sequence whatever its length (linear attention, state spaces). The last
    ``residual_tokens`` of a sequence take ``residual_bytes`` each in a layer.
    """

    layer_bytes: float
    full_layers: int
    windowed_layers: int
    window: int
    page_tokens: int
    state_bytes: Range
    residual_tokens: int = 0
    residual_bytes: float = 0.0

    def paged(self, tokens: float) -> int:
        """``tokens`` rounded up to whole pages."""
        return math.ceil(tokens / self.page_tokens) * self.page_tokens

    def growing_bytes(self, tokens: int) -> float:
        """Bytes of one sequence of ``tokens`` tokens, its constant state aside."""
        kept = self.paged(tokens)
        windowed = min(kept, self.paged(self.window) + self.page_tokens) if self.window else kept
        return self.layer_bytes * (self.full_layers * kept + self.windowed_layers * windowed)

    def sequence_bytes(self, tokens: int) -> Range:
        """Bytes of one sequence of ``tokens`` tokens."""
        wide = min(tokens, self.residual_tokens)
        layers = self.full_layers + self.windowed_layers
        return self.state_bytes.shifted(self.growing_bytes(tokens - wide) + wide * layers * self.residual_bytes)

    def bytes_per_token(self, tokens: int) -> float:
        """Bytes that one more token adds to a sequence of ``tokens`` tokens."""
        inside = not self.window or tokens < self.window
        return self.layer_bytes * (self.full_layers + (self.windowed_layers if inside else 0))


def layer_bytes_per_token(model: Model, bits: float, tensor: int, padding: int) -> float | Unknown:
    """Bytes of one token in one attention layer on one card.

    Grouped-query attention: 2 x ceil(KV heads / cards) x head size values: a
    head is never divided, so more cards than KV heads keep copies (arXiv
    2305.13245; vLLM's get_num_kv_heads). Latent attention: latent rank + rotary size
    values, once on every card (DeepSeek-V2, arXiv 2405.04434, section 2.1.2),
    padded to a multiple of ``padding``.
    """
    if model.mla_kv_lora_rank:
        values = model.mla_kv_lora_rank + (model.mla_qk_rope_head_dim or 0)
        index = INDEXER_BYTES if "DSA" in model.attention else 0
        return math.ceil(values / padding) * padding * bits / 8 + index
    if not model.kv_heads or not model.head_dim:
        return Unknown(f"KV heads of {model.id} are not known")
    return 2 * math.ceil(model.kv_heads / tensor) * model.head_dim * bits / 8


def cache_shape(model: Model, stage: Stage, tensor: int, bits: float, policy: ServingPolicy) -> CacheShape | Unknown:
    """The growth of the cache on one card of ``stage``.

    Windowed layers keep their window only where the engine frees what lies
    behind it (``window_saves``); others are charged in full. Some engines cache
    grouped keys and values once per query head (litgpt/model.py build_kv_cache).
    """
    if model.layers_full is None or model.layers_windowed is None:
        return Unknown(f"KV cache of {model.id} does not follow layers x heads x head size ({model.attention})")
    cached = model
    if policy.expands_heads and model.kv_heads and model.kv_heads > 1:
        cached = replace(model, kv_heads=model.attention_heads)
    each = layer_bytes_per_token(cached, bits, tensor, policy.mla_cache_padding)
    if isinstance(each, Unknown):
        return each
    saves = policy.window_saves and bool(model.window)
    full, windowed = grouped_layers(model.layers_full, model.layers_windowed, groups=policy.layer_groups)
    linear = stage.share_of(model.layers_linear or 0)
    return CacheShape(
        layer_bytes=each,
        full_layers=stage.share_of(full),
        windowed_layers=stage.share_of(windowed),
        window=(model.window or 0) if saves else 0,
        page_tokens=max(1, policy.page_tokens),
        state_bytes=linear_state_bytes(model, linear, tensor),
    )


WIDE_BITS = 16.0
"""Bits of a value of the cache while it is computed with."""


def wide_layer_bytes(shape: CacheShape, bits: float) -> float:
    """Bytes of one token in one layer of a cache of ``bits`` a value, once it is unpacked to 16."""
    return shape.layer_bytes * WIDE_BITS / bits


def grouped_layers(full: int, windowed: int, *, groups: bool) -> tuple[int, int]:
    """Layers of both kinds that the cache pays for.

    An engine with one pool of pages for several kinds of attention divides
    layers into groups as large as the rarer kind, and pads the last: Gemma 3
    27B's 10 full and 52 windowed layers take the room of 70 (vllm-project/vllm
    v1/core/kv_cache_utils.py, groups of uniform page size). Where one kind has
    less than a quarter more layers, the larger number is the size.
    """
    if not groups or not full or not windowed:
        return full, windowed
    size = max(full, windowed) if max(full, windowed) < NEARLY_EQUAL * min(full, windowed) else min(full, windowed)
    return math.ceil(full / size) * size, math.ceil(windowed / size) * size


def cache_note(model: Model) -> str:
    """What makes the cache of ``model`` less than exact, or nothing."""
    if "head_dim" in model.notes or "kv heads" in model.notes:
        return "layers differ in heads or head size: approximate"
    return "state of linear layers assumed" if model.layers_linear and not model.linear_state_values else ""


def linear_state_bytes(model: Model, layers: int, tensor: int) -> Range:
    """State of one sequence in ``layers`` linear-attention or state-space layers.

    2 x hidden channels (the usual expansion) x state values x 4 bytes a layer,
    divided over tensor-parallel cards. The expansion and the state size of a
    given model are not among its bundled facts, so the interval is wide. A model
    read from its own configuration says how many values there are; engines keep
    them in 16 bits (vLLM's mamba_cache_dtype "auto") or, as most models ask, in 32.
    """
    if not layers:
        return Range.exact(0.0)
    if model.linear_state_values:
        values = layers * model.linear_state_values / tensor
        return Range(2 * values, 4 * values, 4 * values)
    channel_bytes = layers * 2 * (model.hidden_size or 0) * 4 / tensor
    low, likely, high = STATE_VALUES
    return Range(channel_bytes * low, channel_bytes * likely, channel_bytes * high)


def rotary_table_bytes(model: Model, policy: ServingPolicy, cached_tokens: int) -> float:
    """Tables of rotary angles that one attention layer keeps.

    ``once``: one table of 2 B x tokens x rotated values for all layers
    (vllm-project/vllm layers/rotary_embedding, cos_sin_cache: Llama-3.1-8B
    loads 0.03 GiB beside its weights, whatever the tensor parallelism), as
    long as linear scaling stretches it: Gemma 3's is of 8 x 131,072 positions,
    beside one for windows, together 0.56 GiB (linear_scaling_rope.py).
    ``model``: cosine and sine in 16 bits up to the model's maximum, 4 B x
    tokens x head size (transformers before 4.45, modeling_qwen2.py
    Qwen2RotaryEmbedding in every attention module). ``cache``: complex numbers
    of 8 B for half a head, twice as long as the cache (AutoAWQ
    modules/fused/attn.py RoPE).
    """
    head = model.head_dim or 0
    if policy.rotary_tables == "once":
        return 2.0 * (model.rotary_positions or model.max_context or 0) * (model.mla_qk_rope_head_dim or head)
    if policy.rotary_tables == "model":
        return replaced_table_bytes(model)
    return 8.0 * 2 * cached_tokens * head / 2


def replaced_table_bytes(model: Model) -> float:
    """Tables of rotary angles in a layer of transformers before 4.45: cosine and sine in 16 bits to the maximum."""
    return 4.0 * (model.max_context or 0) * (model.head_dim or 0)
