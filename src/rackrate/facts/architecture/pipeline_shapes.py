"""The shapes of a pipeline's networks from their configurations: what memory and speed are computed from.

What a configuration does not say is what the pipeline of its class runs with
(huggingface/diffusers src/diffusers/pipelines, ``__call__``): steps, frames,
size, tokens of a prompt, guidance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rackrate.facts.architecture.diffusion import parts_of
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader
from rackrate.facts.denoiser import Denoiser
from rackrate.facts.pipeline import Pipeline
from rackrate.values import Value

Configs = Mapping[str, Mapping[str, object]]
"""The configuration of each part, by the name of its folder."""

DENOISERS = ("unet", "transformer")
VAE = "vae"
_NEXT = "give the whole folder; `rackrate model` shows what is read of it"


class Usual(Value, frozen=True, kw_only=True):
    """What the pipelines of one class of denoiser run with unless told otherwise."""

    steps: int
    passes: int = 2
    text_tokens: int = 77
    width: int = 0
    height: int = 0
    frames: int = 1


def pipeline_shape(index: Reader, configs: Configs, counts: Mapping[str, int]) -> Pipeline | None:
    """The networks of the pipeline in ``index``; None, with a remark that says why, where some are not known."""
    parts = parts_of(index)
    denoises = next((name for name in DENOISERS if name in parts), "")
    kind, vae = SHAPES.get(parts.get(denoises, "")), VAES.get(parts.get(VAE, ""))
    encoders = [name for name in parts if not name.startswith(DENOISERS) and name != VAE]
    if kind is None or vae is None:
        _remark(index, denoises or "unet", f"denoiser {parts.get(denoises)}, VAE {parts.get(VAE)}", ", ".join(SHAPES))
        return None
    absent = [name for name in (denoises, VAE, *encoders) if name not in configs or name not in counts]
    if absent or not encoders:
        _remark(index, (absent or ["text_encoder"])[0], "no config.json, or no count", "the configuration of each part")
        return None
    found = _shape(index, configs, counts, encoders)
    return found if not index.findings else None


def _shape(index: Reader, configs: Configs, counts: Mapping[str, int], encoders: list[str]) -> Pipeline:
    parts = parts_of(index)
    denoises = next(name for name in DENOISERS if name in parts)
    vae = _of(configs, VAE, index)
    texts = [_of(configs, name, index) for name in encoders]
    widest = max(texts, key=lambda text: text.whole(*_HIDDEN, default=1))
    widths = vae.wholes("block_out_channels") or vae.wholes("decoder_block_out_channels") or _wan_widths(vae) or (64,)
    shape = SHAPES[parts[denoises]](_of(configs, denoises, index), vae, index)
    return Pipeline(
        id=index.where,
        denoiser=shape,
        denoiser_params=tuple(counts[name] for name in parts if name.startswith(DENOISERS) and name in counts),
        text_params=tuple(counts[name] for name in encoders),
        text_width=widest.whole(*_HIDDEN, default=1),
        text_feed=widest.whole("intermediate_size", "d_ff", default=1),
        text_table=max(text.whole("vocab_size", default=1) * text.whole(*_HIDDEN, default=1) for text in texts),
        vae=_vae_kind(vae, parts[VAE]),
        vae_params=counts[VAE],
        vae_widths=widths,
        vae_widens=_widens(index, vae, parts[VAE]),
        vae_tile=vae.maybe("sample_size") or TILES.get(parts[VAE], shape.width),
        source="configurations of the pipeline itself",
    )


_HIDDEN = ("hidden_size", "d_model")


def _of(configs: Configs, part: str, index: Reader) -> Reader:
    return Reader(configs[part], f"{part}/config.json", index)


def _remark(index: Reader, part: str, observed: str, expected: str) -> None:
    index.remark(part, observed, f"for images: {expected}", _NEXT)


def _widens(index: Reader, vae: Reader, kind: str) -> str:
    """SDXL's pipelines decode in FP32 where FP16 would overflow; Wan's VAE is loaded in FP32 (pipelines/wan)."""
    if kind == "AutoencoderKLWan":
        return "16bit"
    overflows = "XL" in index.text("_class_name") and vae.flag("force_upcast", default=True)
    return "fp16" if overflows else ""


def _vae_kind(vae: Reader, kind: str) -> str:
    return "wan-residual" if vae.flag("is_residual") else VAES[kind]


def _wan_widths(vae: Reader) -> tuple[int, ...]:
    """Channels of Wan's decoder: multiples of a base (class AutoencoderKLWan)."""
    base = vae.maybe("decoder_base_dim") or vae.maybe("base_dim") or 0
    times = vae.wholes("dim_mult") or (1, 2, 4, 4)
    return tuple(base * each for each in times) if base else ()


