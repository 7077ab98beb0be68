"""Which layer is of which kind: windows, linear layers and mixtures as configurations write them."""

from __future__ import annotations

from collections.abc import Sequence

from rackrate.facts.architecture.reader import MOST_LAYERS, Reader

FULL, WINDOWED, LINEAR, NONE = "full", "windowed", "linear", "none"
"""What a layer keeps of a sequence: every token, the last of them, a fixed state, nothing."""

_TYPES = {
    "full_attention": FULL,
    "attention": FULL,
    "global": FULL,
    "deepseek_sparse_attention": FULL,
    "minimax_m3_sparse": FULL,
    "sliding_attention": WINDOWED,
    "chunked_attention": WINDOWED,
    "local": WINDOWED,
    "linear_attention": LINEAR,
    "mamba": LINEAR,
    "mamba2": LINEAR,
    "recurrent": LINEAR,
    "conv": LINEAR,
}

# Types whose every layer has the window that the configuration names (class ...Attention of each type).
_ALL_WINDOWED = frozenset({"mistral", "mixtral", "phi3", "phimoe", "starcoder2"})
# Types that switch their window on.
_SWITCHED = frozenset({"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"})
# Every n-th layer is full, counted from the first, where the configuration does not say (class ...Config of each).
_EVERY = {"gemma2": 2, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2, "olmo3": 4, "llama4_text": 4, "gemma3n_text": 5}
_EVERY |= {"exaone4": 4, "gemma4_text": 6, "ministral": 4}
_EVERY |= {"qwen3_next": 4, "qwen3_5_text": 4, "qwen3_5_moe_text": 4}

# The window where the configuration has no such key (null is no window; class ...Config of each).
_WINDOWS = {"mistral": 4096, "gemma2": 4096, "gemma3_text": 4096, "cohere2": 4096, "olmo3": 4096, "exaone4": 4096}
_WINDOWS |= {"ministral": 4096, "gpt_oss": 128, "llama4_text": 8192, "gemma3n_text": 512, "gemma4_text": 512}
_WINDOW_KEYS = ("sliding_window", "sliding_window_size", "window_size", "attention_window_size")


def layer_kinds(reader: Reader, kind: str, layers: int) -> list[str]:
    """What each layer keeps of a sequence, for models of type ``kind``.

    In this order: the list ``layer_types``; the type's own rule, with the
    period that the configuration gives, if any.
    """
    layers = min(layers, MOST_LAYERS)
    listed = reader.texts("layer_types")
    if listed:
        return _listed(reader, listed, layers)
    if kind.startswith("qwen3_") and kind in _EVERY:
        return _each(layers, reader.maybe("full_attention_interval") or _EVERY[kind], LINEAR)
    if not window_of(reader, kind):
        return [FULL] * layers
    return _sliding(reader, kind, layers)


def _sliding(reader: Reader, kind: str, layers: int) -> list[str]:
    """Which layers slide, by the rule of the type: all, those behind a certain one, or all but every n-th."""
    if kind in _ALL_WINDOWED:
        return [WINDOWED] * layers
    if kind in _SWITCHED:
        first = reader.count("max_window_layers", default=layers)
        return [FULL if n < first else WINDOWED for n in range(layers)]
    return _each(layers, _period(reader) or _EVERY[kind], WINDOWED) if kind in _EVERY else [FULL] * layers


def _listed(reader: Reader, listed: Sequence[str], layers: int) -> list[str]:
    """The kinds that a list names, for the layers that there are."""
    if len(listed) < layers:
        reader.wrong("layer_types", listed, f"one type for each of {layers} layers")
    unknown = next((name for name in listed if name not in _TYPES), None)
    if unknown is not None:
        reader.remark(
            "layer_types",
            f"the layer type {unknown!r}",
            f"one of {', '.join(_TYPES)}",
            "its layers are counted as full attention: treat cache sizes as upper bounds",
        )
    return [_TYPES.get(name, FULL) for name in listed[:layers]]


def _period(reader: Reader) -> int | None:
    """Every how many layers one is full, as a number or a text such as ``LLLG``."""
    text = reader.table.get("sliding_window_pattern")
    if isinstance(text, str):
        return len(text) or None
    return reader.maybe("sliding_window_pattern", "_sliding_window_pattern")


def _each(layers: int, period: int, other: str) -> list[str]:
    return [other if (n + 1) % period else FULL for n in range(layers)]


def window_of(reader: Reader, kind: str) -> int | None:
    """The window of sliding or chunked layers; None where there is none or it is switched off."""
    if kind in _SWITCHED and not reader.flag("use_sliding_window"):
        return None
    keys = ("attention_chunk_size",) if kind == "llama4_text" else _WINDOW_KEYS
    if not any(key in reader.table for key in keys):
        return _WINDOWS.get(kind)
    return reader.maybe(*keys, low=0) or None


def sparse_layers(reader: Reader, layers: int) -> list[bool]:
    """Which layers have a mixture of experts instead of a dense block.

    ``mlp_layer_types`` or ``moe_layer_freq`` as a list; else the first
    ``first_k_dense_replace`` layers are dense, those in ``mlp_only_layers``
    too, and of the rest every ``decoder_sparse_step``-th (``moe_layer_freq``,
    ``interleave_moe_layer_step``, ``expert_layer_period``) is sparse.
    """
    layers = min(layers, MOST_LAYERS)
    named = reader.texts("mlp_layer_types")
    if len(named) >= layers > 0:
        return [name == "sparse" for name in named[:layers]]
    listed = reader.wholes("moe_layer_freq")
    if len(listed) >= layers > 0:
        return [bool(n) for n in listed[:layers]]
    if reader.wholes("moe_layers"):
        sparse = set(reader.wholes("moe_layers"))
        return [n in sparse for n in range(layers)]
    dense = reader.count("first_k_dense_replace", "moe_layer_start_index")
    only = set(reader.wholes("mlp_only_layers"))
    last = reader.count("moe_layer_end_index", default=layers)
    step, offset = _step(reader)
    return [dense <= n <= last and n not in only and (n + offset) % step == 0 for n in range(layers)]


def _step(reader: Reader) -> tuple[int, int]:
    """Every how many layers one is sparse, and the shift of the count."""
    if "expert_layer_period" in reader:
        step = reader.whole("expert_layer_period") or 1
        return step, step - reader.count("expert_layer_offset")
    if "moe_layer_freq" in reader and reader.wholes("moe_layer_freq"):
        return 1, 0
    step = reader.maybe("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_layer_freq") or 1
    return step, 1 if "moe_layer_freq" not in reader else 0
