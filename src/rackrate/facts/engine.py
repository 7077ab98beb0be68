"""Engines: the software that runs a model, as data with the policies in which they differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from rackrate.evidence import Range
from rackrate.facts.model import Model
from rackrate.facts.scheduling import ONE_BATCH, Scheduling
from rackrate.values import Value, replace


class Host(StrEnum):
    """How the host feeds the card: eagerly launched kernels, or captured graphs / compiled code."""

    EAGER = "eager"
    GRAPHS = "graphs"


NOTHING = Range(0.0, 0.0, 0.0)

SAMPLER = Range(12.0, 41.0, 41.0)
"""Bytes per sampled row and vocabulary entry while a token is drawn, where an engine does not say.

FP32 logits, sorted copy, 64-bit indices, probabilities, running sums and
scatter: vllm-project/vllm#10511 logs 1.26 GiB for 256 rows of 128,256 entries
on one card and on two; fused samplers take less.
"""


class CacheType(Value, frozen=True, kw_only=True):
    """A type that an engine can keep the KV cache in.

    ``bits`` of a value (the mean of keys and values where they differ), and
    ``scale_bits`` that a ``group`` of values shares (0: a head's values of one
    token). ``block``: values that are quantised together must divide a head.
    ``residual_tokens``: the last tokens of a sequence stay in 16 bits.
    ``layer_copies``: of one layer's cache in 16 bits, while it is used.
    ``latents``: whether the latents of latent attention can be kept so.
    ``all_full``: only for models in which every layer sees all tokens.
    ``min_compute_capability``: of the cards whose kernels read it.
    """

    id: str
    bits: float
    scale_bits: float = 0.0
    group: int = 0
    block: int = 0
    residual_tokens: int = 0
    layer_copies: float = 0.0
    latents: bool = True
    all_full: bool = False
    min_compute_capability: tuple[int, int] | None = None

    def bits_at(self, head: int) -> float:
        """Bits of a value, scales included, in heads of ``head`` values."""
        return self.bits + self.scale_bits / (self.group or head or 1)


class ServingPolicy(Value, frozen=True, kw_only=True):
    """What an inference engine does with memory.

    ``memory_share``: fraction of the card's memory that the engine takes at
    start (``None``: it grows on demand). ``share_of`` says of what:
    ``"total"`` (vLLM: of all memory, overhead inside), ``"static"`` (SGLang: of
    all memory, for weights and cache alone) or ``"free"`` (TensorRT-LLM: of
    what weights and activations leave, for the cache alone). ``page_tokens``: tokens per KV
    block. ``window_saves``: sliding-window layers keep only their window.
    ``default_context``: ``"model"`` when the engine plans for the model's
    maximum unless told otherwise, else a number of tokens as text.
    ``default_sequences``: most sequences in a batch. ``batched_tokens``: tokens
    of prefill processed at once (0: a whole context). ``mla_cache_padding``: stored values per token
    and layer are padded to a multiple of this. ``full_prompt_logits``: logits
    of the whole prompt are materialised (6 bytes x vocabulary x prompt).
    ``graph_bytes``: memory of captured graphs; ``non_torch_bytes``: buffers
    outside the framework's allocator, CUDA context excluded.

    What follows is off in most engines. ``eager_prefill``: layers run
    operation by operation, so a prompt's intermediates live side by side.
    ``score_bytes`` per head and pair of prompt tokens, where prefill attention
    makes the scores. ``rotary_tables``: every layer keeps tables of angles up
    to the model's maximum (``"model"``) or twice the cache's length
    (``"cache"``), or all layers share one (``"once"``). ``cache_tokens``: the cache holds the whole ``"context"`` or
    the ``"output"`` alone. ``expands_heads``: keys and values are cached once
    per query head. ``quantises_head``: the output head is in the weights'
    format. ``unpacked_bytes`` of one weight while the largest quantised matrix
    is used. ``planned_graph``: intermediates live in one FP32 buffer whose size
    is planned for a full batch (ggml). ``prefill_seen``: whether published peaks show what prefill holds;
    where they do not, it counts on the high side alone. ``unties``: formats whose
    files hold a tied head apart; ``ties_late``: formats of which a tied head is
    a second copy until the model is loaded. ``loads_twice``: projections that are in memory twice while a model
    loads. ``stacks_experts``: one layer's experts are copied into stacked tensors while
    a model loads. ``loads_tables``: tables of rotary angles up to the model's
    maximum stay behind in every layer that is replaced. ``split_k``: partial sums
    of the experts' products that are added up. ``padded_formats``: formats
    whose experts are stored as multiples of ``padding`` (inputs, outputs) values.
    ``loads_towers``: a model's vision tower is loaded, and tried where the engine
    measures itself, whether images are asked for or not.

    ``square_mask``: a mask of a byte for each pair of context tokens is there
    throughout. ``expands_on_read``: grouped keys and values of the whole context
    are copied to all query heads of the layer that reads them.

    ``large_sequences``: sequences that an engine which measures itself tries on
    cards of 70 GiB and more (0: as on any card), and ``large_graph_bytes`` of
    the graphs that it captures for them. ``sampler_bytes`` per row and
    vocabulary entry while a token is drawn. ``tensor_bytes``: buffers outside
    the allocator that appear with tensor parallelism. ``graphs_outside``:
    captured graphs come on top of the engine's share. ``keeps_batch_buffers``:
    hidden states of a full batch and the experts' workspaces are there while
    tokens are drawn. ``layer_groups``: layers of several kinds of attention are
    padded to groups of equal size. ``cache_types``: what the cache can be kept in
    beside the plain types; ``cache_mixes``: keys and values in different ones.
    ``default_beams``: of the search of an encoder-decoder; ``shares_source``: its
    beams share one cache of what the encoder made. ``lone_window_s``, ``batched_window_s``: seconds of
    sound by which one window is behind the one before, read one by one and many at a time.

    Speculative decoding: ``draft_tokens`` that a draft model guesses unless told
    (0: the engine has none, or they are not counted). ``draft_stage``: where the
    draft is when layers are split, whole on the ``"last"`` stage or ``"split"`` like
    the model (empty: not known). ``draft_vocabulary``: by how many tokens the
    vocabularies may differ. ``draft_cache_plain``: the draft's cache stays in 16
    bits. ``draft_contexts``: the draft has buffers of its own, up to one for each sequence.
    """

    memory_share: float | None
    page_tokens: int
    window_saves: bool
    default_context: str
    default_sequences: int
    batched_tokens: int
    mla_cache_padding: int
    full_prompt_logits: bool
    continuous_batching: bool
    graph_bytes: Range
    non_torch_bytes: Range
    share_of: str = "total"
    eager_prefill: bool = False
    score_bytes: float = 0.0
    rotary_tables: str = ""
    cache_tokens: str = "context"
    cache_copies: float = 1.0
    expands_heads: bool = False
    quantises_head: bool = False
    unpacked_bytes: float = 0.0
    loads_twice: str = ""
    stacks_experts: bool = False
    loads_tables: bool = False
    split_k: int = 0
    padded_formats: frozenset[str] = frozenset()
    padding: tuple[int, int] = (1, 1)
    loads_towers: bool = False
    planned_graph: bool = False
    prefill_seen: bool = True
    unties: frozenset[str] = frozenset()
    ties_late: frozenset[str] = frozenset()
    eager_context: bool = False
    large_sequences: int = 0
    sampler_bytes: Range = SAMPLER
    large_graph_bytes: Range = NOTHING
    tensor_bytes: Range = NOTHING
    graphs_outside: bool = False
    keeps_batch_buffers: bool = False
    layer_groups: bool = False
    cache_types: tuple[CacheType, ...] = ()
    cache_mixes: bool = False
    default_beams: int = 1
    shares_source: bool = False
    square_mask: bool = False
    expands_on_read: bool = False
    draft_tokens: int = 0
    draft_stage: str = ""
    draft_vocabulary: int = 0
    draft_cache_plain: bool = False
    draft_contexts: bool = False
    lone_window_s: float = 30.0
    batched_window_s: float = 30.0
    source: str = ""


class TrainingPolicy(Value, frozen=True, kw_only=True):
    """What a training engine keeps in memory.

    ``optimizer_temporary``: the step holds one extra parameter-sized temporary
    (foreach AdamW). ``loss``: ``"full"`` logits, ``"chunked"`` or ``"fused"``.
    ``attention``: ``"flash"`` or ``"eager"``. ``adapter_bytes``: bytes of one
    adapter weight (PEFT keeps adapters in FP32). ``ties_weights``: whether tied
    embeddings stay tied. ``master_weights``: FP32 copies in mixed precision.

    What follows is off in most engines. ``expands_heads``: grouped keys and
    values are copied to all query heads before attention. ``fused_qkv``: one
    matrix makes queries, keys and values, and one adapter serves it.
    ``adapter_dropout``: inputs of adapters are dropped out, which keeps a mask
    and a copy. ``keeps_inputs``: quantised layers keep their inputs.
    ``keeps_batch``: what a training loop's own variables still hold of the
    micro-batch before, while the next goes forward. ``quantises_head``: the
    output head is in the weights' format. ``unpacked_bytes`` of one weight
    while the largest quantised matrix is used. ``zeroes_gradients``: gradients
    are set to zero after a step, not freed. ``chunked_bytes``: of the chunked
    loss, per token and vocabulary entry. ``eager_context``: the CUDA context
    loads all kernels, as before CUDA 11.7. ``reserved_over_moving``: what the
    allocator holds over activations and logits alone, where static parts are
    known to leave no holes. ``stream_pools``: gradients are reduced on a stream
    of its own, whose memory no other stream can use. ``checkpoints_on_host``:
    inputs of recomputed layers wait in the host's memory. ``upcasts``: beside a
    quantised base everything else is widened to FP32, and hidden states with it.
    ``writes_over``: gradients in the feed-forward block take the place of what
    it kept.
    ``fused_layers``: norms keep their input alone and gates are activated again
    in the backward pass. ``gradient_bytes``: of one gradient in a buffer that
    is there from the start (0: as wide as the weight, made in the backward
    pass). ``full_bytes``: of the full loss at its peak, per token and entry.
    ``fused_norms``: norms alone are such kernels. ``hub_code``: layers are
    those of transformers. ``held_logit_bytes``: of the logits, per token and
    entry, that the loop's variable for the model's output holds through the
    backward pass (0: it is gone by then).
    ``grouped_scores``: without autocast, widened hidden states meet attention in
    FP32, where grouped heads have no kernel that does not store the scores.
    ``gathers_stage``: stages of a pipeline keep their gathered weights, and
    gradients of all micro-batches grow whole before they are divided.
    ``torch_loss``: the loss is torch's cross entropy of FP32 logits, which are
    freed before the backward pass, and torch's parallel form of it where tensor
    parallelism divides the vocabulary. ``compiles_loss``: it is compiled when
    layers are. ``splits_root``: embedding and head are gathered apart.
    ``bucket_elements``: of the flat buffer in which ZeRO
    1 and 2 reduce gradients, whole from the start (0: no larger than what is
    trained). ``saves_modules``: whole modules can be trained
    beside adapters, as copies in the type of the base. ``other_losses`` and
    ``savings``: how weights that ZeRO 3 divides are saved, the usual way first:
    ``shards``, ``gathered`` one by one in the host's memory, or whole ``on_card``;
    ``saves_adapters_alone``: the frozen base is left out then.
    ``offloads``: what the engine can be told to do beside its own way, from the
    least that it costs to the most.
    """

    optimizer_temporary: bool
    loss: str
    attention: str
    adapter_bytes: int
    ties_weights: bool
    master_weights: bool
    reserved_over_allocated: Range
    expands_heads: bool = False
    fused_qkv: bool = False
    adapter_dropout: bool = False
    keeps_inputs: bool = False
    keeps_batch: bool = False
    quantises_head: bool = False
    unpacked_bytes: float = 2.0
    zeroes_gradients: bool = False
    chunked_bytes: float = 2.25
    eager_context: bool = False
    reserved_over_moving: Range | None = None
    stream_pools: bool = False
    checkpoints_on_host: bool = False
    upcasts: bool = False
    fused_layers: bool = False
    writes_over: bool = False
    gradient_bytes: float = 0.0
    full_bytes: float = 12.0
    bucket_elements: float = 0.0
    fused_norms: bool = False
    hub_code: bool = False
    saves_modules: bool = False
    other_losses: tuple[str, ...] = ()
    offloads: tuple[str, ...] = ()
    savings: tuple[str, ...] = ()
    saves_adapters_alone: bool = False
    held_logit_bytes: float = 0.0
    gathers_stage: bool = False
    grouped_scores: bool = False
    torch_loss: bool = False
    compiles_loss: bool = False
    splits_root: bool = False
    source: str = ""


class SpeedPolicy(Value, frozen=True, kw_only=True):
    """Efficiencies of an engine, each a fraction of the published peak (medians of published rows).

    ``launch_s_per_layer``: host or launch time per layer and step.
    ``decode_bandwidth``: of memory bandwidth while reading weights;
    ``cache_bandwidth``: while reading the KV cache. ``prefill_flop``: of
    the dense matrix peak; ``train_flop``: of what the card sustains in training
    (1 unless something else was measured, 0: it does not train). ``quantised_kernel``: relative
    efficiency of 4-bit kernels. ``spread``: relative half width of the 80 %
    interval for decode, prefill and training. ``source`` names the evidence.
    ``vector_kernels``: one-token products go through the engine's own kernels
    outside the matrix units, which accumulate in FP16 (llama.cpp).
    ``hopper_attention``: attention in training uses the matrix instructions that
    came with Hopper. ``stage_chunks``: chunks of layers that a pipeline stage of
    training usually has, interleaved. ``train_spread``: as ``spread``, of training.
    ``attention_flop``: what attention of prompts reaches relative to matrix
    products (0: as kernels that never store the scores). ``unpack_flop``: in
    multiples of the FP32 peak, the rate at which quantised weights are unpacked
    for products in INT8 (0: they are expanded to 16 bits first). ``sequence_s``:
    host time that a step takes for each sequence in it, ``step_s`` for the step itself. ``split_stages``: how many
    stages of a layer split work on the next piece of a prompt before the last
    one is done with the piece before (0: all of them). ``early_rocm``: kernels and
    collectives for other makers' cards are those of 2024. ``cache_per_head``:
    attention reads the cache once for each query head that shares it. ``crossed_launches``: kernels of a
    decoder's layer that also attends to an encoder, over those of a layer that does not. ``measured_on``: kinds of
    cards (compute capabilities, other makers) with published rows of inference.
    """

    host: Host
    launch_s_per_layer: float
    decode_bandwidth: float
    cache_bandwidth: float
    prefill_flop: float
    train_flop: float
    quantised_kernel: float
    spread: float
    source: str
    vector_kernels: bool = False
    hopper_attention: bool = False
    stage_chunks: int = 1
    train_spread: float = 0.3
    attention_flop: float = 0.0
    unpack_flop: float = 0.0
    sequence_s: float = 0.0
    step_s: float = 0.0
    split_stages: int = 0
    early_rocm: bool = False
    cache_per_head: bool = False
    crossed_launches: float = 1.5
    measured_on: frozenset[str] = frozenset()


class Times(Value, frozen=True, kw_only=True):
    """Times of the phases of work over those expected; ``images``: of denoising steps and all else."""

    prefill: float = 1.0
    decode: float = 1.0
    training: float = 1.0
    images: float = 1.0


EXPECTED = Times()
"""As expected."""


class Calibration(Value, frozen=True, kw_only=True):
    """What one measured speed says of an engine on one card.

    ``near``: of ``model`` in the format ``weights`` on ``gpus`` of ``accelerator``,
    as it was measured; ``elsewhere``: of other models, formats and numbers of
    that card. ``phases`` are those that were measured apart, or ``serving`` as a whole.
    """

    accelerator: str
    gpus: int
    model: str
    weights: str
    phases: frozenset[str]
    near: Times
    elsewhere: Times

    def is_near(self, accelerator: str, gpus: int, model: str, weights: str) -> bool:
        """Whether this is what was measured."""
        return (self.accelerator, self.gpus, self.model, self.weights) == (accelerator, gpus, model, weights)


class Older(Value, frozen=True, kw_only=True):
    """The policies of an engine before some version."""

    before: str
    serving: ServingPolicy | None
    training: TrainingPolicy | None
    speed: SpeedPolicy | None = None
    scheduling: Scheduling | None = None


class Engine(Value, frozen=True, kw_only=True):
    """One engine at one range of versions.

    ``tasks`` are the task ids it can run; ``parallel`` the layouts it knows
    (``tensor``, ``pipeline``, ``data``, ``zero``, ``layer_split``, and when asked
    for ``context``, ``expert``, ``sequence`` and ``interleaved`` stages);
    ``zero_stages`` are those of ZeRO that it has, ``zero_stages_in_pipelines`` those that go with pipelines;
    ``weight_formats`` the formats it loads; ``vendors`` the accelerator vendors
    it runs on; ``min_compute_capability`` for NVIDIA cards. ``older`` are the
    policies that it had before, the oldest version first. ``encoder_decoders``:
    modalities of the models with an encoder and a decoder that it runs. ``calibration`` is no
    fact of the engine but what was measured with it on one's own machine.
    """

    id: str
    title: str
    versions: str
    seen_at: str
    source: str
    tasks: frozenset[str]
    parallel: frozenset[str]
    weight_formats: frozenset[str]
    vendors: frozenset[str]
    min_compute_capability: tuple[int, int] | None
    speed: SpeedPolicy
    serving: ServingPolicy | None = None
    training: TrainingPolicy | None = None
    scheduling: Scheduling = ONE_BATCH
    notes: str = ""
    older: tuple[Older, ...] = ()
    zero_stages: tuple[int, ...] = ()
    zero_stages_in_pipelines: tuple[int, ...] = ()
    encoder_decoders: frozenset[str] = frozenset()
    calibration: Calibration | None = None

    def zero_stages_at(self, pipeline: int) -> tuple[int, ...]:
        """The stages of ZeRO that go with ``pipeline`` stages of layers."""
        return self.zero_stages_in_pipelines if pipeline > 1 else self.zero_stages

    def runs(self, model: Model) -> bool:
        """Whether it has code for both sides of ``model``, if it has two, and nothing else where it has no other."""
        return not model.is_encoder_decoder or model.modality in self.encoder_decoders

    def at(self, version: str) -> Engine:
        """The engine as it was at ``version``, e.g. ``"4.38.2"``; its id then says so."""
        asked = version_parts(version)
        for then in self.older:
            if asked < version_parts(then.before):
                found = replace(
                    self,
                    serving=then.serving,
                    training=then.training,
                    speed=then.speed or self.speed,
                    scheduling=then.scheduling or self.scheduling,
                    older=(),
                )
                return replace(found, id=f"{self.id}=={version}")
        return replace(self, id=f"{self.id}=={version}", older=())


def version_parts(version: str) -> tuple[int, ...]:
    """A version as numbers, to compare; what follows them (``.dev0``, ``rc1``) does not count."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def versioned(look_up: Callable[[str], Engine]) -> Callable[[str], Engine]:
    """``look_up`` that also knows ids with a version, such as ``transformers==4.38.2``."""

    def found(name: str) -> Engine:
        engine_id, _, version = name.partition("==")
        return look_up(engine_id).at(version) if version else look_up(engine_id)

    return found
