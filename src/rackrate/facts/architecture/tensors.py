"""Tensors as file headers list them: which part of a model each is, and how many parameters it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Stored


class Tensor(NamedTuple):
    """One tensor of a file: its name, its type as the file names it, its shape, and its bytes on disk."""

    name: str
    type: str
    shape: tuple[int, ...]
    size: int

    @property
    def values(self) -> int:
        """Values in the tensor as it is stored; a packed tensor has more parameters."""
        product = 1
        for side in self.shape:
            product *= side
        return product


class Tally(NamedTuple):
    """What all tensors of a checkpoint come to."""

    parameters: int
    experts: int
    stored: Stored


_EMBEDDING = re.compile(
    r"(?:^|\.)(?:embed_tokens|wte|embed_in|word_embeddings|tok_embeddings|token_embd|shared)\.|(?:^|\.)embeddings\.weight$"
)
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output_layer)\.|^output\.")
_VISION = re.compile(
    r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder|audio_tower|multi_modal_projector|mm_projector"
    r"|vision_embed_tokens|embed_vision|embed_audio|image_newline|v|mm)\."
)
_BEYOND = re.compile(r"(?:^|\.)(?:mtp|nextn|eagle)\.")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blk|blocks|block)\.(\d{1,6})\.")
_EXPERTS = re.compile(r"\.(?:experts\.|ffn_(?:up|down|gate|gate_up)_exps)")
# Scales, zero points, permutations and tables that belong to packed weights, and buffers of old checkpoints.
_NO_PARAMETER = re.compile(
    r"(?:qzeros|scales|g_idx|_scale_inv|weight_scale(?:_2|_inv)?|input_scale|absmax|quant_map|SCB|weight_zero_point"
    r"|weight_shape|weight_g_idx|[kv]_scale|inv_freq|rope_freqs|rope_factors_\w+|masked_bias|weight_format"
    r"|e_score_correction_bias|router_bias|exp_probs_b|position_ids|final_logits_bias|layer_scalar|slope_rate"
    r"|(?:query|key|diagonal)_decay|tid2eid)(?:\.weight|\.bias)?$|nested_|quant_state"
)
_CAUSAL_MASK = re.compile(r"attn\.bias$|attention\.bias$")
_WORD_BITS = 32
_MASK_SIDES = 4


def parameters(tensor: Tensor, *, bits: int) -> int:
    """How many parameters a tensor stands for; ``bits`` of each where they are packed into larger integers.

    GPTQ and AWQ pack 32-bit words (``qweight``), compressed-tensors too
    (``weight_packed``); bitsandbytes, MXFP4 and NVFP4 two into a byte.
    """
    name = tensor.name
    if _NO_PARAMETER.search(name) or (_CAUSAL_MASK.search(name) and len(tensor.shape) == _MASK_SIDES):
        return 0
    if tensor.type in {"I32", "U32"} and name.endswith(("qweight", "weight_packed")):
        return tensor.values * (_WORD_BITS // bits)
    if tensor.type in {"U8", "I8"} and bits == 4 and name.endswith(("weight", "weight_packed", "_blocks", "proj")):  # noqa: PLR2004
        return 2 * tensor.values
    return tensor.values


def tally(tensors: Iterable[Tensor], *, layers: int | None, tied: bool, form: str, bits: int = 4) -> Tally:
    """The parameters and bytes of a checkpoint, by part and by type.

    Layers beyond ``layers`` and heads for speculative decoding stay on disk,
    and so does a head that is stored beside the embedding it is tied to.
    """
    by_type: dict[str, int] = {}
    parts = dict.fromkeys(("embedding", "head", "layers", "vision", "beyond"), 0)
    total = experts = 0
    for tensor in tensors:
        part = part_of(tensor.name, layers=layers, tied=tied)
        parts[part] += tensor.size
        if part == "beyond":
            continue
        by_type[tensor.type] = by_type.get(tensor.type, 0) + tensor.size
        count = parameters(tensor, bits=bits)
        total += count
        experts += count if _EXPERTS.search(tensor.name) and "shared" not in tensor.name else 0
    stored = Stored(
        format=form,
        by_type=tuple(sorted(by_type.items(), key=lambda pair: (-pair[1], pair[0]))),
        embedding_bytes=parts["embedding"],
        head_bytes=parts["head"],
        layer_bytes=parts["layers"],
        vision_bytes=parts["vision"],
        beyond_bytes=parts["beyond"],
    )
    return Tally(parameters=total, experts=experts, stored=stored)


def part_of(name: str, *, layers: int | None, tied: bool) -> str:
    """The part of a model that a tensor belongs to: embedding, head, layers, vision, or beyond what is loaded."""
    if _VISION.search(name):
        return "vision"
    if _BEYOND.search(name):
        return "beyond"
    number = _LAYER.search(name)
    if number is not None:
        return "beyond" if layers is not None and int(number[1]) >= layers else "layers"
    if _HEAD.search(name):
        return "beyond" if tied else "head"
    return "embedding" if _EMBEDDING.search(name) else "layers"


def nearest_format(bits: float, formats: Mapping[str, WeightFormat], *, gguf: bool) -> str:
    """The id of the format whose bits a weight are nearest, among GGUF's or the others."""
    able = [form for form in formats.values() if form.id.startswith("gguf") == gguf]
    return min(able, key=lambda form: (abs(form.bits_per_weight - bits), form.id)).id if able else ""
