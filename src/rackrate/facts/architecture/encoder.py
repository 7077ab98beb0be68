"""Encoders: text (BERT and its kin), images (ViT), and the two joined by a contrast (CLIP, SigLIP)."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import HEADS, HIDDEN, LAYERS, POSITIONS, WIDTH
from rackrate.facts.architecture.parameters import attention, convolution, grouped, layer_norm, linear, mlp
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.model import Model

LABEL = "full (bidirectional, no KV cache)"


def block(hidden: int, width: int, *, gated: bool = False, bias: bool = True, norm: int = 2) -> Account:
    """One layer of an encoder: attention as wide as the model, feed-forward block, two norms."""
    full = grouped(hidden, 1, 1, hidden)  # how many heads share the width changes no count
    return Account(
        attention=attention(full, qkv_bias=bias, out_bias=bias),
        mlp=mlp(hidden, width, gated=gated, bias=bias),
        norms=2 * norm * hidden,
    )


def encoder_model(reader: Reader, account: Account, *, modality: str, vocabulary: int | None = None) -> Model:
    """An encoder with this account; sizes are those of its only, or its larger, tower."""
    hidden, heads = reader.maybe(*HIDDEN), reader.maybe(*HEADS)
    return Model(
        id=reader.where,
        family="",
        params_total=account.total,
        params_active=account.active,
        params_by_group=account.groups,
        hidden_size=hidden,
        layers=reader.maybe(*LAYERS),
        attention_heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads if hidden and heads else None,
        intermediate_size=reader.maybe(*WIDTH),
        vocab_size=vocabulary,
        tie_embeddings=None,
        max_context=reader.maybe(*POSITIONS) if vocabulary else None,
        attention=LABEL,
        layers_full=None,
        layers_windowed=None,
        window=None,
        layers_linear=None,
        mlp_gated=False,
        modality=modality,
    )


def bert(reader: Reader, kind: str) -> Model:
    """BERT, RoBERTa and XLM-RoBERTa with the pooler, DistilBERT without (arXiv 1810.04805)."""
    hidden, layers = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    width = reader.maybe("hidden_dim") if kind == "distilbert" else None
    width = width or reader.whole(*WIDTH)
    vocabulary = reader.whole("vocab_size")
    types = 0 if kind == "distilbert" else reader.count("type_vocab_size", default=2)
    pooler = 0 if kind == "distilbert" else linear(hidden, hidden)
    account = Account(
        embedding=vocabulary * hidden,
        positions=(reader.whole(*POSITIONS) + types) * hidden,
        norms=layer_norm(hidden),
        other=pooler,
    )
    account += block(hidden, width).times(layers)
    return encoder_model(reader, account, modality="text-encoder", vocabulary=vocabulary)


def modern_bert(reader: Reader, _kind: str) -> Model:
    """ModernBERT: gated blocks, no biases, no norm before the first attention (arXiv 2412.13663)."""
    hidden, layers = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    vocabulary = reader.whole("vocab_size")
    account = Account(embedding=vocabulary * hidden, norms=hidden)  # of the embedding; the last layer's closes the sum
    account += block(hidden, reader.whole(*WIDTH), gated=True, bias=False, norm=1).times(layers)
    return encoder_model(reader, account, modality="text-encoder", vocabulary=vocabulary)


def vit(reader: Reader, _kind: str) -> Model:
    """ViT with a class token and the pooler (arXiv 2010.11929)."""
    hidden, layers = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    account = Account(
        positions=(_patches(reader) + 2) * hidden,
        other=convolution(3, hidden, reader.whole("patch_size", default=16)) + linear(hidden, hidden),
        norms=layer_norm(hidden),
    )
    account += block(hidden, reader.whole(*WIDTH)).times(layers)
    return encoder_model(reader, account, modality="image")


def _patches(reader: Reader) -> int:
    """Patches of the square image that the model was made for."""
    return (reader.whole("image_size", default=224) // (reader.whole("patch_size", default=16) or 1)) ** 2


def clip_vision(reader: Reader) -> Account:
    """CLIP's vision tower, projection aside: class token, patches without bias, norms before and after."""
    hidden, layers = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    account = Account(
        positions=(_patches(reader) + 2) * hidden,
        other=convolution(reader.whole("num_channels", default=3), hidden, reader.whole("patch_size"), bias=False),
        norms=2 * layer_norm(hidden),
    )
    return account + block(hidden, reader.whole(*WIDTH)).times(layers)


