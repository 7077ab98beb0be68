"""Weights: the bytes that a model's parameters take, by tensor group and format."""

from __future__ import annotations

import math

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model, Stored
from rackrate.memory.stages import Stage
from rackrate.values import Value, replace


class ParameterGroups(Value, frozen=True, kw_only=True):
    """Numbers of parameters by tensor group; together they are the model's total.

    ``other`` is what the closed formulas do not name: biases, linear-attention
    and state-space mixers, position embeddings. It is stored like the matrices.
    """

    embedding: int
    head: int
    norms: int
    attention: int
    mlp: int
    experts: int
    other: int

    @property
    def layer_matrices(self) -> int:
        """Everything that a weight format quantises: all but embedding, head and norms."""
        return self.attention + self.mlp + self.experts + self.other


def is_encoder(model: Model) -> bool:
    """Whether the model only encodes: every token sees every other, nothing is generated."""
    return model.only_encodes


def parameter_groups(model: Model) -> ParameterGroups:
    """The parameters of ``model`` by tensor group.

    Embedding and head are vocabulary x hidden each (one when tied, no head in
    an encoder); the rest follows the formulas below and ``other`` closes the
    sum on the exact total. Norms give way first where they have fewer weights
    than two per hidden unit and layer; where the formulas overshoot by more
    (layers that differ, as in hybrids), all layer weights count as ``other``.
    """
    if model.params_by_group:
        return _counted_groups(model)
    hidden, layers = model.hidden_size or 0, model.layers or 0
    embedding = (model.vocab_size or 0) * hidden
    head = 0 if model.tie_embeddings or is_encoder(model) else embedding
    norms = (2 * layers + 1) * hidden
    attention = attention_params(model) * attention_layers(model)
    dense, experts = mlp_params(model), expert_params(model)
    other = model.params_total - embedding - head - norms - attention - dense - experts
    if -norms <= other < 0:
        norms, other = norms + other, 0
    if other < 0:
        attention = dense = experts = 0
        other = max(0, model.params_total - embedding - head - norms)
    return ParameterGroups(
        embedding=embedding, head=head, norms=norms, attention=attention, mlp=dense, experts=experts, other=other
    )


def _counted_groups(model: Model) -> ParameterGroups:
    """The groups of a model that was counted from its own configuration; what has no group here is ``other``."""
    known = dict(model.params_by_group)
    named = {name: known.pop(name, 0) for name in ("embedding", "head", "norms", "attention", "mlp", "experts")}
    beside = model.params_total - sum(named.values())
    return ParameterGroups(**named, other=max(0, beside))


