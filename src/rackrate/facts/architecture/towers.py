"""Towers: the parts of vision-language models that see, with the projection to the text model."""

from __future__ import annotations

from collections.abc import Callable

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import HIDDEN, LAYERS, WIDTH
from rackrate.facts.architecture.encoder import CLIP_VISION, SIGLIP_VISION, block, clip_vision, siglip_vision
from rackrate.facts.architecture.parameters import attention, convolution, grouped, layer_norm, linear, mlp
from rackrate.facts.architecture.reader import MOST_LAYERS, Reader


def llava(reader: Reader, vision: Reader, text: int) -> Account:
    """LLaVA: CLIP, SigLIP or Pixtral's tower, then two linear maps (arXiv 2310.03744).

    LLaVA-NeXT and LLaVA-OneVision add one row for new lines.
    """
    siglip = vision.text("model_type") == "siglip_vision_model"
    vision.defaults = SIGLIP_VISION if siglip else CLIP_VISION
    if vision.text("model_type") == "pixtral":
        tower = _pixtral_tower(vision, vision.whole(*HIDDEN))
    else:
        tower = siglip_vision(vision) if siglip else clip_vision(vision)
    bias = reader.flag("multimodal_projector_bias", default=True)
    joint = linear(vision.whole(*HIDDEN), text, bias=bias) + linear(text, text, bias=bias)
    return tower + Account(other=joint + text * (reader.text("model_type") in _NEW_LINES))


_NEW_LINES = ("llava_next", "llava_onevision")


def gemma3(_reader: Reader, vision: Reader, text: int) -> Account:
    """Gemma 3: SigLIP, a projection without bias and a norm."""
    vision.defaults = SIGLIP_VISION
    width = vision.whole(*HIDDEN)
    return siglip_vision(vision) + Account(other=width * text + width)


def paligemma(reader: Reader, vision: Reader, text: int) -> Account:
    """PaliGemma: SigLIP, one linear map (arXiv 2407.07726)."""
    vision.defaults = SIGLIP_VISION
    out = vision.maybe("projection_dim") or reader.maybe("projection_dim") or text
    return siglip_vision(vision) + Account(other=linear(vision.whole(*HIDDEN), out))


def pixtral(reader: Reader, vision: Reader, text: int) -> Account:
    """Mistral Small 3.1 and its kin: Pixtral's tower (arXiv 2410.07073), four patches merged to one, two maps."""
    hidden = vision.whole(*HIDDEN)
    tower = _pixtral_tower(vision, hidden)
    merge = reader.whole("spatial_merge_size", default=2) ** 2
    bias = reader.flag("multimodal_projector_bias")
    joint = hidden + merge * hidden * hidden + linear(hidden, text, bias=bias) + linear(text, text, bias=bias)
    return tower + Account(other=joint)


def _pixtral_tower(vision: Reader, hidden: int) -> Account:
    """Patches without bias, a norm, gated blocks with one each."""
    layers, width = vision.whole(*LAYERS, high=MOST_LAYERS), vision.whole(*WIDTH)
    tower = Account(other=convolution(3, hidden, vision.whole("patch_size", default=16), bias=False), norms=hidden)
    return tower + block(hidden, width, gated=True, bias=False, norm=1).times(layers)


