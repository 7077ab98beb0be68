"""Encoder-decoders: T5, Whisper, and BART with its kin (mBART, Pegasus, Marian, M2M100 and NLLB)."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import tied
from rackrate.facts.architecture.encoder import block, encoder_model
from rackrate.facts.architecture.parameters import layer_norm, mlp
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.model import Model
from rackrate.values import Value, replace

LABEL = "full enc (bidirectional) + dec self + cross"
NOTE = "layers = encoder + decoder"


class Two(Value, frozen=True, kw_only=True):
    """The sizes of an encoder-decoder; ``width`` of the encoder's feed-forward block, ``behind`` of the decoder's."""

    hidden: int
    encoder: int
    decoder: int
    heads: int
    head_dim: int
    width: int
    behind: int
    vocabulary: int


def t5(reader: Reader, kind: str) -> Model:
    """T5, mT5 and UMT5; the encoder alone where the class is the encoder's (arXiv 1910.10683).

    No biases, one norm before each block, a table of relative positions for
    each head, in the first layer of each side (in every layer of UMT5).
    """
    layers, width = reader.whole("num_layers", high=MOST_LAYERS), reader.whole("d_ff")
    size = Two(
        hidden=reader.whole("d_model"),
        encoder=layers,
        decoder=reader.maybe("num_decoder_layers", high=MOST_LAYERS) or layers,
        heads=reader.whole("num_heads"),
        head_dim=reader.whole("d_kv"),
        width=width,
        behind=width,
        vocabulary=reader.whole("vocab_size"),
    )
    gated = reader.text("feed_forward_proj").startswith("gated")
    each = Account(attention=4 * size.hidden * size.heads * size.head_dim, norms=size.hidden)
    feed = Account(mlp=mlp(size.hidden, size.width, gated=gated), norms=size.hidden)
    buckets = reader.whole("relative_attention_num_buckets", default=32) * size.heads
    tables = (size.encoder, size.decoder) if kind == "umt5" else (1, 1)
    account = Account(embedding=size.vocabulary * size.hidden, norms=size.hidden, positions=buckets * tables[0])
    account += (each + feed).times(size.encoder)
    if any("EncoderModel" in name for name in reader.texts("architectures")):
        found = encoder_model(reader, account, modality="text-encoder", vocabulary=size.vocabulary)
        return replace(found, head_dim=size.head_dim, max_context=reader.maybe("n_positions"))
    account += Account(norms=size.hidden, positions=buckets * tables[1])
    account += (each + each + feed).times(size.decoder)
    tie = tied(reader, default=kind == "t5")
    account += Account(head=0 if tie else size.vocabulary * size.hidden)
    found = replace(_model(reader, size, account), tie_embeddings=tie, mlp_gated=gated)
    return replace(found, layers=size.encoder, notes="layers = per side (encoder and decoder)")


def whisper(reader: Reader, _kind: str) -> Model:
    """Whisper: two convolutions over the spectrogram, keys without bias (arXiv 2212.04356)."""
    size = _two(reader)
    mels = reader.whole("num_mel_bins", default=80)
    frames = reader.whole("max_source_positions", default=1500)
    each = Account(attention=4 * size.hidden * size.hidden + 3 * size.hidden, norms=layer_norm(size.hidden))
    account = Account(
        embedding=size.vocabulary * size.hidden,
        positions=(frames + reader.whole("max_target_positions", default=448)) * size.hidden,
        other=3 * size.hidden * (mels + size.hidden) + 2 * size.hidden,
        norms=2 * layer_norm(size.hidden),
    )
    account += (each + _feed(size.hidden, size.width)).times(size.encoder)
    account += (each + each + _feed(size.hidden, size.behind)).times(size.decoder)
    found = replace(_model(reader, size, account), attention=f"full enc ({frames} frames) + dec self + cross")
    return replace(found, modality="audio", encoder_positions=frames, mel_bins=mels)


def bart(reader: Reader, kind: str) -> Model:
    """BART and its kin: pre-norm or post-norm layers of one size, a norm behind the embeddings or none.

    BART and mBART learn positions, two of them beside the input's (arXiv
    1910.13461, 2001.08210). Pegasus and Marian keep tables of sines as
    parameters that are not trained (arXiv 1912.08777, 1804.00344); M2M100 and
    NLLB make theirs (arXiv 2010.11125, 2207.04672). Final norms of both sides:
    mBART, Pegasus and M2M100. Which family has what: its class in transformers
    (src/transformers/models/<type>/modeling_<type>.py).
    """
    size, length = _two(reader), reader.whole("max_position_embeddings", default=1024)
    learned = {"bart": length + 2, "mbart": length + 2, "pegasus": length, "marian": length}.get(kind, 0)
    norms = {"bart": 1, "mbart": 2, "pegasus": 1, "m2m_100": 1}.get(kind, 0)
    cross = block(size.hidden, size.width)
    cross += Account(mlp=-cross.mlp, norms=-layer_norm(size.hidden))
    account = Account(
        embedding=size.vocabulary * size.hidden,
        positions=2 * learned * size.hidden,
        norms=2 * norms * layer_norm(size.hidden),
    )
    account += block(size.hidden, size.width).times(size.encoder)
    account += (block(size.hidden, size.behind) + cross).times(size.decoder)
    tie = kind != "marian" or _shares_tables(reader)
    if not tie:  # each side has a table of its own, and so has the head
        target = reader.whole("decoder_vocab_size", default=size.vocabulary) * size.hidden
        account += Account(embedding=target, head=0 if tied(reader, default=True) else target)
    return replace(_model(reader, size, account), tie_embeddings=tie or tied(reader, default=True))


def _shares_tables(reader: Reader) -> bool:
    return reader.flag("share_encoder_decoder_embeddings", default=True)


def _feed(hidden: int, width: int) -> Account:
    """A feed-forward block with biases and the norm before it."""
    return Account(mlp=mlp(hidden, width, gated=False, bias=True), norms=layer_norm(hidden))


def _two(reader: Reader) -> Two:
    """The sizes as BART's and Whisper's configurations name them; both sides are as wide."""
    hidden, heads = reader.whole("d_model"), reader.whole("encoder_attention_heads")
    width = reader.whole("encoder_ffn_dim")
    return Two(
        hidden=hidden,
        encoder=reader.whole("encoder_layers", high=MOST_LAYERS),
        decoder=reader.whole("decoder_layers", high=MOST_LAYERS),
        heads=heads,
        head_dim=hidden // heads if heads else 0,
        width=width,
        behind=reader.maybe("decoder_ffn_dim") or width,
        vocabulary=reader.whole("vocab_size"),
    )


def _model(reader: Reader, size: Two, account: Account) -> Model:
    """What all families have in common: biases, no gate, one table for both sides and the head."""
    return Model(
        id=reader.where,
        family="",
        params_total=account.total,
        params_active=account.active,
        params_by_group=account.groups,
        hidden_size=size.hidden,
        layers=size.encoder + size.decoder,
        attention_heads=size.heads,
        kv_heads=size.heads,
        head_dim=size.head_dim or None,
        intermediate_size=max(size.width, size.behind),
        vocab_size=size.vocabulary,
        tie_embeddings=True,
        max_context=reader.maybe("n_positions", "max_target_positions", "max_position_embeddings"),
        attention=LABEL,
        layers_full=size.decoder,
        layers_windowed=0,
        window=None,
        layers_linear=0,
        encoder_layers=size.encoder,
        decoder_layers=size.decoder,
        mlp_gated=False,
        notes=NOTE,
    )


TYPES: dict[str, Callable[[Reader, str], Model]] = {
    "t5": t5,
    "mt5": t5,
    "umt5": t5,
    "whisper": whisper,
    "bart": bart,
    "mbart": bart,
    "pegasus": bart,
    "marian": bart,
    "m2m_100": bart,
}
"""Every type of encoder-decoder that is known."""