def shared_experts_out(groups: ParameterGroups, cards: int) -> ParameterGroups:
    """The parameters of one card where ``cards`` share the experts of each layer (GShard, arXiv 2006.16668)."""
    return groups if cards <= 1 else replace(groups, experts=-(-groups.experts // cards))


def attention_layers(model: Model) -> int:
    """Layers with attention (not linear attention, not a state space); all of them where not told apart.

    A decoder beside an encoder attends twice in each of its layers: to itself and to the encoder.
    """
    if model.decoder_layers:
        return (model.encoder_layers or 0) + 2 * model.decoder_layers
    if model.layers_full is None and model.layers_windowed is None:
        return model.layers or 0
    return (model.layers_full or 0) + (model.layers_windowed or 0)


def query_width(model: Model) -> int:
    """Width of all query heads together: heads x head size (hidden size where either is not known)."""
    if model.attention_heads and model.head_dim:
        return model.attention_heads * model.head_dim
    return model.hidden_size or 0


def key_width(model: Model) -> int:
    """Width of all key heads together (as many as query heads where not told otherwise)."""
    if model.kv_heads and model.head_dim and not model.is_mla:
        return model.kv_heads * model.head_dim
    return query_width(model)


def attention_params(model: Model) -> int:
    """Projection weights of one attention layer.

    Grouped-query attention: hidden x (2 x query + 2 x key width)
    (arXiv 2305.13245; multi-head and multi-query attention are its ends).
    Multi-head latent attention: low-rank query, one latent for keys and values
    with a shared rotary part, and the up-projections (DeepSeek-V2, arXiv
    2405.04434, section 2.1).
    """
    hidden, query = model.hidden_size or 0, query_width(model)
    if model.mla_kv_lora_rank is None or not model.mla_kv_lora_rank:
        return hidden * (2 * query + 2 * key_width(model))
    heads, rope = model.attention_heads or 0, model.mla_qk_rope_head_dim or 0
    value = model.mla_v_head_dim or 0
    rank = model.mla_q_lora_rank
    down_q = rank * (hidden + query) if rank else hidden * query
    latent = model.mla_kv_lora_rank * (hidden + query - heads * rope + heads * value) + hidden * rope
    return down_q + latent + heads * value * hidden


def qkv_params(model: Model) -> int:
    """Weights that make queries, keys and values in one layer, grouped-query attention."""
    return (model.hidden_size or 0) * (query_width(model) + 2 * key_width(model))


def is_gated(model: Model) -> bool:
    """Whether the feed-forward block has a gate (SwiGLU and its kin), as decoders do unless told otherwise."""
    return model.mlp_gated is not False


def matrices_per_mlp(model: Model) -> int:
    """Weight matrices of one feed-forward block: gate, up and down, or two without a gate."""
    return 3 if is_gated(model) else 2


def dense_layers(model: Model) -> int:
    """Layers whose feed-forward block is not a mixture of experts."""
    if model.decoder_layers:
        return (model.encoder_layers or 0) + model.decoder_layers
    return (model.dense_layers_first or 0) if model.is_moe else (model.layers or 0)


def mlp_params(model: Model) -> int:
    """Weights of the dense feed-forward blocks: matrices x hidden x intermediate each."""
    return dense_layers(model) * matrices_per_mlp(model) * (model.hidden_size or 0) * (model.intermediate_size or 0)


def expert_params(model: Model) -> int:
    """Weights of routed and shared experts and routers of a mixture of experts."""
    if not model.is_moe:
        return 0
    hidden, width = model.hidden_size or 0, model.moe_intermediate_size or 0
    each = matrices_per_mlp(model) * hidden * width
    count = (model.experts or 0) + (model.shared_experts or 0)
    return ((model.layers or 0) - dense_layers(model)) * (count * each + hidden * (model.experts or 0))


def head_on(model: Model, groups: ParameterGroups, stage: Stage, *, ties: bool) -> int:
    """Parameters of the output head that ``stage`` holds beside the embedding.

    A tied head is the embedding itself, unless the engine keeps two copies
    (``ties`` false) or the head sits on another card than the embedding.
    """
    if not stage.last or is_encoder(model):
        return 0
    return 0 if model.tie_embeddings and ties and stage.first else max(groups.head, groups.embedding)


def params_on(model: Model, groups: ParameterGroups, stage: Stage, *, ties: bool) -> float:
    """Parameters that ``stage`` holds in all (before tensor parallelism divides them)."""
    layers = (groups.layer_matrices + groups.norms) * stage.fraction
    return layers + (groups.embedding if stage.first else 0) + head_on(model, groups, stage, ties=ties)


def weight_bytes(model: Model, groups: ParameterGroups, stage: Stage, form: WeightFormat, *, ties: bool) -> float:
    """Bytes of the weights of ``stage`` in ``form``, for all its tensor-parallel cards together.

    Matrices take the format's bits, scales included; norms stay in 16 bits, and
    so do embedding and head where the format says so (a tied matrix if either
    does). In a format for experts alone a mixture's other matrices stay in 16
    bits (config.json of openai/gpt-oss-20b, modules_to_not_convert). Where the
    files of the model are at hand and are in ``form``, their headers say how many
    bytes: no formula.
    """
    if model.stored is not None and model.stored.format == form.id:
        return _stored_bytes(model, model.stored, groups, stage, ties=ties)
    if form.experts_alone and groups.experts:
        beside = replace(groups, experts=0)
        wide_form = replace(form, bits_per_weight=16.0, experts_alone=False)
        quantised = groups.experts * form.bytes_per_weight * stage.fraction
        return quantised + weight_bytes(model, beside, stage, wide_form, ties=ties)
    narrow = form.bytes_per_weight
    wide = max(2.0, narrow)
    layers = (groups.layer_matrices * narrow + groups.norms * wide) * stage.fraction
    tied = bool(model.tie_embeddings) and ties
    embedding = groups.embedding * form.embedding_bytes(tied=tied) if stage.first else 0.0
    head = head_on(model, groups, stage, ties=ties) * form.head_bytes
    return layers + embedding + head


def padded_experts(model: Model, groups: ParameterGroups, tensor: int, padding: tuple[int, int]) -> ParameterGroups:
    """The groups with experts as large as kernels store them: inputs and outputs up to multiples of ``padding``.

    Gate and up are one matrix of hidden x 2 inner, down one of inner x hidden;
    ``tensor`` cards share the inner width, which is a multiple of 64 on each.
    Inputs to 128 and outputs to 256 values on Hopper (triton-lang/triton
    triton_kernels tensor_details/layout_details/hopper_value.py); Marlin has
    hidden sizes of 256 for inputs too, FlashInfer on Blackwell 256 throughout
    (vllm-project/vllm layers/fused_moe/oracle/mxfp4.py), up to 4 % more.
    """
    hidden, inputs, outputs = model.hidden_size or 0, *padding
    inner = _up_to((model.moe_intermediate_size or 0) / tensor, 64)
    gated = matrices_per_mlp(model) - 1
    stored = _up_to(hidden, inputs) * _up_to(gated * inner, outputs) + _up_to(inner, inputs) * _up_to(hidden, outputs)
    plain = (gated + 1) * hidden * (model.moe_intermediate_size or 0) / tensor
    return replace(groups, experts=round(groups.experts * stored / plain)) if plain else groups


def _up_to(size: float, multiple: int) -> int:
    return -int(-size // multiple) * multiple


def stacked_bytes(model: Model, form: WeightFormat) -> float:
    """What a layer's experts take once more while gate and up are stacked: empty tensors, and the stacked weights.

    The empty ones are as large as the experts', scales included, and are there
    until each is replaced (casper-hansen/AutoAWQ awq/utils/fused_utils.py
    fuse_linears, awq/models/mixtral.py): 0.89 GiB of Mixtral.
    """
    params = 2 * (model.hidden_size or 0) * (model.moe_intermediate_size or 0) * (model.experts or 0)
    return params * (form.bytes_per_weight + math.floor(form.bits_per_weight) / 8)


def _stored_bytes(model: Model, stored: Stored, groups: ParameterGroups, stage: Stage, *, ties: bool) -> float:
    """Bytes of the files that ``stage`` holds: its layers, the embedding in front, the head at the end.

    A head that is not in the files is the embedding; it is a second copy on a
    card without the embedding, or in an engine that does not tie.
    """
    matrices = parameter_groups(model).layer_matrices
    experts_here = groups.layer_matrices / matrices if matrices else 1.0
    inside = (stored.layer_bytes * experts_here + stored.vision_bytes) * stage.fraction
    front = stored.embedding_bytes if stage.first else 0
    shared = not stored.head_bytes and ((ties and stage.first) or is_encoder(model))
    behind = (stored.head_bytes or stored.embedding_bytes) if stage.last and not shared else 0
    return inside + front + behind