def clip_text(reader: Reader) -> Account:
    """CLIP's text tower, projection aside."""
    hidden, layers = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS)
    account = Account(
        embedding=reader.whole("vocab_size", default=49408) * hidden,
        positions=reader.whole("max_position_embeddings", default=77) * hidden,
        norms=layer_norm(hidden),
    )
    return account + block(hidden, reader.whole(*WIDTH)).times(layers)


def siglip_vision(reader: Reader) -> Account:
    """SigLIP's vision tower: no class token, patches with bias, and a head that attends to all (arXiv 2303.15343)."""
    hidden, layers, width = reader.whole(*HIDDEN), reader.whole(*LAYERS, high=MOST_LAYERS), reader.whole(*WIDTH)
    account = Account(
        positions=_patches(reader) * hidden,
        other=convolution(reader.whole("num_channels", default=3), hidden, reader.whole("patch_size")),
        norms=layer_norm(hidden),
    )
    account += block(hidden, width).times(layers)
    if reader.flag("vision_use_head", default=True):
        account += block(hidden, width) + Account(norms=-layer_norm(hidden), other=hidden)
    return account


def clip(reader: Reader, _kind: str) -> Model:
    """CLIP: both towers, a projection from each into one space, one scale (arXiv 2103.00020)."""
    text, vision = reader.section("text_config"), reader.section("vision_config")
    text.defaults, vision.defaults = CLIP_TEXT, CLIP_VISION
    space = reader.whole("projection_dim", default=512)
    account = clip_text(text) + clip_vision(vision)
    account += Account(other=space * (text.whole(*HIDDEN) + vision.whole(*HIDDEN)) + 1)
    return encoder_model(vision, account, modality="image+text")


def clip_text_model(reader: Reader, _kind: str) -> Model:
    """CLIP's text tower on its own, as diffusion pipelines have it; with its projection where the class says so."""
    account = clip_text(reader)
    if any("WithProjection" in name for name in reader.texts("architectures")):
        account += Account(other=reader.whole(*HIDDEN) * reader.whole("projection_dim"))
    return encoder_model(reader, account, modality="text-encoder", vocabulary=reader.whole("vocab_size", default=49408))


def clip_vision_model(reader: Reader, _kind: str) -> Model:
    """CLIP's vision tower on its own."""
    return encoder_model(reader, clip_vision(reader), modality="image")


def siglip_vision_model(reader: Reader, _kind: str) -> Model:
    """SigLIP's vision tower on its own."""
    return encoder_model(reader, siglip_vision(reader), modality="image")


def siglip(reader: Reader, _kind: str) -> Model:
    """SigLIP: both towers, a head on the text tower, a scale and a bias."""
    text, vision = reader.section("text_config"), reader.section("vision_config")
    text.defaults, vision.defaults = SIGLIP_TEXT, SIGLIP_VISION
    hidden = text.whole(*HIDDEN)
    account = clip_text(text) + siglip_vision(vision)
    account += Account(other=linear(hidden, text.maybe("projection_size") or hidden) + 2)
    return encoder_model(vision, account, modality="image+text")


# Sizes that a nested table may leave out: the defaults of its class (transformers configuration_<type>.py).
CLIP_TEXT = {
    "hidden_size": 512,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "vocab_size": 49408,
}
CLIP_VISION = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "patch_size": 32,
}
SIGLIP_TEXT = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 32000,
    "max_position_embeddings": 64,
}
SIGLIP_VISION = CLIP_VISION | {"patch_size": 16}

TYPES: dict[str, Callable[[Reader, str], Model]] = {
    "bert": bert,
    "roberta": bert,
    "xlm-roberta": bert,
    "camembert": bert,
    "distilbert": bert,
    "modernbert": modern_bert,
    "vit": vit,
    "clip": clip,
    "clip_text_model": clip_text_model,
    "clip_vision_model": clip_vision_model,
    "siglip": siglip,
    "siglip_vision_model": siglip_vision_model,
}
"""Every type of encoder that is known."""
