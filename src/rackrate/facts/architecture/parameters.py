"""Numbers of parameters by closed formula: one function for each kind of block.

Sizes are widths in values; the result counts weights and biases. Where a paper
is cited, the shapes are its equations'; which optional parts a given
architecture has (biases, norms of queries and keys) was read from its class in
huggingface/transformers (src/transformers/models/<type>/modeling_<type>.py).
Buffers, such as rotary tables and a router's correction bias, are no parameters.
"""

from __future__ import annotations

from rackrate.values import Value


class Heads(Value, frozen=True, kw_only=True):
    """An attention block: widths of the model and of all heads together.

    ``value`` differs from ``key`` in a few models only. ``out`` is what goes
    into the output projection.
    """

    hidden: int
    query: int
    key: int
    value: int
    out: int


def grouped(hidden: int, heads: int, kv_heads: int, head_dim: int) -> Heads:
    """Grouped-query attention: ``heads`` queries share ``kv_heads`` keys and values of ``head_dim`` each.

    arXiv 2305.13245; multi-head (kv_heads = heads, arXiv 1706.03762) and
    multi-query attention (kv_heads = 1, arXiv 1911.02150) are its ends.
    """
    query, key = heads * head_dim, kv_heads * head_dim
    return Heads(hidden=hidden, query=query, key=key, value=key, out=query)


def attention(heads: Heads, *, qkv_bias: bool = False, out_bias: bool = False) -> int:
    """Four projections: ``h (q + k + v) + o h``, and their biases."""
    into = heads.query + heads.key + heads.value
    return heads.hidden * (into + heads.out) + into * qkv_bias + heads.hidden * out_bias


def latent_attention(hidden: int, heads: int, ranks: tuple[int, int], dims: tuple[int, int, int]) -> int:
    """Multi-head latent attention, norms aside (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    ``ranks`` = (r_q, r_kv), r_q 0 where queries are not compressed; ``dims`` =
    (nope, rope, value) of one head:
    ``h r_q + r_q n (nope + rope) + h (r_kv + rope) + r_kv n (nope + v) + n v h``.
    """
    (query_rank, latent), (nope, rope, value) = ranks, dims
    query = heads * (nope + rope)
    down = query_rank * (hidden + query) if query_rank else hidden * query
    return down + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden


def indexer(hidden: int, query_rank: int, heads: int, head_dim: int) -> int:
    """The indexer of DeepSeek sparse attention: queries, one key, weights of heads, a layer norm.

    ``r_q n d + h d + h n + 2 d`` (deepseek-ai/DeepSeek-V3.2-Exp inference/model.py, class Indexer).
    """
    return query_rank * heads * head_dim + hidden * (head_dim + heads) + 2 * head_dim


def mlp(hidden: int, width: int, *, gated: bool = True, bias: bool = False) -> int:
    """A feed-forward block: gate, up and down (SwiGLU, arXiv 2002.05202), or two matrices without a gate."""
    into = 2 if gated else 1
    return (into + 1) * hidden * width + (into * width + hidden) * bias


def router(hidden: int, experts: int, *, bias: bool = False) -> int:
    """The router of a mixture of experts: one row for each (arXiv 1701.06538; its trained bias, if it has one)."""
    return experts * (hidden + bias)


def selective_state(hidden: int, inner: int, state: int, rank: int, kernel: int) -> int:
    """A Mamba mixer, norms and optional biases aside (arXiv 2312.00752, section 3.4).

    In-projection ``2 h i``, convolution ``(k + 1) i``, x-projection
    ``i (r + 2 s)``, dt-projection ``(r + 1) i``, ``A`` with ``i s`` and ``D``
    with ``i`` values, out-projection ``i h``.
    """
    projections = 3 * hidden * inner + inner * (rank + 2 * state) + (rank + 1) * inner
    return projections + (kernel + 1) * inner + inner * state + inner


def state_space_dual(hidden: int, heads: tuple[int, int], groups: int, state: int, kernel: int) -> int:
    """A Mamba-2 mixer, its norm and optional biases aside (arXiv 2405.21060, section 7).

    ``heads`` = (number, size), ``i`` their product, ``c = i + 2 groups s`` the
    channels of the convolution: ``h (i + c + n) + (k + 1) c + 3 n + i h``.
    """
    number, size = heads
    inner = number * size
    channels = inner + 2 * groups * state
    return hidden * (inner + channels + number) + (kernel + 1) * channels + 3 * number + inner * hidden


def gated_delta(hidden: int, keys: tuple[int, int], values: tuple[int, int], kernel: int) -> int:
    """A gated delta network (arXiv 2412.06464, section 3; class GatedDeltaNet of qwen3_next).

    ``keys`` and ``values`` = (heads, size), ``q`` and ``v`` their widths: in
    ``h (2 q + 2 v) + 2 h n_v``, convolution ``k (2 q + v)``, ``A`` and dt bias
    ``2 n_v``, out ``v h``, one norm of a head's size.
    """
    query, value = keys[0] * keys[1], values[0] * values[1]
    into = hidden * (2 * query + 2 * value) + 2 * hidden * values[0]
    return into + kernel * (2 * query + value) + 2 * values[0] + value * hidden + values[1]


def delta_attention(hidden: int, heads: int, size: int, kernel: int) -> int:
    """Kimi delta attention (arXiv 2510.26692, section 4; class KimiDeltaAttention of kimi_linear).

    With ``w = n d``: query, key, value and output ``4 h w``, convolutions
    ``3 k w``, the low-rank forget and output gates ``2 (h d + d w)``, beta
    ``h n``, ``A`` with ``n``, dt bias with ``w`` values, one norm of a head's size.
    """
    width = heads * size
    gates = 2 * (hidden * size + size * width)
    return 4 * hidden * width + 3 * kernel * width + gates + hidden * heads + heads + width + size


def short_convolution(hidden: int, kernel: int, *, bias: bool = False) -> int:
    """A gated short convolution (class Lfm2ShortConv): in ``3 h h``, out ``h h``, kernel ``k h``."""
    return 4 * hidden * hidden + kernel * hidden + (5 * hidden if bias else 0)


def layer_norm(width: int) -> int:
    """A layer norm with its bias (arXiv 1607.06450)."""
    return 2 * width


def convolution(inputs: int, outputs: int, size: int, *, bias: bool = True) -> int:
    """A square two-dimensional convolution: ``in x out x size^2``, and a bias for each output."""
    return inputs * outputs * size * size + outputs * bias


def linear(inputs: int, outputs: int, *, bias: bool = True) -> int:
    """A linear map with its bias."""
    return inputs * outputs + outputs * bias
