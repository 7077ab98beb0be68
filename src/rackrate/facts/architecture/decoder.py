"""Decoders: sizes as configurations name them, and the model that layers and their account make."""

from __future__ import annotations

from collections.abc import Sequence

from rackrate.facts.architecture.account import Account, add
from rackrate.facts.architecture.patterns import FULL, LINEAR, NONE, WINDOWED
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.model import Model
from rackrate.values import Value

HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num", "num_attention_groups")
WIDTH = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "feed_forward_dim")
VOCABULARY = ("vocab_size", "padded_vocab_size")
POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length", "seq_len")


class Sizes(Value, frozen=True, kw_only=True):
    """The widths of a decoder; 0 where a finding says that one is missing."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    width: int
    vocabulary: int


class Layer(Value, frozen=True, kw_only=True):
    """One layer: what it keeps of a sequence, its parameters, the values of its fixed state."""

    kind: str
    parts: Account
    state_values: int = 0


class Shape(Value, frozen=True, kw_only=True):
    """What the rooms below must know of a decoder beside its sizes and parameters.

    ``gated``: whether feed-forward blocks have a gate. ``label`` names the
    attention where it is not plain. ``notes`` warn of what the sizes cannot say.
    """

    window: int | None = None
    gated: bool = True
    label: str = ""
    notes: str = ""
    latent: int | None = None
    latent_rope: int | None = None
    query_rank: int | None = None
    value_dim: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    expert_width: int | None = None
    shared_experts: int | None = None
    dense_first: int | None = None


def sizes(reader: Reader, *, width: int | None = None, head_dim: int | None = None, layers: int | None = None) -> Sizes:
    """The sizes under any of their names; arguments are what the class takes when a key is absent.

    Key-value heads default to query heads, the size of a head to the width of
    the model over its heads (class LlamaConfig and its kin).
    """
    hidden, heads = reader.whole(*HIDDEN), reader.whole(*HEADS)
    each = head_dim if head_dim is not None else hidden // heads if heads else 0
    return Sizes(
        hidden=hidden,
        layers=reader.whole(*LAYERS, default=layers, high=MOST_LAYERS),
        heads=heads,
        kv_heads=reader.maybe(*KV_HEADS) or heads,
        head_dim=reader.maybe("head_dim", "attention_head_dim", "kv_channels", "d_kv", "key_value_dim") or each,
        width=reader.whole(*WIDTH, default=width),
        vocabulary=reader.whole(*VOCABULARY),
    )


def tied(reader: Reader, *, default: bool = False) -> bool:
    """Whether the output head is the input embedding."""
    return reader.flag("tie_word_embeddings", default=default)


def ends(size: Sizes, *, tied: bool, norm: int, positions: int = 0, head_bias: bool = False) -> Account:
    """Everything outside the layers: embedding, head, learned positions, the final norm."""
    table = size.vocabulary * size.hidden
    head = (0 if tied else table) + (size.vocabulary if head_bias else 0)
    return Account(embedding=table, head=head, norms=norm * size.hidden, positions=positions * size.hidden)


def decoder(reader: Reader, size: Sizes, layers: Sequence[Layer], outside: Account, shape: Shape) -> Model:
    """The model that layers and what is outside them make."""
    account = add([outside, *(layer.parts for layer in layers)])
    kinds = [layer.kind for layer in layers]
    window = shape.window if WINDOWED in kinds else None
    state = max((layer.state_values for layer in layers), default=0)
    return Model(
        id=reader.where,
        family="",
        params_total=account.total,
        params_active=account.active,
        params_by_group=account.groups,
        hidden_size=size.hidden,
        layers=size.layers,
        attention_heads=size.heads or None,
        kv_heads=size.kv_heads or None,
        head_dim=size.head_dim or None,
        intermediate_size=size.width or None,
        vocab_size=size.vocabulary,
        tie_embeddings=account.head < size.vocabulary * size.hidden,
        max_context=reader.maybe(*POSITIONS),
        attention=shape.label or attention_label(kinds, window),
        layers_full=kinds.count(FULL),
        layers_windowed=kinds.count(WINDOWED),
        window=window,
        layers_linear=kinds.count(LINEAR),
        linear_state_values=state or None,
        mla_kv_lora_rank=shape.latent,
        mla_qk_rope_head_dim=shape.latent_rope,
        mla_q_lora_rank=shape.query_rank,
        mla_v_head_dim=shape.value_dim,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        moe_intermediate_size=shape.expert_width,
        shared_experts=shape.shared_experts,
        dense_layers_first=shape.dense_first,
        mlp_gated=shape.gated,
        notes=shape.notes,
    )


def attention_label(kinds: Sequence[str], window: int | None) -> str:
    """The attention in words, as models.csv writes it."""
    full, windowed, linear, total = (*map(kinds.count, (FULL, WINDOWED, LINEAR)), len(kinds))
    if linear:
        rest = f" + {windowed} sliding:{window}" if windowed else ""
        return f"{linear} linear + {full} full{rest} (of {total})"
    if not windowed:
        none = kinds.count(NONE)
        return f"full on {full} of {total} layers" if none else "full"
    return f"sliding:{window}" if not full else f"{windowed} sliding:{window} + {full} full (of {total})"
