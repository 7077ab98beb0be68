"""Dense decoders: one attention block and one feed-forward block a layer, in the variants that exist.

What a type has was read from huggingface/transformers,
src/transformers/models/<type>/modeling_<type>.py, and for types without a
class there from the code that publishers ship with their checkpoints.
"""

from __future__ import annotations

from typing import NamedTuple

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import POSITIONS, Layer, Shape, Sizes, decoder, ends, sizes, tied
from rackrate.facts.architecture.parameters import attention, grouped, mlp
from rackrate.facts.architecture.patterns import layer_kinds, window_of
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model

Switch = bool | str
"""On, off, or as the key of this name says: ``a|b`` are two names for it, a ``+`` before it means on by default."""


class Style(NamedTuple):
    """How a type of decoder departs from Llama.

    ``norm``: weights of one norm per unit of width (1 RMS, 2 layer norm, 0
    without any). ``norms``: norms in a layer. ``qk_norm``: norms of queries and
    keys, ``head`` for one head's size, ``width`` for all heads, ``""`` for none;
    ``qk_if`` the key that switches them on. ``positions``: learned position
    embeddings beyond the context's length, None for no such table. ``width``:
    times the model's width that a feed-forward block has when nothing is said.
    """

    norm: int = 1
    norms: int = 2
    qkv: Switch = False
    out: Switch = False
    mlp: Switch = False
    gated: bool = True
    qk_norm: str = ""
    qk_if: str = ""
    tie: bool = False
    positions: int | None = None
    head_bias: bool = False
    width: int = 0
    head_dim: int | None = None


LLAMA = Style(qkv="attention_bias", out="attention_bias", mlp="mlp_bias")
_PLAIN = Style()
_LAYER_NORM = Style(norm=2, qkv=True, out=True, mlp=True, gated=False, width=4)

STYLES: dict[str, Style] = {
    "llama": LLAMA,
    "mistral": _PLAIN,
    "ministral": _PLAIN,
    "ministral3": _PLAIN,
    "yi": _PLAIN,
    "aquila": _PLAIN,
    "baichuan": _PLAIN,
    "minicpm": _PLAIN,
    "internlm": Style(qkv="+bias", out="+bias"),
    "internlm2": Style(qkv="bias", out="bias"),
    "internlm3": Style(qkv="qkv_bias|attention_bias", out="bias|attention_bias", mlp="bias|mlp_bias", head_dim=128),
    "smollm3": LLAMA._replace(tie=True),
    "cwm": _PLAIN,
    "arcee": LLAMA._replace(gated=False),
    "granite": LLAMA,
    "seed_oss": Style(qkv="attention_bias", out="attention_out_bias", mlp="mlp_bias"),
    "ernie4_5": Style(qkv="use_bias", out="use_bias", mlp="use_bias", tie=True),
    "hunyuan_v1_dense": LLAMA._replace(qk_norm="head"),
    "exaone4": Style(qk_norm="head"),
    "olmo": Style(norm=0, qkv="attention_bias", out="attention_bias"),
    "olmo2": Style(qkv="attention_bias", out="attention_bias", qk_norm="width"),
    "olmo3": Style(qkv="attention_bias", out="attention_bias", qk_norm="width"),
    "qwen": Style(qkv=True),
    "qwen2": Style(qkv=True),
    "qwen2_vl_text": Style(qkv=True),
    "qwen2_5_vl_text": Style(qkv=True),
    "mimo": Style(qkv="+attention_bias"),
    "qwen3": Style(qkv="attention_bias", out="attention_bias", qk_norm="head", head_dim=128),
    "qwen3_vl_text": Style(qkv="attention_bias", out="attention_bias", qk_norm="head", head_dim=128),
    "gemma": Style(qkv="attention_bias", out="attention_bias", tie=True, head_dim=256),
    "gemma2": Style(norms=4, qkv="attention_bias", out="attention_bias", tie=True, head_dim=256),
    "gemma3_text": Style(norms=4, qkv="attention_bias", out="attention_bias", qk_norm="head", tie=True, head_dim=256),
    "glm": Style(qkv="+attention_bias"),
    "glm4": Style(norms=4, qkv="+attention_bias"),
    "chatglm": Style(qkv="add_qkv_bias", out="add_bias_linear", mlp="add_bias_linear"),
    "cohere": Style(
        norms=1, qkv="attention_bias", out="attention_bias", qk_norm="width", qk_if="use_qk_norm", tie=True
    ),
    "cohere2": Style(norms=1, qkv="attention_bias", out="attention_bias", tie=True),
    "phi": _LAYER_NORM._replace(norms=1, head_bias=True),
    "phi3": _PLAIN,
    "starcoder2": Style(norm=2, qkv="+use_bias", out="+use_bias", mlp="+use_bias", gated=False, tie=True),
    "stablelm": Style(norm=2, qkv="use_qkv_bias"),
    "nemotron": Style(norm=2, qkv="attention_bias", out="attention_bias", mlp="mlp_bias", gated=False),
    "gpt2": _LAYER_NORM._replace(tie=True, positions=0),
    "gpt_bigcode": _LAYER_NORM._replace(tie=True, positions=0),
    "gpt_neo": _LAYER_NORM._replace(qkv=False, tie=True, positions=0),
    "gpt_neox": _LAYER_NORM._replace(qkv="+attention_bias", out="+attention_bias"),
    "gptj": _LAYER_NORM._replace(norms=1, qkv=False, out=False, head_bias=True),
    "codegen": _LAYER_NORM._replace(norms=1, qkv=False, out=False, head_bias=True),
    "opt": _LAYER_NORM._replace(tie=True, positions=2),
    "bloom": _LAYER_NORM._replace(tie=True),
    "falcon": Style(norm=2, qkv="bias", out="bias", mlp="bias", gated=False, tie=True, width=4),
    "mpt": Style(gated=False, tie=True, width=4),
}
"""Every dense type that is known; ``LLAMA`` stands in for others."""


