"""Decoders whose layers differ in more than a window: in heads, in widths, or in what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import Layer, Shape, Sizes, decoder, ends, sizes, tied
from rackrate.facts.architecture.dense import STYLES, attention_account, feed_forward
from rackrate.facts.architecture.mixture import Experts, expert_account, experts_of, mixture_shape
from rackrate.facts.architecture.parameters import Heads, attention, grouped, mlp, router
from rackrate.facts.architecture.patterns import FULL, NONE, WINDOWED, layer_kinds, sparse_layers, window_of
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model
from rackrate.values import replace


def nemotron_nas(reader: Reader, _kind: str) -> Model:
    """Models cut by architecture search: layers without attention, blocks of many widths (arXiv 2411.19146).

    ``block_configs`` has a table for each layer: query heads that share a
    key-value head, and the block's width as a multiple of the model's, times
    2/3, rounded up to a multiple of 256 (DeciLM's modeling code on the Hub).
    """
    blocks = reader.tables("block_configs")
    if not blocks:
        reader.missing("block_configs", "a table for each layer, with attention and ffn")
    size = sizes(reader, width=0)
    layers = [_searched(block, size) for block in blocks]
    widths = [_searched_width(block, size.hidden) for block in blocks]
    shared = [block.section("attention").maybe("n_heads_in_group") for block in blocks]
    fewest = min((n for n in shared if n), default=1)
    size = replace(size, kv_heads=size.heads // fewest, width=max(widths, default=0), layers=len(blocks))
    count = sum(layer.kind == FULL for layer in layers)
    shape = Shape(label=f"full on {count} of {len(layers)} layers", notes="FFN width differs per layer")
    return decoder(reader, size, layers, ends(size, tied=tied(reader), norm=1), shape)


def _searched(block: Reader, size: Sizes) -> Layer:
    attending, feed = block.section("attention"), block.section("ffn")
    parts = Account()
    kind = NONE
    if attending.flag("replace_with_linear"):
        parts += Account(other=size.hidden * size.hidden, norms=size.hidden)
    elif not attending.flag("no_op"):
        kv_heads = size.heads // (attending.whole("n_heads_in_group") or 1)
        parts += Account(attention=attention(grouped(size.hidden, size.heads, kv_heads, size.head_dim)))
        parts += Account(norms=size.hidden)
        kind = FULL
    if feed.flag("replace_with_linear"):
        parts += Account(other=size.hidden * size.hidden, norms=size.hidden)
    elif not feed.flag("no_op"):
        parts += Account(mlp=mlp(size.hidden, _searched_width(block, size.hidden)), norms=size.hidden)
    return Layer(kind=kind, parts=parts)


def _searched_width(block: Reader, hidden: int) -> int:
    times = block.section("ffn").table.get("ffn_mult")
    if not isinstance(times, int | float) or not 0 < times < 100:  # noqa: PLR2004 - no block is that wide
        return 0
    return 256 * -(-int(2 * times * hidden / 3) // 256)


def mimo_v2(reader: Reader, kind: str) -> Model:
    """MiMo-V2-Flash: sliding layers with more key-value heads, sinks, and values narrower than keys."""
    size = sizes(reader)
    value = reader.maybe("v_head_dim") or size.head_dim
    pattern = reader.wholes("hybrid_layer_pattern")[: size.layers]
    kinds = [WINDOWED if n else FULL for n in pattern] or layer_kinds(reader, kind, size.layers)
    many = reader.maybe("swa_num_key_value_heads") or size.kv_heads
    blocks = {k: _unequal(size, heads, value) for k, heads in ((FULL, size.kv_heads), (WINDOWED, many))}
    if reader.flag("add_swa_attention_sink_bias", default=True):
        blocks[WINDOWED] += Account(attention=size.heads)
    if reader.flag("add_full_attention_sink_bias"):
        blocks[FULL] += Account(attention=size.heads)
    count, sparse = experts_of(reader, Experts()), sparse_layers(reader, size.layers)
    norms = Account(norms=2 * size.hidden)
    feeds = {True: expert_account(size.hidden, count, Experts()), False: Account(mlp=mlp(size.hidden, size.width))}
    layers = [
        Layer(kind=each, parts=blocks[each] + feeds[is_sparse] + norms)
        for each, is_sparse in zip(kinds, sparse, strict=False)
    ]
    notes = f"sliding layers use {many} kv heads; K head_dim {size.head_dim}, V head_dim {value}"
    shape = mixture_shape(reader, kind, count, sparse, notes)
    return decoder(reader, size, layers, ends(size, tied=tied(reader), norm=1), shape)


def _unequal(size: Sizes, kv_heads: int, value: int) -> Account:
    heads = Heads(
        hidden=size.hidden,
        query=size.heads * size.head_dim,
        key=kv_heads * size.head_dim,
        value=kv_heads * value,
        out=size.heads * value,
    )
    return Account(attention=attention(heads))


def gemma4(reader: Reader, kind: str) -> Model:
    """Gemma 4: full layers with wider heads, values that are keys, later layers without keys of their own.

    Small models add a second embedding for each layer, large ones a mixture
    beside the dense block (class Gemma4ForCausalLM).
    """
    size = sizes(reader, head_dim=256)
    wide, same = reader.whole("global_head_dim", default=512), reader.flag("attention_k_eq_v")
    few = (reader.maybe("num_global_key_value_heads") if same else None) or size.kv_heads
    kinds = layer_kinds(reader, kind, size.layers)
    kinds[-1:] = [FULL] if kinds else []
    own = size.layers - reader.count("num_kv_shared_layers")
    common = _beside(reader, size) + _per_layer_input(reader, size) + Account(norms=4 * size.hidden)
    double = 2 if reader.flag("use_double_wide_mlp") else 1
    layers = []
    for n, each in enumerate(kinds):
        own_sizes = Reader(_of_layer(reader, n), reader.where, reader)
        head_dim, kv_heads = (wide, few) if each == FULL else (size.head_dim, size.kv_heads)
        head_dim = own_sizes.maybe("head_dim") or head_dim
        kv_heads = own_sizes.maybe("num_key_value_heads") or kv_heads
        held = 0 if n >= own else 1 if same and each == FULL else 2
        attending = _gemma_attention(replace(size, head_dim=head_dim, kv_heads=kv_heads), held)
        feed = Account(mlp=mlp(size.hidden, size.width * (1 if n < own else double)))
        layers.append(Layer(kind=each if held else NONE, parts=attending + feed + common))
    notes = f"full layers use head_dim {wide} and {few} kv heads" + (", K=V shared" if same else "")
    shape = Shape(window=window_of(reader, kind), notes=notes)
    if reader.flag("enable_moe_block"):
        shape = mixture_shape(reader, kind, experts_of(reader, Experts()), [], notes)
    outside = ends(size, tied=tied(reader, default=True), norm=1) + _per_layer_tables(reader, size)
    return decoder(reader, size, layers, outside, shape)


def _of_layer(reader: Reader, layer: int) -> Mapping[str, object]:
    """What newer configurations say of one layer alone (``per_layer_config``)."""
    found = reader.section("per_layer_config").table.get(str(layer))
    return found if isinstance(found, Mapping) else {}


def _gemma_attention(size: Sizes, held: int) -> Account:
    """Attention with ``held`` projections to keys and values (0: a cache is borrowed), norms of queries and keys."""
    query, key = size.heads * size.head_dim, size.kv_heads * size.head_dim
    heads = Heads(hidden=size.hidden, query=query, key=key * min(held, 1), value=key * max(held - 1, 0), out=query)
    return Account(attention=attention(heads), norms=size.head_dim * (2 if held else 1))


def _beside(reader: Reader, size: Sizes) -> Account:
    """The mixture beside the dense block: router with a scale of the width and one for each expert, three norms."""
    if not reader.flag("enable_moe_block"):
        return Account()
    count = experts_of(reader, Experts())
    each = mlp(size.hidden, count.width)
    whole = count.experts * each + router(size.hidden, count.experts) + size.hidden + count.experts
    return Account(experts=whole, idle=(count.experts - count.used) * each, norms=3 * size.hidden)


def _per_layer_input(reader: Reader, size: Sizes) -> Account:
    """What a layer does with the embedding made for it: a gate, a projection back, a norm."""
    narrow = reader.maybe("hidden_size_per_layer_input", low=0) or 0
    return Account(other=2 * narrow * size.hidden, norms=size.hidden) if narrow else Account()


def _per_layer_tables(reader: Reader, size: Sizes) -> Account:
    """The embedding made for all layers, its projection from the first embedding, and a norm."""
    narrow = reader.maybe("hidden_size_per_layer_input", low=0) or 0
    if not narrow:
        return Account()
    tokens = reader.whole("vocab_size_per_layer_input", default=size.vocabulary)
    return Account(other=(tokens + size.hidden) * narrow * size.layers, norms=narrow)


def gemma3n(reader: Reader, kind: str) -> Model:
    """Gemma 3n: per-layer embeddings, four parallel streams (AltUp), low-rank residuals (LAuReL), shared caches."""
    listed = reader.wholes("intermediate_size")
    flat = Reader({**reader.table, "intermediate_size": listed[0]}, reader.where, reader) if listed else reader
    size = sizes(flat, head_dim=256)
    widths = list(listed or [size.width] * size.layers)[: size.layers]
    kinds = layer_kinds(reader, kind, size.layers)
    sharing = size.layers - reader.count("num_kv_shared_layers", default=15)
    streams, rank = reader.whole("altup_num_inputs", default=4), reader.whole("laurel_rank", default=64)
    altup = size.hidden * (streams + 2) + streams * streams * (streams + 1)
    common = Account(norms=5 * size.hidden, other=altup + 2 * rank * size.hidden) + _per_layer_input(reader, size)
    whole, borrowed = _gemma_attention(size, 2), _gemma_attention(size, 0)
    layers = [
        Layer(
            kind=each if n < sharing else NONE,
            parts=(whole if n < sharing else borrowed) + Account(mlp=mlp(size.hidden, width)) + common,
        )
        for n, (each, width) in enumerate(zip(kinds, widths, strict=False))
    ]
    outside = ends(size, tied=tied(reader, default=True), norm=1) + _per_layer_tables(reader, size)
    outside += Account(other=2 * (streams - 1) * size.hidden * size.hidden)
    shape = Shape(window=window_of(reader, kind))
    return decoder(reader, size, layers, outside, shape)


def mllama(reader: Reader, _kind: str) -> Model:
    """The text side of Llama 3.2 Vision: some layers attend to the image instead of the text."""
    size = sizes(reader)
    crossing = set(reader.wholes("cross_attention_layers"))
    attending = attention_account(reader, size, STYLES["mistral"])
    common = feed_forward(reader, size, STYLES["mistral"]) + Account(norms=2 * size.hidden)
    own = Layer(kind=FULL, parts=attending + common)
    across = Layer(kind=NONE, parts=attending + common + Account(norms=2 * size.head_dim, other=2))
    layers = [across if n in crossing else own for n in range(size.layers)]
    outside = ends(size, tied=tied(reader), norm=1) + Account(embedding=8 * size.hidden)
    shape = Shape(label=f"full on {size.layers - len(crossing)} of {size.layers} layers, the rest attend to the image")
    return decoder(reader, size, layers, outside, shape)


def deepseek_v4(reader: Reader, kind: str) -> Model:
    """DeepSeek-V4: one shared head that is key and value, tokens compressed 4 or 128 times in most layers.

    What it caches is no product of layers and heads, so the cache stays
    unknown; the parameters are counted from class DeepseekV4ForCausalLM.
    """
    size = sizes(reader, width=0)
    rank, out_rank = reader.whole("q_lora_rank"), reader.whole("o_lora_rank")
    groups = reader.whole("o_groups", default=8) or 1
    width = size.heads * size.head_dim
    matrices = size.hidden * rank + rank * width + size.hidden * size.head_dim
    matrices += out_rank * width + groups * out_rank * size.hidden
    streams = reader.whole("hc_mult", default=4)
    mixes = (2 + streams) * streams
    per_layer = Account(
        attention=matrices + size.heads,
        norms=rank + size.head_dim + 2 * size.hidden,
        other=2 * (mixes * streams * size.hidden + mixes + 3),
    )
    count = experts_of(reader, Experts())
    feed = expert_account(size.hidden, count, Experts())
    layers = [
        Layer(kind=FULL, parts=per_layer + feed + _compressor(reader, size, rank, ratio))
        for ratio in _ratios(reader, size.layers)
    ]
    outside = ends(size, tied=tied(reader), norm=1) + Account(other=streams * streams * size.hidden + streams + 1)
    shape = mixture_shape(reader, kind, count, [])
    found = decoder(reader, size, layers, outside, shape)
    return replace(
        found,
        attention=f"mla-like shared-KV + compressed + sliding:{window_of(reader, kind)}",
        layers_full=None,
        layers_windowed=None,
        layers_linear=None,
        window=None,
        mla_q_lora_rank=rank,
        notes="per-layer compression decides cached tokens: KV is not layers x kv x head_dim",
    )


def _ratios(reader: Reader, layers: int) -> list[int]:
    """How many tokens become one in each layer; 0 for no compression."""
    listed = reader.wholes("compress_ratios")
    if len(listed) >= layers:
        return list(listed[:layers])
    names = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
    named = reader.texts("layer_types")
    if len(named) >= layers:
        return [names.get(name, 0) for name in named[:layers]]
    return [128 if n < 2 or n % 2 else 4 for n in range(layers)]  # noqa: PLR2004 - class DeepseekV4Config


def _compressor(reader: Reader, size: Sizes, rank: int, ratio: int) -> Account:
    """Tokens pooled by learned weights; at ratio 4 with overlapping windows, hence twice as wide, and an indexer."""
    if not ratio:
        return Account()
    overlap = 2 if ratio < 128 else 1  # noqa: PLR2004 - as the class has it
    wide = overlap * size.head_dim
    parts = Account(attention=ratio * wide + 2 * size.hidden * wide, norms=size.head_dim)
    if overlap == 1:
        return parts
    heads, each = reader.whole("index_n_heads"), reader.whole("index_head_dim")
    index = ratio * 2 * each + 4 * size.hidden * each + rank * heads * each + size.hidden * heads
    return parts + Account(attention=index, norms=each)


TYPES: dict[str, Callable[[Reader, str], Model]] = {
    "nemotron-nas": nemotron_nas,
    "mimo_v2_flash": mimo_v2,
    "gemma4_text": gemma4,
    "gemma3n_text": gemma3n,
    "mllama_text_model": mllama,
    "deepseek_v4": deepseek_v4,
}
"""Every type of uneven decoder that is known."""
