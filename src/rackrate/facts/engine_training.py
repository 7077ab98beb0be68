"""What a training engine keeps in memory, as data."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.values import Value


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
