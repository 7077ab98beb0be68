"""Mixers of hybrids: state spaces and linear attention, with the state that they keep of a sequence."""

from __future__ import annotations

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import Sizes
from rackrate.facts.architecture.parameters import (
    attention,
    gated_delta,
    grouped,
    selective_state,
    state_space_dual,
)
from rackrate.facts.architecture.reader import Reader
from rackrate.values import replace

Mixer = tuple[Account, int]
"""A mixer's parameters and the values of its state."""


def mamba(reader: Reader, hidden: int, *, norms: bool = False) -> Mixer:
    """A Mamba mixer (classes JambaMambaMixer, with three small norms, and MambaMixer)."""
    state = reader.whole("mamba_d_state", "state_size", "d_state", default=16)
    kernel = reader.whole("mamba_d_conv", "conv_kernel", "d_conv", default=4)
    inner = reader.maybe("mamba_intermediate_size", "d_inner") or hidden * reader.whole(
        "mamba_expand", "expand", default=2
    )
    automatic = -(-hidden // 16)
    rank_key = next((k for k in ("mamba_dt_rank", "time_step_rank") if k in reader), "")
    rank = automatic if not rank_key or reader.text(rank_key) == "auto" else reader.whole(rank_key)
    parts = selective_state(hidden, inner, state, rank, kernel)
    parts -= 0 if reader.flag("mamba_conv_bias", "use_conv_bias", default=True) else inner
    parts += (2 * inner + hidden) * reader.flag("mamba_proj_bias", "use_bias")
    extra = rank + 2 * state if norms else 0
    return Account(mixers=parts, norms=extra), inner * (state + kernel - 1)


def mamba2(reader: Reader, hidden: int, *, norm: bool = True) -> Mixer:
    """A Mamba-2 mixer (classes BambaMixer, NemotronHMamba2Mixer, Mamba2Mixer)."""
    state = reader.whole("mamba_d_state", "ssm_state_size", "state_size", default=128)
    kernel = reader.whole("mamba_d_conv", "conv_kernel", default=4)
    groups = reader.whole("mamba_n_groups", "n_groups", default=1)
    heads = reader.whole("mamba_n_heads", "mamba_num_heads", "num_heads")
    width = reader.maybe("mamba_d_ssm") or hidden * reader.whole("mamba_expand", "expand", default=2)
    named = "mamba_d_head" if reader.text("mamba_d_head") != "auto" else "mamba_head_dim"
    size = reader.maybe(named, "mamba_head_dim", "head_dim") or (width // heads if heads else 0)
    inner = heads * size
    channels = inner + 2 * groups * state
    parts = state_space_dual(hidden, (heads, size), groups, state, kernel)
    parts -= 0 if reader.flag("mamba_conv_bias", "use_conv_bias", default=True) else channels
    parts += (inner + channels + heads + hidden) * reader.flag("mamba_proj_bias", "use_bias")
    return Account(mixers=parts, norms=inner if norm else 0), inner * state + channels * (kernel - 1)


def delta_net(reader: Reader, hidden: int) -> Mixer:
    """The gated delta network of Qwen3-Next and Qwen3.5."""
    keys = reader.whole("linear_num_key_heads"), reader.whole("linear_key_head_dim")
    values = reader.whole("linear_num_value_heads"), reader.whole("linear_value_head_dim")
    kernel = reader.whole("linear_conv_kernel_dim", default=4)
    channels = 2 * keys[0] * keys[1] + values[0] * values[1]
    state = values[0] * keys[1] * values[1] + channels * (kernel - 1)
    return Account(mixers=gated_delta(hidden, keys, values, kernel)), state


def gated_attention(reader: Reader, size: Sizes) -> Account:
    """Attention whose output is gated: the query projection is twice as wide (class Qwen3NextAttention)."""
    heads = grouped(size.hidden, size.heads, size.kv_heads, size.head_dim)
    bias = reader.flag("attention_bias")
    wide = replace(heads, query=2 * heads.query)
    return Account(attention=attention(wide, qkv_bias=bias, out_bias=bias), norms=2 * size.head_dim)
