"""Vision-language models: a decoder, a tower that sees, and the projection between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rackrate.facts.architecture.account import Account
from rackrate.facts.architecture.decoder import HEADS, HIDDEN, LAYERS, WIDTH
from rackrate.facts.architecture.encoder import CLIP_VISION, SIGLIP_VISION, block, clip_vision, siglip_vision
from rackrate.facts.architecture.parameters import attention, convolution, grouped, layer_norm, linear, mlp
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.model import Model
from rackrate.values import replace

TextModel = Callable[[Reader, str], Model]

# Sizes that a nested text model may leave out: the defaults of its class (transformers configuration_<type>.py).
_LLAMA = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 32000,
}
TEXT_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA | {"intermediate_size": 14336, "num_key_value_heads": 8},
    "qwen2": {"num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 151936},
    "gemma": {"num_hidden_layers": 28, "num_attention_heads": 16, "vocab_size": 256000, "head_dim": 256},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
}
_TEXT_TYPES = {"llava": "llama", "llava_next": "llama", "paligemma": "gemma", "gemma3": "gemma3_text"}
_TEXT_TYPES |= {
    "minimax_m3_vl": "minimax_m3_vl_text",
    "step3p7": "step3p7",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "vipllava": "llama",
}


def vision_language(reader: Reader, kind: str, text_model: TextModel) -> Model:
    """The text model with the tower's parameters added; what is not known about a tower is said in a remark."""
    inner = reader.inner("text_config", "llm_config", "language_config", "thinker_config")
    text = inner if inner is not None else reader
    text_kind = _text_kind(text, kind)
    if inner is not None:
        text.defaults = TEXT_DEFAULTS.get(text_kind, {})
        text = _with_tie(reader, text)
    found = text_model(text, text_kind)
    reader.defaulted |= text.defaulted
    account = _tower(reader, kind, found.hidden_size or 0)
    if account is None:
        return replace(found, modality="image+text", notes=_noted(found, "text tower only"))
    groups = dict(found.params_by_group)
    groups["vision"] = groups.get("vision", 0) + account.total
    return replace(
        found,
        params_total=found.params_total + account.total,
        params_active=found.params_active + account.total,
        params_by_group=tuple(groups.items()),
        modality="image+text",
    )


def _text_kind(text: Reader, kind: str) -> str:
    named = text.text("model_type")
    if named and named != kind:
        return named
    return {"qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", **_TEXT_TYPES}.get(kind, named or kind)


def _with_tie(reader: Reader, text: Reader) -> Reader:
    """The text table with the outer table's word on tied embeddings, if only that one has it."""
    if "tie_word_embeddings" in text or "tie_word_embeddings" not in reader:
        return text
    made = Reader({**text.table, "tie_word_embeddings": reader.table["tie_word_embeddings"]}, text.where, text)
    made.defaults, made.defaulted = text.defaults, text.defaulted
    return made


def _noted(found: Model, note: str) -> str:
    return f"{found.notes}; {note}" if found.notes else note


def _tower(reader: Reader, kind: str, text: int) -> Account | None:
    """The tower and what joins it to a text model of width ``text``; None where the type's tower is not known."""
    vision = reader.inner("vision_config")
    if kind not in TOWERS or vision is None:
        if vision is not None or reader.inner("audio_config", "visual") is not None:
            reader.remark(
                "vision_config",
                f"a tower of {kind!r} whose class is not known",
                "a known tower",
                "the text model alone is counted; give the folder with its safetensors for the whole",
            )
        return None
    return TOWERS[kind](reader, vision, text)


# ---------------------------------------------------------------- towers


def llava(reader: Reader, vision: Reader, text: int) -> Account:
    """LLaVA: CLIP or SigLIP, then two linear maps (arXiv 2310.03744); LLaVA-NeXT adds one row for new lines."""
    siglip = vision.text("model_type") == "siglip_vision_model"
    vision.defaults = SIGLIP_VISION if siglip else CLIP_VISION
    tower = siglip_vision(vision) if siglip else clip_vision(vision)
    bias = reader.flag("multimodal_projector_bias", default=True)
    joint = linear(vision.whole(*HIDDEN), text, bias=bias) + linear(text, text, bias=bias)
    return tower + Account(other=joint + text * (reader.text("model_type") == "llava_next"))


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
    hidden, layers, width = vision.whole(*HIDDEN), vision.whole(*LAYERS, high=4096), vision.whole(*WIDTH)
    tower = Account(other=convolution(3, hidden, vision.whole("patch_size", default=16), bias=False), norms=hidden)
    tower += block(hidden, vision.whole(*HEADS), width, gated=True, bias=False, norm=1).times(layers)
    merge = reader.whole("spatial_merge_size", default=2) ** 2
    bias = reader.flag("multimodal_projector_bias")
    joint = hidden + merge * hidden * hidden + linear(hidden, text, bias=bias) + linear(text, text, bias=bias)
    return tower + Account(other=joint)


def qwen2_vl(_reader: Reader, vision: Reader, _text: int) -> Account:
    """Qwen2-VL: patches of two frames, plain blocks, four patches merged to one (arXiv 2409.12191)."""
    width, layers = vision.whole("embed_dim", default=1280), vision.whole("depth", default=32, high=4096)
    ratio = vision.whole("mlp_ratio", default=4)
    out = vision.whole("hidden_size")
    tower = _frames(vision, width, bias=False)
    tower += block(width, vision.whole("num_heads", default=16), ratio * width).times(layers)
    return tower + _merger(vision, width, out, norm=2)