def dense(reader: Reader, kind: str) -> Model:
    """A dense decoder of type ``kind``; an unknown type is read as Llama is."""
    style = STYLES.get(kind, LLAMA)
    size = dense_sizes(reader, kind, style)
    parts = attention_account(reader, size, style) + feed_forward(reader, size, style)
    parts += Account(norms=norms_of(reader, kind, style) * style.norm * size.hidden)
    kinds = layer_kinds(reader, kind, size.layers)
    if kind == "gpt_neo":
        kinds = _neo_kinds(reader, size.layers)
    layers = [Layer(kind=each, parts=parts) for each in kinds]
    shape = Shape(window=window_of(reader, kind), gated=style.gated)
    return decoder(reader, size, layers, _outside(reader, kind, size, style), shape)


def switched(reader: Reader, switch: Switch) -> bool:
    """Whether a part is there."""
    if isinstance(switch, bool):
        return switch
    return reader.flag(*switch.lstrip("+").split("|"), default=switch.startswith("+"))


def dense_sizes(reader: Reader, kind: str, style: Style) -> Sizes:
    """The sizes of a dense decoder, with what its type takes for granted."""
    hidden = reader.maybe("hidden_size", "n_embd", "d_model") or 0
    ratio = reader.maybe("expansion_ratio") or style.width
    found = sizes(reader, width=ratio * hidden or None, head_dim=style.head_dim)
    heads, width = found.kv_heads, found.width
    if kind == "falcon":
        heads = _falcon_kv_heads(reader, found.heads)
    elif kind == "mpt":
        heads = reader.section("attn_config").maybe("kv_n_heads") or found.heads
    elif kind == "gpt_bigcode" and reader.flag("multi_query", default=True):
        heads = 1
    elif kind == "qwen":
        heads, width = found.heads, found.width // 2  # the file gives both halves of the gated block together
    elif kind == "chatglm" and not reader.flag("multi_query_attention"):
        heads = found.heads
    return Sizes(**{name: getattr(found, name) for name in Sizes.__struct_fields__} | _changed(heads, width))


