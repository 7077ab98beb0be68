"""Encoder-decoders: T5, Whisper, BART."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import tied
from rackrate.facts.architecture.encoder import block, encoder_model
from rackrate.facts.architecture.parameters import layer_norm, mlp
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.model import Model
from rackrate.values import Value, replace


class Two(Value, frozen=True, kw_only=True):
    """The sizes of an encoder-decoder."""

    hidden: int
    encoder: int
    decoder: int
    heads: int
    head_dim: int
    width: int
    vocabulary: int


def t5(reader: Reader, kind: str) -> Model:
    """T5, mT5 and UMT5; the encoder alone where the class is the encoder's (arXiv 1910.10683).

    No biases, one norm before each block, a table of relative positions for
    each head, in the first layer of each side (in every layer of UMT5).
    """
    size = Two(
        hidden=reader.whole("d_model"),
        encoder=reader.whole("num_layers", high=MOST_LAYERS),
        decoder=reader.maybe("num_decoder_layers", high=MOST_LAYERS) or reader.whole("num_layers", high=MOST_LAYERS),
        heads=reader.whole("num_heads"),
        head_dim=reader.whole("d_kv"),
        width=reader.whole("d_ff"),
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
    note = "layers = per side (encoder and decoder)"
    return _model(reader, size, account, "full enc (bidirectional) + dec self + cross", (gated, tie, note))


def whisper(reader: Reader, _kind: str) -> Model:
    """Whisper: two convolutions over the spectrogram, keys without bias (arXiv 2212.04356)."""
    size = _two(reader)
    mels = reader.whole("num_mel_bins", default=80)
    each = Account(attention=4 * size.hidden * size.hidden + 3 * size.hidden, norms=layer_norm(size.hidden))
    feed = Account(mlp=mlp(size.hidden, size.width, gated=False, bias=True), norms=layer_norm(size.hidden))
    account = Account(
        embedding=size.vocabulary * size.hidden,
        positions=(
            reader.whole("max_source_positions", default=1500) + reader.whole("max_target_positions", default=448)
        )
        * size.hidden,
        other=3 * size.hidden * (mels + size.hidden) + 2 * size.hidden,
        norms=2 * layer_norm(size.hidden),
    )
    account += (each + feed).times(size.encoder) + (each + each + feed).times(size.decoder)
    label = f"full enc ({reader.whole('max_source_positions', default=1500)} frames) + dec self + cross"
    found = _model(reader, size, account, label, (False, True, "layers = encoder + decoder"))
    return replace(found, layers=size.encoder + size.decoder, modality="audio")


def bart(reader: Reader, kind: str) -> Model:
    """BART and mBART: learned positions with an offset of two, a norm behind the embeddings (arXiv 1910.13461)."""
    size = _two(reader)
    side = block(size.hidden, size.width)
    cross = side + Account(mlp=-side.mlp, norms=-layer_norm(size.hidden))
    final = layer_norm(size.hidden) if kind == "mbart" else 0
    account = Account(
        embedding=size.vocabulary * size.hidden,
        positions=2 * (reader.whole("max_position_embeddings", default=1024) + 2) * size.hidden,
        norms=2 * (layer_norm(size.hidden) + final),
    )
    account += side.times(size.encoder) + (side + cross).times(size.decoder)
    label = "full enc (bidirectional) + dec self + cross"
    found = _model(reader, size, account, label, (False, True, "layers = encoder + decoder"))
    return replace(found, layers=size.encoder + size.decoder)


def _two(reader: Reader) -> Two:
    """The sizes as BART's and Whisper's configurations name them; both sides are of one width."""
    hidden, heads = reader.whole("d_model"), reader.whole("encoder_attention_heads")
    return Two(
        hidden=hidden,
        encoder=reader.whole("encoder_layers", high=MOST_LAYERS),
        decoder=reader.whole("decoder_layers", high=MOST_LAYERS),
        heads=heads,
        head_dim=hidden // heads if heads else 0,
        width=reader.whole("encoder_ffn_dim"),
        vocabulary=reader.whole("vocab_size"),
    )


def _model(reader: Reader, size: Two, account: Account, label: str, rest: tuple[bool, bool, str]) -> Model:
    gated, tie, note = rest
    return Model(
        id=reader.where,
        family="",
        params_total=account.total,
        params_active=account.active,
        params_by_group=account.groups,
        hidden_size=size.hidden,
        layers=size.encoder,
        attention_heads=size.heads,
        kv_heads=size.heads,
        head_dim=size.head_dim or None,
        intermediate_size=size.width,
        vocab_size=size.vocabulary,
        tie_embeddings=tie,
        max_context=reader.maybe("n_positions", "max_target_positions", "max_position_embeddings"),
        attention=label,
        layers_full=None,
        layers_windowed=None,
        window=None,
        layers_linear=None,
        mlp_gated=gated,
        notes=note,
    )


TYPES: dict[str, Callable[[Reader, str], Model]] = {
    "t5": t5,
    "mt5": t5,
    "umt5": t5,
    "whisper": whisper,
    "bart": bart,
    "mbart": bart,
}
"""Every type of encoder-decoder that is known."""