def qwen2_5_vl(_reader: Reader, vision: Reader, _text: int) -> Account:
    """Qwen2.5-VL: gated blocks with biases, RMS norms (arXiv 2502.13923)."""
    width = vision.whole("hidden_size", default=1280)
    layers, inner = vision.whole("depth", default=32, high=4096), vision.whole("intermediate_size", default=3420)
    tower = _frames(vision, width, bias=False)
    heads = vision.whole("num_heads", default=16)
    tower += block(width, heads, inner, gated=True, norm=1).times(layers)
    return tower + _merger(vision, width, vision.whole("out_hidden_size", default=3584), norm=1)


def qwen3_vl(_reader: Reader, vision: Reader, text: int) -> Account:
    """Qwen3-VL and Qwen3.5: learned positions, and mergers that also feed deeper layers (arXiv 2511.21631)."""
    width = vision.whole("hidden_size", default=1152)
    layers, inner = vision.whole("depth", default=27, high=4096), vision.whole("intermediate_size", default=4304)
    tower = _frames(vision, width, bias=True)
    tower += Account(positions=vision.whole("num_position_embeddings", default=2304) * width)
    tower += block(width, vision.whole("num_heads", default=16), inner).times(layers)
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
    layers = vision.whole("num_hidden_layers", default=32, high=4096)
    deep = vision.whole("num_global_layers", default=8, high=4096)
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
    layers, side = vision.whole("num_hidden_layers", default=34, high=4096), vision.whole("patch_size", default=14)
    patches = (vision.whole("image_size", default=448) // (side or 1)) ** 2
    tower = Account(
        positions=(patches + 2) * hidden,
        other=linear(3 * side * side, hidden, bias=False),
        norms=2 * layer_norm(hidden),
    )
    tower += block(hidden, vision.whole("num_attention_heads", default=16), width).times(layers)
    into, out = vision.whole("projector_input_dim", default=4096), vision.whole("projector_output_dim", default=4096)
    seen = vision.whole("vision_output_dim", default=7680)
    adapter = linear(width, into, bias=False) + linear(out, out, bias=False)
    return tower + Account(other=adapter + linear(seen, text, bias=False))


def kimi_k25(_reader: Reader, vision: Reader, text: int) -> Account:
    """Kimi K2.5: MoonViT with learned positions, four patches merged, two maps (class Kimi_K25ForConditional...)."""
    hidden = vision.whole("vt_hidden_size", "hidden_size", default=1152)
    width = vision.whole("vt_intermediate_size", "intermediate_size", default=4304)
    layers = vision.whole("vt_num_hidden_layers", "num_hidden_layers", default=27, high=4096)
    heads = vision.whole("vt_num_attention_heads", "num_attention_heads", default=16)
    grid = vision.whole("init_pos_emb_height", "pos_emb_height", default=64)
    grid *= vision.whole("init_pos_emb_width", "pos_emb_width", default=64)
    tower = Account(
        positions=grid * hidden,
        other=convolution(3, hidden, vision.whole("patch_size", default=14)),
        norms=layer_norm(hidden),
    )
    tower += block(hidden, heads, width).times(layers)
    merged = 4 * hidden
    seen = vision.whole("mm_hidden_size", default=hidden)
    return tower + Account(other=2 * seen + linear(merged, merged) + linear(merged, text))


def internvl(_reader: Reader, vision: Reader, text: int) -> Account:
    """InternVL: a ViT with scaled residuals, patches shuffled four to one, a norm and two maps."""
    hidden, layers = vision.whole(*HIDDEN), vision.whole(*LAYERS, high=4096)
    sides = [vision.wholes(key) or (vision.whole(key, default=size),) for key, size in _INTERN]
    pixels, side = (numbers[0] for numbers in sides)
    patches = (pixels // (side or 1)) ** 2
    tower = Account(positions=(patches + 2) * hidden, other=convolution(3, hidden, side))
    each = block(hidden, vision.whole(*HEADS), vision.whole(*WIDTH)) + Account(other=2 * hidden)
    each += Account(attention=-3 * hidden * (not vision.flag("attention_bias")))
    merged = 4 * hidden
    return tower + each.times(layers) + Account(other=2 * merged + linear(merged, text) + linear(text, text))


def gemma4(_reader: Reader, vision: Reader, text: int) -> Account:
    """Gemma 4: a tower with the decoder's block and two tables of positions (class Gemma4VisionModel)."""
    hidden, layers = vision.whole("hidden_size"), vision.whole("num_hidden_layers", high=4096)
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
    each = block(hidden, vision.maybe(*HEADS, "heads") or 16, width) + Account(other=2 * hidden)
    joint = convolution(hidden, 2 * hidden, 3) + convolution(2 * hidden, 4 * hidden, 3)
    return tower + each.times(layers) + Account(other=joint + linear(4 * hidden, text, bias=False))


def minimax_m3(reader: Reader, vision: Reader, text: int) -> Account:
    """MiniMax-M3: CLIP's blocks with rotary positions over two frames, two pairs of linear maps."""
    hidden, side = vision.whole("hidden_size"), vision.whole("patch_size", default=14)
    squeezed = vision.section("img_token_compression_config")
    frames = squeezed.whole("temporal_patch_size", default=2)
    merged = squeezed.whole("spatial_merge_size", default=2) ** 2
    width = reader.whole("projector_hidden_size", default=text)
    tower = block(hidden, vision.whole(*HEADS), vision.whole(*WIDTH)).times(vision.whole(*LAYERS, high=4096))
    tower += Account(other=3 * frames * side * side * hidden, norms=layer_norm(hidden))
    joint = linear(hidden, width) + linear(width, text) + linear(merged * text, width) + linear(width, text)
    return tower + Account(other=joint)


_INTERN = (("image_size", 448), ("patch_size", 14))

TOWERS: dict[str, Callable[[Reader, Reader, int], Account]] = {
    "llava": llava,
    "llava_next": llava,
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