def _changed(heads: int, width: int) -> dict[str, int]:
    return {"kv_heads": heads, "width": width}


def _falcon_kv_heads(reader: Reader, heads: int) -> int:
    """Falcon's key-value heads: as many as said in the new decoder, else one with multi-query attention."""
    if reader.flag("new_decoder_architecture"):
        return reader.maybe("num_kv_heads", "n_head_kv", "num_key_value_heads") or heads
    return 1 if reader.flag("multi_query", default=True) else heads


def attention_account(reader: Reader, size: Sizes, style: Style) -> Account:
    """The attention block of one layer with the norms of its queries and keys."""
    heads = grouped(size.hidden, size.heads, size.kv_heads, size.head_dim)
    qkv, out = switched(reader, style.qkv), switched(reader, style.out)
    norms = 0
    if style.qk_norm and (not style.qk_if or reader.flag(style.qk_if)):
        norms = 2 * size.head_dim if style.qk_norm == "head" else heads.query + heads.key
    elif reader.flag("qk_layernorm"):  # phi: with bias, stablelm: one row for each head
        norms = 4 * size.head_dim if style.norms == 1 else (size.heads + size.kv_heads) * size.head_dim
    return Account(attention=attention(heads, qkv_bias=qkv, out_bias=out), norms=norms)


def feed_forward(reader: Reader, size: Sizes, style: Style) -> Account:
    """The dense feed-forward block of one layer."""
    return Account(mlp=mlp(size.hidden, size.width, gated=style.gated, bias=switched(reader, style.mlp)))


def norms_of(reader: Reader, kind: str, style: Style) -> int:
    """Norms in a layer: attention and feed-forward block side by side share one, in most of the types that do so."""
    if kind == "falcon":
        return _falcon_norms(reader)
    if kind == "stablelm":
        return 1 if reader.flag("use_parallel_residual") else 2
    return style.norms


def _falcon_norms(reader: Reader) -> int:
    if reader.flag("new_decoder_architecture"):
        return reader.maybe("num_ln_in_parallel_attn") or 2
    return 1 if reader.flag("parallel_attn", default=True) else 2


def _neo_kinds(reader: Reader, layers: int) -> list[str]:
    """GPT-Neo alternates global and local attention (class GPTNeoConfig, attention_types)."""
    listed = reader.texts("attention_layers")
    local = [name == "local" for name in listed[:layers]] or [bool(n % 2) for n in range(layers)]
    return ["windowed" if each else "full" for each in local]


def _outside(reader: Reader, kind: str, size: Sizes, style: Style) -> Account:
    """What is outside the layers of a dense decoder."""
    tie = tied(reader, default=style.tie)
    positions = 0
    if style.positions is not None:
        positions = reader.whole(*POSITIONS, default=1024) + style.positions
    elif kind == "mpt" and not reader.section("attn_config").flag("alibi", default=True):
        positions = reader.whole("max_seq_len", default=2048)
    outside = ends(size, tied=tie, norm=style.norm, positions=positions, head_bias=style.head_bias)
    if kind == "bloom":  # a second norm right behind the embedding
        outside += Account(norms=2 * size.hidden)
    if kind == "opt":
        outside += _opt_projections(reader, size)
    return outside


def _opt_projections(reader: Reader, size: Sizes) -> Account:
    """OPT-350M embeds in a narrower space and has no final norm there (class OPTDecoder)."""
    narrow = reader.maybe("word_embed_proj_dim") or size.hidden
    if narrow == size.hidden:
        return Account()
    saved = size.vocabulary * (size.hidden - narrow)
    norm = -2 * size.hidden if not reader.flag("do_layer_norm_before", default=True) else 0
    return Account(embedding=-saved, other=2 * narrow * size.hidden, norms=norm)
