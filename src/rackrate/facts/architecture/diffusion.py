"""Diffusion pipelines: a U-Net or transformer that denoises, text encoders, and the VAE.

Shapes were read from huggingface/diffusers, src/diffusers/models, by class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rackrate.facts.architecture import video
from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.encoder import LABEL
from rackrate.facts.architecture.parameters import convolution, layer_norm, linear
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader, clean
from rackrate.facts.model import Model
from rackrate.values import replace

TIME = 256
"""Channels of the sinusoidal embedding of time (class TimestepEmbedding in the transformers)."""


def component(reader: Reader, name: str) -> Model | None:
    """One component of a pipeline by its class, or None where the class is not known."""
    if name not in CLASSES:
        return None
    found = diffusion_model(reader, CLASSES[name](reader), _sizes(reader, name))
    return replace(found, modality="text-to-video") if "3D" in name else found


def diffusion_model(reader: Reader, account: Account, sizes: tuple[int | None, int | None, int | None]) -> Model:
    """A model that makes images: no tokens, no cache."""
    hidden, layers, heads = sizes
    return Model(
        id=reader.where,
        family="",
        params_total=account.total,
        params_active=account.active,
        params_by_group=account.groups,
        hidden_size=hidden,
        layers=layers,
        attention_heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads if hidden and heads else None,
        intermediate_size=None,
        vocab_size=None,
        tie_embeddings=None,
        max_context=None,
        attention=LABEL,
        layers_full=None,
        layers_windowed=None,
        window=None,
        layers_linear=None,
        modality="text-to-image",
    )


def _sizes(reader: Reader, name: str) -> tuple[int | None, int | None, int | None]:
    heads = reader.maybe("num_attention_heads") if "Transformer" in name else None
    if not heads:
        return None, None, None
    layers = (reader.maybe("num_layers") or 0) + (reader.maybe("num_single_layers", low=0) or 0)
    return heads * (reader.maybe("attention_head_dim") or 0) or None, layers or None, heads


# ---------------------------------------------------------------- blocks


def residual(inputs: int, outputs: int, time: int) -> int:
    """Two convolutions with group norms, a shift by time, a shortcut where the width changes (ResnetBlock2D)."""
    parts = (
        layer_norm(inputs) + convolution(inputs, outputs, 3) + layer_norm(outputs) + convolution(outputs, outputs, 3)
    )
    return (
        parts + (linear(time, outputs) if time else 0) + (convolution(inputs, outputs, 1) if inputs != outputs else 0)
    )


def cross_transformer(width: int, context: int, depth: int) -> int:
    """A group norm, a projection in and out, and blocks of self-attention, cross-attention and a GEGLU."""
    own = 4 * width * width + width
    cross = 2 * width * width + 2 * context * width + width
    feed = linear(width, 8 * width) + linear(4 * width, width)
    return layer_norm(width) + 2 * linear(width, width) + depth * (own + cross + feed + 3 * layer_norm(width))


def two_step(inputs: int, width: int) -> int:
    """Two linear maps with an activation between them."""
    return linear(inputs, width) + linear(width, width)


# ---------------------------------------------------------------- U-Net


def unet(reader: Reader) -> Account:
    """The U-Net of Stable Diffusion and SDXL (arXiv 2112.10752, 2307.01952; class UNet2DConditionModel)."""
    widths = reader.wholes("block_out_channels") or (320, 640, 1280, 1280)
    time = 4 * widths[0]
    context = reader.whole("cross_attention_dim", default=1280)
    parts = convolution(reader.whole("in_channels", default=4), widths[0], 3)
    parts += linear(widths[0], time) + linear(time, time)
    if reader.text("addition_embed_type") == "text_time":
        parts += two_step(reader.whole("projection_class_embeddings_input_dim"), time)
    depths = reader.wholes("transformer_layers_per_block") or (
        (reader.maybe("transformer_layers_per_block") or 1,) * len(widths)
    )
    blocks = _Blocks(widths, time, context, depths, reader.whole("layers_per_block", default=2, high=64))
    down = reader.texts("down_block_types") or ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
    up = reader.texts("up_block_types") or ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3
    parts += blocks.down(down) + blocks.up(up)
    if "mid_block_type" not in reader.table or reader.table["mid_block_type"] is not None:
        parts += 2 * residual(widths[-1], widths[-1], time)
        parts += cross_transformer(widths[-1], context, depths[-1])
    parts += layer_norm(widths[0]) + convolution(widths[0], reader.whole("out_channels", default=4), 3)
    return Account(other=parts)


class _Blocks:
    """The halves of a U-Net: what goes down is kept, and comes back on the way up."""

    def __init__(self, widths: Sequence[int], time: int, context: int, depths: Sequence[int], layers: int) -> None:
        self.widths = widths
        self.time = time
        self.context = context
        self.depths = [*depths, *[1] * len(widths)][: len(widths)]
        self.layers = layers
        self.kept: list[int] = [widths[0]]

    def down(self, kinds: Sequence[str]) -> int:
        """Residual blocks, with cross-attention where the kind says so, then half the sides."""
        parts, before = 0, self.widths[0]
        for n, (width, kind) in enumerate(zip(self.widths, kinds, strict=False)):
            for _ in range(self.layers):
                parts += residual(before, width, self.time) + self._attention(kind, width, n)
                before = width
                self.kept.append(width)
            if n < len(self.widths) - 1:
                parts += convolution(width, width, 3)
                self.kept.append(width)
        return parts

    def up(self, kinds: Sequence[str]) -> int:
        """The same with what was kept joined on, and one residual block more."""
        parts, before = 0, self.widths[-1]
        for n, (width, kind) in enumerate(zip(reversed(self.widths), kinds, strict=False)):
            for _ in range(self.layers + 1):
                joined = self.kept.pop() if self.kept else 0
                parts += residual(before + joined, width, self.time)
                parts += self._attention(kind, width, len(self.widths) - 1 - n)
                before = width
            if n < len(self.widths) - 1:
                parts += convolution(width, width, 3)
        return parts

    def _attention(self, kind: str, width: int, level: int) -> int:
        return cross_transformer(width, self.context, self.depths[level]) if kind.startswith("Cross") else 0


# ---------------------------------------------------------------- VAE


def autoencoder(reader: Reader) -> Account:
    """The VAE between pixels and latents (class AutoencoderKL)."""
    widths = reader.wholes("block_out_channels") or (64,)
    layers, latent = reader.whole("layers_per_block", default=1, high=64), reader.whole("latent_channels", default=4)
    inputs, outputs = reader.whole("in_channels", default=3), reader.whole("out_channels", default=3)
    attends = reader.flag("mid_block_add_attention", default=True)
    parts = convolution(inputs, widths[0], 3) + _sides(widths, layers) + _middle(widths[-1], attends=attends)
    parts += layer_norm(widths[-1]) + convolution(widths[-1], 2 * latent, 3)
    parts += convolution(latent, widths[-1], 3) + _middle(widths[-1], attends=attends)
    parts += _sides(tuple(reversed(widths)), layers + 1) + layer_norm(widths[0]) + convolution(widths[0], outputs, 3)
    parts += convolution(2 * latent, 2 * latent, 1) * reader.flag("use_quant_conv", default=True)
    parts += convolution(latent, latent, 1) * reader.flag("use_post_quant_conv", default=True)
    return Account(other=parts)


def _sides(widths: Sequence[int], layers: int) -> int:
    """Residual blocks of each width, and a change of scale behind all but the last."""
    parts, before = 0, widths[0]
    for n, width in enumerate(widths):
        for _ in range(layers):
            parts += residual(before, width, 0)
            before = width
        parts += convolution(width, width, 3) if n < len(widths) - 1 else 0
    return parts


def _middle(width: int, *, attends: bool) -> int:
    attention = layer_norm(width) + 4 * linear(width, width)
    return 2 * residual(width, width, 0) + (attention if attends else 0)


# ---------------------------------------------------------------- transformers


def flux(reader: Reader) -> Account:
    """FLUX: blocks with two streams, then blocks with one (class FluxTransformer2DModel)."""
    heads, size = reader.whole("num_attention_heads", default=24), reader.whole("attention_head_dim", default=128)
    width = heads * size
    inputs = reader.whole("in_channels", default=64)
    parts = two_step(TIME, width) * (2 if reader.flag("guidance_embeds") else 1)
    parts += two_step(reader.whole("pooled_projection_dim", default=768), width)
    parts += linear(reader.whole("joint_attention_dim", default=4096), width) + linear(inputs, width)
    stream = linear(width, 6 * width) + 4 * linear(width, width) + 2 * size + linear(width, 4 * width)
    double = 2 * (stream + linear(4 * width, width))
    single = linear(width, 3 * width) + linear(width, 4 * width) + linear(5 * width, width)
    single += 3 * linear(width, width) + 2 * size
    parts += double * reader.whole("num_layers", default=19, high=MOST_LAYERS)
    parts += single * reader.whole("num_single_layers", default=38, low=0, high=MOST_LAYERS)
    patch = reader.whole("patch_size", default=1) ** 2
    out = reader.maybe("out_channels") or inputs
    return Account(other=parts + linear(width, 2 * width) + linear(width, patch * out))


def stable_diffusion_3(reader: Reader) -> Account:
    """Stable Diffusion 3: two streams in every block; the last leaves the text behind (arXiv 2403.03206)."""
    heads, size = reader.whole("num_attention_heads", default=18), reader.whole("attention_head_dim", default=64)
    width, layers = heads * size, reader.whole("num_layers", default=18, high=MOST_LAYERS)
    side, inputs = reader.whole("patch_size", default=2), reader.whole("in_channels", default=16)
    parts = convolution(inputs, width, side) + two_step(TIME, width)
    parts += two_step(reader.whole("pooled_projection_dim", default=2048), width)
    parts += linear(reader.whole("joint_attention_dim", default=4096), reader.maybe("caption_projection_dim") or width)
    norms = 2 * size if reader.text("qk_norm") else 0
    feed = linear(width, 4 * width) + linear(4 * width, width)
    stream = linear(width, 6 * width) + 4 * linear(width, width) + norms + feed
    last = 3 * linear(width, width) + norms + linear(width, 2 * width)  # no output, no feed-forward block, two shifts
    dual = 4 * linear(width, width) + norms + linear(width, 3 * width)
    parts += layers * stream + max(layers - 1, 0) * stream + last
    parts += dual * len(reader.wholes("dual_attention_layers"))
    out = reader.maybe("out_channels") or inputs
    return Account(other=parts + linear(width, 2 * width) + linear(width, side * side * out))


def pixart(reader: Reader) -> Account:
    """PixArt: cross-attention in every block, one table of shifts for all (arXiv 2310.00426)."""
    heads, size = reader.whole("num_attention_heads", default=16), reader.whole("attention_head_dim", default=72)
    width, layers = heads * size, reader.whole("num_layers", default=28, high=MOST_LAYERS)
    side = reader.whole("patch_size", default=2)
    parts = convolution(reader.whole("in_channels", default=4), width, side) + two_step(TIME, width)
    parts += linear(width, 6 * width)
    sized = reader.flag("use_additional_conditions", default=reader.maybe("sample_size") == 128)  # noqa: PLR2004
    if sized:
        parts += 2 * two_step(TIME, width // 3)
    context = reader.maybe("cross_attention_dim") or width
    captions = reader.maybe("caption_channels")
    parts += two_step(captions, width) if captions else 0
    own, feed = 4 * linear(width, width), linear(width, 4 * width) + linear(4 * width, width)
    cross = 2 * linear(width, width) + 2 * linear(context, width)
    parts += layers * (own + cross + feed + 6 * width) + 2 * width
    return Account(other=parts + linear(width, side * side * reader.whole("out_channels", default=8)))


CLASSES: dict[str, Callable[[Reader], Account]] = {
    "UNet2DConditionModel": unet,
    "AutoencoderKL": autoencoder,
    "FluxTransformer2DModel": flux,
    "SD3Transformer2DModel": stable_diffusion_3,
    "PixArtTransformer2DModel": pixart,
    "CogVideoXTransformer3DModel": video.cogvideox,
    "HunyuanVideoTransformer3DModel": video.hunyuan,
    "WanTransformer3DModel": video.wan,
    "LTXVideoTransformer3DModel": video.ltx,
    "MochiTransformer3DModel": video.mochi,
}
"""Every class of diffusers that is known."""


# ---------------------------------------------------------------- pipelines

_NOT_NETWORKS = ("scheduler", "tokenizer", "feature_extractor", "image_processor", "safety_checker", "processor")


def parts_of(index: Reader) -> dict[str, str]:
    """The networks that a pipeline is made of (``model_index.json``): the class of each by its folder."""
    found = {}
    for name, value in index.table.items():
        if not isinstance(value, list | tuple) or len(value) != 2 or name.startswith(_NOT_NETWORKS):  # noqa: PLR2004
            continue
        if isinstance(value[1], str):
            found[clean(name)] = clean(value[1])
    return dict(list(found.items())[:_MOST_PARTS])


_MOST_PARTS = 16


def pipeline(index: Reader, counts: Mapping[str, int]) -> Model:
    """A pipeline from the parameters of each of its networks; one that is not counted leaves a finding."""
    for name in parts_of(index):
        if name not in counts:
            index.missing(name, f"the parameters of this part: from {name}/config.json or {name}/*.safetensors")
    groups = tuple((name, counts[name]) for name in parts_of(index) if name in counts)
    if not groups and not index.findings:
        index.missing("unet", "at least one network, such as unet or transformer")
    total = sum(count for _, count in groups)
    found = diffusion_model(index, Account(other=total), (None, None, None))
    notes = "; ".join(f"{name} {count}" for name, count in groups)
    return replace(found, params_by_group=groups, notes=notes)
