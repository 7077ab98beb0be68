"""Decoders with multi-head latent attention: DeepSeek and its kin, dense or mixtures, with or without an indexer."""

from __future__ import annotations

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import Layer, Shape, Sizes, decoder, ends, sizes, tied
from rackrate.facts.architecture.mixture import EXPERTS, Experts, expert_account, experts_of, mixture_shape
from rackrate.facts.architecture.parameters import indexer, latent_attention, mlp
from rackrate.facts.architecture.patterns import FULL, sparse_layers
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model
from rackrate.values import Value, replace

TYPES = frozenset(
    {
        *("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "minicpm3", "mistral4"),
        *("glm4_moe_lite", "glm_moe_dsa", "mistral_large4_text"),
    }
)


class Latent(Value, frozen=True, kw_only=True):
    """The sizes of latent attention: ranks of query (0: not compressed) and cache, and those of one head."""

    query_rank: int
    rank: int
    nope: int
    rope: int
    value: int


def latent_sizes(reader: Reader) -> Latent:
    """The keys that all these configurations share (class DeepseekV3Config)."""
    return Latent(
        query_rank=reader.maybe("q_lora_rank", low=0) or 0,
        rank=reader.whole("kv_lora_rank"),
        nope=reader.whole("qk_nope_head_dim"),
        rope=reader.whole("qk_rope_head_dim"),
        value=reader.whole("v_head_dim"),
    )


def latent_account(size: Sizes, of: Latent, *, bias: bool = False) -> Account:
    """Latent attention of one layer with the norms of its latents; biases sit on the projections down and out."""
    matrices = latent_attention(size.hidden, size.heads, (of.query_rank, of.rank), (of.nope, of.rope, of.value))
    biases = (of.query_rank + of.rank + of.rope + size.hidden) if bias else 0
    return Account(attention=matrices + biases, norms=of.query_rank + of.rank)


def latent(reader: Reader, kind: str) -> Model:
    """A decoder with latent attention."""
    size = replace(sizes(reader), head_dim=0)
    of = latent_sizes(reader)
    attending = latent_account(size, of, bias=reader.flag("attention_bias"))
    attending += Account(norms=2 * size.hidden)
    with_index = attending + _indexer(reader, size, of)
    dense_block = Account(mlp=mlp(size.hidden, size.width, bias=reader.flag("mlp_bias")))
    feeds, shape = [dense_block] * size.layers, Shape()
    if any(key in reader for key in EXPERTS):
        count = experts_of(reader, Experts())
        sparse = sparse_layers(reader, size.layers)
        mixed = expert_account(size.hidden, count, Experts())
        feeds = [mixed if each else dense_block for each in sparse]
        shape = mixture_shape(reader, kind, count, sparse)
    layers = [
        Layer(kind=FULL, parts=(with_index if has_index else attending) + feed)
        for feed, has_index in zip(feeds, _indexed(reader, size.layers), strict=False)
    ]
    outside = ends(size, tied=tied(reader, default=kind == "minicpm3"), norm=1)
    return decoder(reader, with_head(size, of), layers, outside, latent_shape(shape, of, label(reader)))


def with_head(size: Sizes, of: Latent) -> Sizes:
    """The sizes with the head of latent attention, which is nope + rope."""
    return replace(size, head_dim=of.nope + of.rope, kv_heads=size.heads)


def latent_shape(shape: Shape, of: Latent, text: str) -> Shape:
    """A shape with what the cache of latent attention follows from."""
    return replace(
        shape,
        label=text,
        latent=of.rank,
        latent_rope=of.rope,
        query_rank=of.query_rank or None,
        value_dim=of.value,
    )


def label(reader: Reader) -> str:
    """The attention in words; DSA is DeepSeek sparse attention."""
    top = reader.maybe("index_topk") if "index_n_heads" in reader else None
    return f"mla + DSA top-{top}" if top else "mla"


def _indexer(reader: Reader, size: Sizes, of: Latent) -> Account:
    if "index_n_heads" not in reader:
        return Account()
    heads, width = reader.whole("index_n_heads"), reader.whole("index_head_dim")
    return Account(attention=indexer(size.hidden, of.query_rank or size.hidden, heads, width))


def _indexed(reader: Reader, layers: int) -> list[bool]:
    """Layers with an indexer of their own; others reuse the selection before them (class GlmMoeDsaConfig)."""
    listed = reader.texts("indexer_types")
    if len(listed) >= layers:
        return [name != "shared" for name in listed[:layers]]
    every, offset = reader.maybe("index_topk_freq") or 1, reader.count("index_skip_topk_offset", default=2)
    return [max(n - offset + 1, 0) % every == 0 for n in range(layers)]