# ---------------------------------------------------------------- images


def _unet(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    """A U-Net: the old key ``attention_head_dim`` holds the number of heads (class UNet2DConditionModel)."""
    widths = reader.wholes("block_out_channels") or (320, 640, 1280, 1280)
    kinds = reader.texts("down_block_types") or ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
    said = reader.wholes("transformer_layers_per_block") or (reader.maybe("transformer_layers_per_block") or 1,)
    deep = [*said, *[said[-1]] * len(widths)][: len(widths)]
    heads = reader.wholes("attention_head_dim") or (reader.maybe("attention_head_dim") or 8,)
    second = min(1, len(widths) - 1)
    scale = _scale(vae)
    side = (reader.maybe("sample_size") or 64) * scale
    usual = Usual(steps=50, width=side, height=side)
    attends = [kind.startswith("Cross") for kind in kinds] + [False] * len(widths)
    return _denoiser(
        reader,
        usual,
        kind="unet-linear" if reader.flag("use_linear_projection") else "unet",
        widths=widths,
        layers=reader.whole("layers_per_block", default=2, high=64),
        heads=heads[-1],
        head_width=widths[second] // max(1, heads[min(second, len(heads) - 1)]),
        depths=tuple(depth if attends[n] else 0 for n, depth in enumerate(deep)),
        middle_depth=deep[-1],
        context_width=reader.whole("cross_attention_dim", default=1280),
        latent_scale=scale,
        patch=1,
    )


def _flux(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    steered = reader.flag("guidance_embeds")
    side = 128 * _scale(vae)  # pipeline_flux.py: default_sample_size
    usual = Usual(steps=28 if steered else 4, passes=1, text_tokens=512 if steered else 256, width=side, height=side)
    layers = reader.whole("num_layers", default=19, high=MOST_LAYERS)
    layers += reader.whole("num_single_layers", default=38, low=0, high=MOST_LAYERS)
    heads = (24, 128)
    return _transformer(reader, usual, "flux", heads, layers=layers, latent_scale=_scale(vae), patch=2)


def _stable_diffusion_3(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    side = (reader.maybe("sample_size") or 128) * _scale(vae)
    usual = Usual(steps=28, text_tokens=77 + 256, width=side, height=side)
    layers = reader.whole("num_layers", default=18, high=MOST_LAYERS)
    patch = reader.whole("patch_size", default=2)
    kind = "sd3-normed" if reader.text("qk_norm") else "sd3"
    return _transformer(reader, usual, kind, (18, 64), layers=layers, latent_scale=_scale(vae), patch=patch)


# ---------------------------------------------------------------- video


def _cogvideox(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    scale = _scale(vae)
    usual = Usual(
        steps=50,
        text_tokens=reader.maybe("max_text_seq_length") or 226,
        width=(reader.maybe("sample_width") or 90) * scale,
        height=(reader.maybe("sample_height") or 60) * scale,
        frames=reader.maybe("sample_frames") or 49,
    )
    kind = "cogvideox-rope" if reader.flag("use_rotary_positional_embeddings") else "cogvideox"
    layers, patch = reader.whole("num_layers", default=30, high=MOST_LAYERS), reader.whole("patch_size", default=2)
    frames = vae.maybe("temporal_compression_ratio") or 4
    return _transformer(
        reader, usual, kind, (30, 64), layers=layers, latent_scale=scale, frame_scale=frames, patch=patch
    )


def _hunyuan(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    usual = Usual(steps=50, passes=1, text_tokens=256, width=1280, height=720, frames=129)
    layers = reader.whole("num_layers", default=20, high=MOST_LAYERS)
    layers += reader.whole("num_single_layers", default=40, low=0, high=MOST_LAYERS)
    scale, frames = vae.maybe("spatial_compression_ratio") or 8, vae.maybe("temporal_compression_ratio") or 4
    patch = reader.whole("patch_size", default=2)
    return _transformer(
        reader, usual, "hunyuan", (24, 128), layers=layers, latent_scale=scale, frame_scale=frames, patch=patch
    )


def _wan(reader: Reader, vae: Reader, index: Reader) -> Denoiser:
    """Wan: each token has a time of its own where the pipeline says so (``expand_timesteps``)."""
    tokenwise = index.flag("expand_timesteps")
    scale, frames = vae.maybe("scale_factor_spatial") or 8, vae.maybe("scale_factor_temporal") or 4
    size = (1280, 704, 121) if tokenwise else (832, 480, 81)
    usual = Usual(steps=50, text_tokens=512, width=size[0], height=size[1], frames=size[2])
    layers = reader.whole("num_layers", default=40, high=MOST_LAYERS)
    patch = (reader.wholes("patch_size") or (1, 2, 2))[-1]
    kind = "wan-tokenwise" if tokenwise else "wan"
    return _transformer(
        reader, usual, kind, (40, 128), layers=layers, latent_scale=scale, frame_scale=frames, patch=patch
    )


def _ltx(reader: Reader, vae: Reader, _index: Reader) -> Denoiser:
    usual = Usual(steps=50, text_tokens=128, width=704, height=512, frames=161)
    layers = reader.whole("num_layers", default=28, high=MOST_LAYERS)
    scale, frames = vae.maybe("spatial_compression_ratio") or 32, vae.maybe("temporal_compression_ratio") or 8
    return _transformer(reader, usual, "ltx", (32, 64), layers=layers, latent_scale=scale, frame_scale=frames, patch=1)


def _mochi(reader: Reader, _vae: Reader, _index: Reader) -> Denoiser:
    usual = Usual(steps=64, text_tokens=256, width=848, height=480, frames=85)
    layers, patch = reader.whole("num_layers", default=48, high=MOST_LAYERS), reader.whole("patch_size", default=2)
    return _transformer(reader, usual, "mochi", (24, 128), layers=layers, latent_scale=8, frame_scale=6, patch=patch)


# ---------------------------------------------------------------- what all have


def _scale(vae: Reader) -> int:
    """Pixels a side of a latent: each level but the last halves the sides."""
    return int(2 ** (len(vae.wholes("block_out_channels")[:8] or (64,)) - 1))


def _transformer(reader: Reader, usual: Usual, kind: str, heads: tuple[int, int], **more: int) -> Denoiser:
    """A transformer of one width; ``heads`` are its class's defaults, number and size."""
    many = reader.whole("num_attention_heads", default=heads[0])
    size = reader.whole("attention_head_dim", default=heads[1])
    feeds = {"wan": 13824, "wan-tokenwise": 13824, "mochi": 8192}
    feed = reader.maybe("ffn_dim") or feeds.get(kind, 4 * many * size)
    texts = ("joint_attention_dim", "text_embed_dim", "text_dim", "caption_channels")
    return _denoiser(
        reader,
        usual,
        kind=kind,
        widths=(many * size,),
        heads=many,
        head_width=size,
        feed=feed,
        context_width=reader.whole(*texts, default=4096),
        **more,
    )


def _denoiser(reader: Reader, usual: Usual, **shape: object) -> Denoiser:
    shape = {"feed": 0, "depths": (), "middle_depth": 0, "frame_scale": 1} | shape
    return Denoiser(
        id=reader.where,
        text_tokens=usual.text_tokens,
        passes=usual.passes,
        steps=usual.steps,
        width=usual.width,
        height=usual.height,
        frames=usual.frames,
        source="configurations of the pipeline itself",
        **shape,  # type: ignore[arg-type]
    )


SHAPES: dict[str, Callable[[Reader, Reader, Reader], Denoiser]] = {
    "UNet2DConditionModel": _unet,
    "FluxTransformer2DModel": _flux,
    "SD3Transformer2DModel": _stable_diffusion_3,
    "CogVideoXTransformer3DModel": _cogvideox,
    "HunyuanVideoTransformer3DModel": _hunyuan,
    "WanTransformer3DModel": _wan,
    "LTXVideoTransformer3DModel": _ltx,
    "MochiTransformer3DModel": _mochi,
}
"""Denoisers whose memory and speed are known, by class."""

VAES = {
    "AutoencoderKL": "kl",
    "AutoencoderKLCogVideoX": "cogvideox",
    "AutoencoderKLHunyuanVideo": "hunyuan",
    "AutoencoderKLWan": "wan",
    "AutoencoderKLLTXVideo": "ltx",
    "AutoencoderKLMochi": "mochi",
}
"""Kinds of VAE, by class."""

TILES = {
    "AutoencoderKLCogVideoX": 294,
    "AutoencoderKLHunyuanVideo": 256,
    "AutoencoderKLWan": 256,
    "AutoencoderKLLTXVideo": 512,
    "AutoencoderKLMochi": 256,
}
"""Sides of a tile where the configuration does not say (tile_sample_min_height and -width of each class)."""
