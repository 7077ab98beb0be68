"""What an inference engine does with memory, as data."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.values import Value

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