def idefics3(reader: Reader, vision: Reader, text: int) -> Account:
    """Idefics3 and SmolVLM: SigLIP without its head, patches side by side through one map (arXiv 2408.12637)."""
    vision.defaults = SIGLIP_VISION
    layers, hidden, width = vision.whole(*LAYERS, high=MOST_LAYERS), vision.whole(*HIDDEN), vision.whole(*WIDTH)
    side = vision.whole("patch_size")
    patches = (vision.whole("image_size", default=224) // (side or 1)) ** 2
    tower = Account(positions=patches * hidden, other=convolution(3, hidden, side), norms=layer_norm(hidden))
    joint = hidden * reader.whole("scale_factor", default=2) ** 2 * text
    return tower + block(hidden, width).times(layers) + Account(other=joint)


def glm4v(_reader: Reader, vision: Reader, _text: int) -> Account:
    """GLM-4V: frames, gated blocks without biases, a convolution that merges, a gated map (class Glm4vVisionModel)."""
    width, layers = vision.whole("hidden_size", default=1536), vision.whole("depth", default=24, high=MOST_LAYERS)
    out, inner = vision.whole("out_hidden_size", default=4096), vision.whole("intermediate_size", default=13696)
    side = vision.whole("patch_size", default=14)
    patches = (vision.whole("image_size", default=336) // (side or 1)) ** 2
    tower = _frames(vision, width, bias=True) + Account(positions=patches * width, norms=2 * width)
    each = block(width, out, gated=True, bias=False, norm=1)
    each += Account(attention=3 * width * vision.flag("attention_bias"))
    merged = convolution(width, out, vision.whole("spatial_merge_size", default=2))
    return tower + each.times(layers) + Account(other=merged + out * out + 2 * out + 3 * out * inner)


def qwen2_vl(_reader: Reader, vision: Reader, _text: int) -> Account:
    """Qwen2-VL: patches of two frames, plain blocks, four patches merged to one (arXiv 2409.12191)."""
    width, layers = vision.whole("embed_dim", default=1280), vision.whole("depth", default=32, high=MOST_LAYERS)
    ratio = vision.whole("mlp_ratio", default=4)
    out = vision.whole("hidden_size")
    tower = _frames(vision, width, bias=False)
    tower += block(width, ratio * width).times(layers)
    return tower + _merger(vision, width, out, norm=2)


def qwen2_5_vl(_reader: Reader, vision: Reader, _text: int) -> Account:
    """Qwen2.5-VL: gated blocks with biases, RMS norms (arXiv 2502.13923)."""
    width = vision.whole("hidden_size", default=1280)
    layers, inner = vision.whole("depth", default=32, high=MOST_LAYERS), vision.whole("intermediate_size", default=3420)
    tower = _frames(vision, width, bias=False)
    tower += block(width, inner, gated=True, norm=1).times(layers)
    return tower + _merger(vision, width, vision.whole("out_hidden_size", default=3584), norm=1)


def qwen3_vl(_reader: Reader, vision: Reader, text: int) -> Account:
    """Qwen3-VL and Qwen3.5: learned positions, and mergers that also feed deeper layers (arXiv 2511.21631)."""
    width = vision.whole("hidden_size", default=1152)
    layers, inner = vision.whole("depth", default=27, high=MOST_LAYERS), vision.whole("intermediate_size", default=4304)
    tower = _frames(vision, width, bias=True)
    tower += Account(positions=vision.whole("num_position_embeddings", default=2304) * width)
    tower += block(width, inner).times(layers)
    out = vision.whole("out_hidden_size", default=text)
    merged = width * vision.whole("spatial_merge_size", default=2) ** 2
    deep = len(vision.wholes("deepstack_visual_indexes"))
    return (
        tower
        + _merger(vision, width, out, norm=2)
        + Account(other=deep * (2 * merged + linear(merged, merged) + linear(merged, out)))
    )


def _frames(vision: Reader, width: int, *, bias: bool) -> Account:
    """Patches over a few frames at once."""
    frames, side = vision.whole("temporal_patch_size", default=2), vision.whole("patch_size", default=14)
    channels = vision.whole("in_channels", "in_chans", default=3)
    return Account(other=channels * frames * side * side * width + width * bias)


def _merger(vision: Reader, width: int, out: int, *, norm: int) -> Account:
    """Neighbouring patches side by side through two linear maps, after a norm."""
    merged = width * vision.whole("spatial_merge_size", default=2) ** 2
    return Account(other=norm * width + linear(merged, merged) + linear(merged, out))


def mllama(_reader: Reader, vision: Reader, text: int) -> Account:
    """Llama 3.2 Vision: local and global layers, gated positions for each tile (class MllamaVisionModel)."""
    hidden, width = vision.whole("hidden_size", default=1280), vision.whole("intermediate_size", default=5120)
    layers = vision.whole("num_hidden_layers", default=32, high=MOST_LAYERS)
    deep = vision.whole("num_global_layers", default=8, high=MOST_LAYERS)
    heads, tiles = vision.whole("attention_heads", "num_attention_heads", default=16), 4
    tiles = vision.whole("max_num_tiles", default=tiles)
    listed = vision.table.get("supported_aspect_ratios")
    ratios = 1 + (len(listed) if isinstance(listed, list | tuple) else 8)
    side = vision.whole("patch_size", default=14)
    patches = (vision.whole("image_size", default=448) // (side or 1)) ** 2 + 1
    each = Account(
        attention=attention(grouped(hidden, heads, heads, hidden // heads if heads else 0)),
        mlp=mlp(hidden, width, gated=False, bias=True),
        norms=2 * layer_norm(hidden),
    )
    positions = patches * hidden + ratios * tiles * patches * hidden + 2 * ratios * tiles * hidden
    outside = Account(
        other=hidden + convolution(3, hidden, side, bias=False) + 3,
        positions=positions,
        norms=2 * layer_norm(hidden),
    )
    kept = len(vision.wholes("intermediate_layers_indices")) or 5
    gated = each + Account(other=2)
    return outside + each.times(layers) + gated.times(deep) + Account(other=linear(hidden * (1 + kept), text))


def llama4(_reader: Reader, vision: Reader, text: int) -> Account:
    """Llama 4: a tower with biases, pixels shuffled to fewer tokens, two maps and a projection, all without."""
    hidden, width = vision.whole("hidden_size", default=768), vision.whole("intermediate_size", default=5632)
    layers, side = (
        vision.whole("num_hidden_layers", default=34, high=MOST_LAYERS),
        vision.whole("patch_size", default=14),
    )
    patches = (vision.whole("image_size", default=448) // (side or 1)) ** 2
    tower = Account(
        positions=(patches + 2) * hidden,
        other=linear(3 * side * side, hidden, bias=False),
        norms=2 * layer_norm(hidden),
    )
    tower += block(hidden, width).times(layers)
    into, out = vision.whole("projector_input_dim", default=4096), vision.whole("projector_output_dim", default=4096)
    seen = vision.whole("vision_output_dim", default=7680)
    adapter = linear(width, into, bias=False) + linear(out, out, bias=False)
    return tower + Account(other=adapter + linear(seen, text, bias=False))


def kimi_k25(_reader: Reader, vision: Reader, text: int) -> Account:
    """Kimi K2.5: MoonViT with learned positions, four patches merged, two maps (class Kimi_K25ForConditional...)."""
    hidden = vision.whole("vt_hidden_size", "hidden_size", default=1152)
    width = vision.whole("vt_intermediate_size", "intermediate_size", default=4304)
    layers = vision.whole("vt_num_hidden_layers", "num_hidden_layers", default=27, high=MOST_LAYERS)
    grid = vision.whole("init_pos_emb_height", "pos_emb_height", default=64)
    grid *= vision.whole("init_pos_emb_width", "pos_emb_width", default=64)
    tower = Account(
        positions=grid * hidden,
        other=convolution(3, hidden, vision.whole("patch_size", default=14)),
        norms=layer_norm(hidden),
    )
    tower += block(hidden, width).times(layers)
    merged = 4 * hidden
    seen = vision.whole("mm_hidden_size", default=hidden)
    return tower + Account(other=2 * seen + linear(merged, merged) + linear(merged, text))


def internvl(_reader: Reader, vision: Reader, text: int) -> Account:
    """InternVL: a ViT with scaled residuals, patches shuffled four to one, a norm and two maps.

    The tower of 6 B has norms on queries and keys, RMS norms and no biases
    there (arXiv 2312.14238).
    """
    hidden, layers = vision.whole(*HIDDEN), vision.whole(*LAYERS, high=MOST_LAYERS)
    sides = [vision.wholes(key) or (vision.whole(key, default=size),) for key, size in _INTERN]
    pixels, side = (numbers[0] for numbers in sides)
    patches = (pixels // (side or 1)) ** 2
    tower = Account(positions=(patches + 2) * hidden, other=convolution(3, hidden, side))
    each = block(hidden, vision.whole(*WIDTH)) + Account(other=2 * hidden)
    each += Account(attention=-3 * hidden * (not vision.flag("attention_bias", "qkv_bias")))
    each += Account(norms=2 * hidden * vision.flag("use_qk_norm", "qk_normalization"))
    each += Account(norms=-2 * hidden * (vision.text("norm_type") == "rms_norm"))
    merged = 4 * hidden
    return tower + each.times(layers) + Account(other=2 * merged + linear(merged, text) + linear(text, text))


def gemma4(_reader: Reader, vision: Reader, text: int) -> Account:
    """Gemma 4: a tower with the decoder's block and two tables of positions (class Gemma4VisionModel)."""
    hidden, layers = vision.whole("hidden_size"), vision.whole("num_hidden_layers", high=MOST_LAYERS)
    heads, side = vision.whole("num_attention_heads"), vision.whole("patch_size", default=16)
    size = vision.maybe("head_dim") or (hidden // heads if heads else 0)
    each = Account(
        attention=attention(grouped(hidden, heads, vision.maybe("num_key_value_heads") or heads, size)),
        mlp=mlp(hidden, vision.whole("intermediate_size")),
        norms=4 * hidden + 2 * size,
    )
    table = 2 * vision.whole("position_embedding_size", default=10240) * hidden
    joint = linear(3 * side * side, hidden, bias=False) + linear(hidden, text, bias=False)
    return each.times(layers) + Account(positions=table, other=joint)


def step3(_reader: Reader, vision: Reader, text: int) -> Account:
    """Step 3.7: a ViT with scaled residuals, two convolutions that halve the sides, one linear map."""
    hidden, layers = vision.whole("hidden_size", "width", default=1536), vision.maybe(*LAYERS, "layers") or 47
    ratio = vision.table.get("mlp_ratio")
    width = int(hidden * (ratio if isinstance(ratio, int | float) and 0 < ratio < 100 else 8960 / 1536))  # noqa: PLR2004
    side = vision.whole("patch_size", default=14)
    patches = (vision.whole("image_size", default=728) // (side or 1)) ** 2
    tower = Account(
        positions=patches * hidden,
        other=convolution(3, hidden, side, bias=False),
        norms=layer_norm(hidden),
    )
    each = block(hidden, width) + Account(other=2 * hidden)
    joint = convolution(hidden, 2 * hidden, 3) + convolution(2 * hidden, 4 * hidden, 3)
    return tower + each.times(layers) + Account(other=joint + linear(4 * hidden, text, bias=False))


def minimax_m3(reader: Reader, vision: Reader, text: int) -> Account:
    """MiniMax-M3: CLIP's blocks with rotary positions over two frames, two pairs of linear maps."""
    hidden, side = vision.whole("hidden_size"), vision.whole("patch_size", default=14)
    squeezed = vision.section("img_token_compression_config")
    frames = squeezed.whole("temporal_patch_size", default=2)
    merged = squeezed.whole("spatial_merge_size", default=2) ** 2
    width = reader.whole("projector_hidden_size", default=text)
    tower = block(hidden, vision.whole(*WIDTH)).times(vision.whole(*LAYERS, high=MOST_LAYERS))
    tower += Account(other=3 * frames * side * side * hidden, norms=layer_norm(hidden))
    joint = linear(hidden, width) + linear(width, text) + linear(merged * text, width) + linear(width, text)
    return tower + Account(other=joint)


_INTERN = (("image_size", 448), ("patch_size", 14))

TOWERS: dict[str, Callable[[Reader, Reader, int], Account]] = {
    "llava": llava,
    "llava_next": llava,
    "llava_onevision": llava,
    "idefics3": idefics3,
    "smolvlm": idefics3,
    "glm4v": glm4v,
    "glm4v_moe": glm4v,
    "internvl_chat": internvl,
    "gemma3": gemma3,
    "paligemma": paligemma,
    "mistral3": pixtral,
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "qwen3_vl_moe": qwen3_vl,
    "qwen3_5": qwen3_vl,
    "qwen3_5_moe": qwen3_vl,
    "mllama": mllama,
    "llama4": llama4,
    "kimi_k25": kimi_k25,
    "internvl": internvl,
    "gemma4": gemma4,
    "step3p7": step3,
    "minimax_m3_vl": minimax_m3,
}
"""Every vision-language type whose tower is known."""
