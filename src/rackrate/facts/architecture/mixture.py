"""Mixtures of experts on grouped-query attention: which layers are sparse, how many experts there are, how wide."""

from __future__ import annotations

from typing import NamedTuple

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import Layer, Shape, Sizes, decoder, ends, tied
from rackrate.facts.architecture.dense import LLAMA, STYLES, Style, attention_account, dense_sizes, feed_forward
from rackrate.facts.architecture.parameters import mlp, router
from rackrate.facts.architecture.patterns import layer_kinds, sparse_layers, window_of
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
PER_TOKEN: tuple[str, ...] = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts")
PER_TOKEN += ("moe_k", "moe_top_k", "moe_topk")
WIDTH = ("moe_intermediate_size", "intermediate_size")
SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
SHARED_WIDTH = ("shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size")


class Experts(NamedTuple):
    """What a type's mixture has beside its experts.

    ``shared_gate``: a gate of one row on the shared expert. ``router_bias``: a
    trained bias of the router. ``bias``: biases in the experts. ``one_shared``:
    one shared expert of the experts' width that no key names. ``gated`` as in
    dense blocks. ``all``: every layer is sparse whatever the keys say.
    """

    shared_gate: bool = False
    router_bias: bool = False
    bias: bool = False
    one_shared: bool = False
    gated: bool = True
    all: bool = False


class Type(NamedTuple):
    """A type of mixture: its attention and norms, and its experts."""

    style: Style
    experts: Experts = Experts()


_PLAIN = Style()
_QWEN3 = STYLES["qwen3"]._replace(head_dim=None)

TYPES: dict[str, Type] = {
    "mixtral": Type(_PLAIN, Experts(all=True)),
    "qwen2_moe": Type(Style(qkv="+qkv_bias"), Experts(shared_gate=True)),
    "qwen3_moe": Type(_QWEN3),
    "qwen3_vl_moe_text": Type(_QWEN3),
    "olmoe": Type(Style(qkv="attention_bias", out="attention_bias", qk_norm="width"), Experts(all=True)),
    "phimoe": Type(Style(norm=2, qkv="attention_bias", out="attention_bias"), Experts(all=True)),
    "gpt_oss": Type(Style(qkv=True, out=True), Experts(router_bias=True, bias=True, all=True)),
    "glm4_moe": Type(Style(qkv="attention_bias", qk_norm="head", qk_if="use_qk_norm")),
    "glm4v_moe_text": Type(Style(qkv="+attention_bias")),
    "llama4_text": Type(Style(qkv="attention_bias", out="attention_bias"), Experts(one_shared=True)),
    "minimax_m2": Type(Style(qk_norm="width"), Experts(all=True)),
    "minimax_m3": Type(Style(qk_norm="head")),
    "minimax_m3_vl_text": Type(Style(qk_norm="head")),
    "ernie4_5_moe": Type(Style(qkv="use_bias", out="use_bias", mlp="use_bias", tie=True), Experts(router_bias=True)),
    "granitemoe": Type(Style(qkv="attention_bias", out="attention_bias"), Experts(all=True)),
    "granitemoeshared": Type(Style(qkv="attention_bias", out="attention_bias"), Experts(all=True)),
    "dbrx": Type(_PLAIN, Experts(all=True)),
    "grok-1": Type(Style(norms=4, tie=True), Experts(all=True)),
    "step3p5": Type(Style(qk_norm="head")),
    "step3p7": Type(Style(qk_norm="head")),
    "hunyuan_v1_moe": Type(Style(qkv="attention_bias", out="attention_bias", qk_norm="head"), Experts(all=True)),
}
"""Every type of mixture with ordinary attention that is known."""

_SPARSE_SINKS = frozenset({"gpt_oss"})


class Count(NamedTuple):
    """Experts of one layer: how many, how many a token uses, how wide, and the width of all shared ones together."""

    experts: int
    used: int
    width: int
    shared: int


def mixture(reader: Reader, kind: str) -> Model:
    """A mixture of experts of type ``kind``; an unknown type is read as Mixtral with Llama's attention."""
    type_ = TYPES.get(kind, Type(LLAMA))
    reader = _flat(reader, kind)
    size = dense_sizes(reader, kind, type_.style)
    count = experts_of(reader, type_.experts)
    sparse = [True] * size.layers if type_.experts.all else sparse_layers(reader, size.layers)
    attending = attention_account(reader, size, type_.style) + _extras(kind, size)
    attending += Account(norms=type_.style.norms * type_.style.norm * size.hidden)
    dense_block = _dense_block(reader, kind, size, type_.style)
    mixed = attending + expert_account(size.hidden, count, type_.experts)
    kinds = layer_kinds(reader, kind, size.layers)
    layers = [
        Layer(kind=each, parts=(mixed if is_sparse else attending + dense_block) + _index(reader, kind, n))
        for n, (each, is_sparse) in enumerate(zip(kinds, sparse, strict=False))
    ]
    outside = ends(
        size,
        tied=tied(reader, default=type_.style.tie),
        norm=type_.style.norm,
        head_bias=kind == "phimoe" and reader.flag("lm_head_bias"),
    )
    return decoder(reader, size, layers, outside, mixture_shape(reader, kind, count, sparse))


def experts_of(reader: Reader, has: Experts) -> Count:
    """How many experts a layer has, and how wide."""
    width = reader.whole(*WIDTH)
    shared = reader.maybe(*SHARED_WIDTH, low=0)
    if shared is None:
        shared = width if has.one_shared else (reader.maybe(*SHARED, low=0) or 0) * width
    experts = reader.whole(*EXPERTS)
    used = reader.whole(*PER_TOKEN)
    if used > experts > 0:
        reader.wrong(PER_TOKEN[0], used, f"at most {experts}, the number of experts")
    return Count(experts=experts, used=min(used, experts), width=width, shared=shared)


def expert_account(hidden: int, count: Count, has: Experts) -> Account:
    """Routed and shared experts of one layer with their router; the experts that a token leaves out are idle.

    ``E m h w + m h w_s + E h`` with m matrices in a block (arXiv 1701.06538;
    shared experts: DeepSeekMoE, arXiv 2401.06066).
    """
    each = mlp(hidden, count.width, gated=has.gated, bias=has.bias)
    shared = mlp(hidden, count.shared, gated=has.gated) + hidden * has.shared_gate if count.shared else 0
    whole = count.experts * each + shared + router(hidden, count.experts, bias=has.router_bias)
    return Account(experts=whole, idle=(count.experts - count.used) * each)


def mixture_shape(reader: Reader, kind: str, count: Count, sparse: list[bool], notes: str = "") -> Shape:
    """What the rooms below must know of a mixture."""
    shared = -(-count.shared // count.width) if count.width else 0
    return Shape(
        window=window_of(reader, kind),
        notes=notes,
        experts=count.experts,
        experts_per_token=count.used,
        expert_width=count.width,
        shared_experts=shared,
        dense_first=sparse.count(False),
    )


# ---------------------------------------------------------------- what single types do differently


def _flat(reader: Reader, kind: str) -> Reader:
    """DBRX keeps the sizes of attention and experts in tables of their own."""
    if kind != "dbrx":
        return reader
    inside = {**reader.section("ffn_config").table, **reader.section("attn_config").table}
    inside = {
        "intermediate_size": inside.get("ffn_hidden_size"),
        "num_key_value_heads": inside.get("kv_n_heads"),
    } | inside
    return Reader({**inside, **reader.table}, reader.where, reader)


def _dense_block(reader: Reader, kind: str, size: Sizes, style: Style) -> Account:
    """The feed-forward block of layers that are not sparse."""
    width = size.width
    if kind == "llama4_text":
        width = reader.maybe("intermediate_size_mlp") or width
    elif kind in {"minimax_m3", "minimax_m3_vl_text"}:
        width = reader.maybe("dense_intermediate_size") or width
    wide = Sizes(**{name: getattr(size, name) for name in Sizes.__struct_fields__} | {"width": width})
    return feed_forward(reader, wide, style)


def _extras(kind: str, size: Sizes) -> Account:
    """Small parts of attention that one type has: a sink for each head, a gate on each head's output."""
    if kind in _SPARSE_SINKS:
        return Account(attention=size.heads)
    if kind in {"step3p5", "step3p7"}:
        return Account(attention=size.hidden * size.heads)
    return Account()


def _index(reader: Reader, kind: str, layer: int) -> Account:
    """MiniMax-M3's block selector on its sparse layers: queries, one key, two norms (class ...SparseIndexer)."""
    if kind not in {"minimax_m3", "minimax_m3_vl_text"}:
        return Account()
    table = reader.inner("sparse_attention_config") or reader
    where = table.wholes("sparse_attention_freq")
    listed = reader.texts("layer_types")
    sparse = where[layer : layer + 1] == (1,) or listed[layer : layer + 1] == ("minimax_m3_sparse",)
    if not sparse:
        return Account()
    heads = table.maybe("index_n_heads", "sparse_num_index_heads") or 0
    width = table.maybe("index_head_dim", "sparse_index_dim") or 0
    return Account(attention=reader.whole("hidden_size") * (heads + 1) * width, norms=2 * width)
