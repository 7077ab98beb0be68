"""An engine's TOML document as an ``Engine``; keys that nothing reads are refused."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.facts.engine import Engine, Older
from rackrate.facts.engine_section import Section
from rackrate.facts.engine_serving import NOTHING, SAMPLER, CacheType, ServingPolicy
from rackrate.facts.engine_speed import Host, SpeedPolicy
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.scheduling import ONE_BATCH, Order, Scheduling
from rackrate.units import GIB

_TOP = {"id", "title", "versions", "seen_at", "source", "tasks", "parallel", "weight_formats", "vendors"}
_TOP_OPTIONAL = {
    "min_compute_capability", "notes", "serving", "training", "speed", "scheduling", "before", "zero_stages",
    "zero_stages_in_pipelines", "encoder_decoders",
}  # fmt: skip
_BEFORE = {"version", "serving", "training", "speed", "scheduling"}
_SERVING = {
    "memory_share", "share_of", "page_tokens", "window_saves", "default_context", "default_sequences",
    "batched_tokens", "mla_cache_padding", "full_prompt_logits", "continuous_batching", "graph_gib",
    "non_torch_gib", "source", "eager_prefill", "score_bytes", "rotary_tables", "cache_tokens", "cache_copies",
    "expands_heads", "quantises_head", "unpacked_bytes", "loads_twice", "planned_graph", "prefill_seen",
    "unties", "ties_late", "eager_context", "large_sequences", "sampler_bytes", "tensor_gib", "graphs_outside",
    "keeps_batch_buffers", "layer_groups", "large_graph_gib", "cache_types", "cache_mixes",
    "stacks_experts", "loads_tables", "padded_formats", "padding", "loads_towers", "split_k",
    "default_beams", "shares_source", "square_mask", "expands_on_read", "draft_tokens", "draft_stage",
    "draft_vocabulary", "draft_cache_plain", "draft_contexts", "lone_window_s", "batched_window_s",
}  # fmt: skip
_CACHE_TYPE = {
    "id", "bits", "scale_bits", "group", "block", "residual_tokens", "layer_copies", "latents", "all_full",
    "min_compute_capability",
}  # fmt: skip
_TRAINING = {
    "optimizer_temporary", "loss", "attention", "adapter_bytes", "ties_weights", "master_weights",
    "reserved_over_allocated", "source", "expands_heads", "fused_qkv", "adapter_dropout", "keeps_inputs",
    "keeps_batch", "quantises_head", "unpacked_bytes", "zeroes_gradients", "chunked_bytes", "eager_context",
    "reserved_over_moving", "stream_pools", "checkpoints_on_host", "upcasts",
    "fused_layers", "writes_over", "gradient_bytes", "full_bytes", "bucket_elements", "fused_norms", "hub_code",
    "saves_modules", "savings", "saves_adapters_alone", "other_losses", "offloads",
    "held_logit_bytes", "gathers_stage", "grouped_scores", "torch_loss", "compiles_loss", "splits_root",
}  # fmt: skip
_SPEED = {
    "host", "launch_us_per_layer", "decode_bandwidth", "cache_bandwidth", "prefill_flop", "train_flop",
    "quantised_kernel", "spread", "source", "vector_kernels", "hopper_attention", "stage_chunks", "train_spread",
    "attention_flop", "unpack_flop", "sequence_us", "split_stages", "measured_on",
    "early_rocm", "step_us", "cache_per_head", "crossed_launches",
}  # fmt: skip
_SCHEDULING = {
    "order", "step_tokens", "large_step_tokens", "cuts_prompts", "reserved_output", "kept_free", "keeps_prefixes",
    "source",
}  # fmt: skip


def engine(document: Mapping[str, object], where: str = "engine") -> Engine:
    """The engine that a document describes.

    Raises:
        ValueError: a key is unknown, missing or of the wrong type; the message names it.
    """
    top = Section(document, where, _TOP | _TOP_OPTIONAL)
    return Engine(
        id=top.text("id"),
        title=top.text("title"),
        versions=top.text("versions"),
        seen_at=top.text("seen_at"),
        source=top.text("source"),
        tasks=top.names("tasks"),
        parallel=top.names("parallel"),
        weight_formats=top.names("weight_formats"),
        vendors=top.names("vendors"),
        min_compute_capability=_capability(top),
        speed=_speed(top.section("speed", _SPEED)),
        serving=_serving(top.section("serving", _SERVING)) if top.has("serving") else None,
        training=_training(top.section("training", _TRAINING)) if top.has("training") else None,
        scheduling=_scheduling(top.section("scheduling", _SCHEDULING)) if top.has("scheduling") else ONE_BATCH,
        notes=top.text("notes") if top.has("notes") else "",
        older=_older(top),
        zero_stages=_zero_stages(top),
        zero_stages_in_pipelines=_zero_stages(top, in_pipelines=True),
        encoder_decoders=top.names_or_none("encoder_decoders"),
    )


def _zero_stages(top: Section, *, in_pipelines: bool = False) -> tuple[int, ...]:
    """The stages of ZeRO: as said, all three of an engine with ``zero``, or none; in pipelines the same unless said."""
    for key in ("zero_stages_in_pipelines",) * in_pipelines + ("zero_stages",):
        if top.has(key):
            return tuple(sorted(top.wholes(key)))
    return (1, 2, 3) if "zero" in top.names("parallel") else ()


def _older(top: Section) -> tuple[Older, ...]:
    """The policies before each version named, the oldest first: what a section does not say is as in the next newer."""
    if not top.has("before"):
        return ()
    now = {name: top.table(name) for name in ("serving", "training", "speed", "scheduling") if top.has(name)}
    found = []
    for number, document in enumerate(top.items("before")):
        then = Section(document if isinstance(document, dict) else {}, f"{top.where}.before[{number}]", _BEFORE)
        now = {name: {**part, **(then.table(name) if then.has(name) else {})} for name, part in now.items()}
        parts = Section(now, then.where, _BEFORE)
        found.append(
            Older(
                before=then.text("version"),
                serving=_serving(parts.section("serving", _SERVING)) if "serving" in now else None,
                training=_training(parts.section("training", _TRAINING)) if "training" in now else None,
                speed=_speed(parts.section("speed", _SPEED)),
                scheduling=_scheduling(parts.section("scheduling", _SCHEDULING)) if "scheduling" in now else None,
            )
        )
    return tuple(reversed(found))


def _capability(top: Section) -> tuple[int, int] | None:
    if not top.has("min_compute_capability"):
        return None
    found = top.items("min_compute_capability")
    if len(found) != 2 or any(type(part) is not int for part in found):  # noqa: PLR2004 - major and minor
        raise ValueError(f"min_compute_capability: {found} is not two whole numbers such as [8, 9]")
    return int(str(found[0])), int(str(found[1]))


def _pair(part: Section, key: str, default: tuple[int, int]) -> tuple[int, int]:
    found = part.items(key) if part.has(key) else default
    if len(found) != 2 or any(type(each) is not int or each < 1 for each in found):  # noqa: PLR2004 - inputs, outputs
        raise ValueError(f"{part.where}.{key}: {found} is not two whole numbers such as [128, 256]")
    return int(str(found[0])), int(str(found[1]))


def _serving(part: Section) -> ServingPolicy:
    return ServingPolicy(
        memory_share=part.number("memory_share") if part.has("memory_share") else None,
        share_of=part.text("share_of"),
        page_tokens=part.whole("page_tokens"),
        window_saves=part.flag("window_saves"),
        default_context=part.text("default_context"),
        default_sequences=part.whole("default_sequences"),
        batched_tokens=part.whole("batched_tokens"),
        mla_cache_padding=part.whole("mla_cache_padding"),
        full_prompt_logits=part.flag("full_prompt_logits"),
        continuous_batching=part.flag("continuous_batching"),
        graph_bytes=part.span("graph_gib").scaled(GIB),
        non_torch_bytes=part.span("non_torch_gib").scaled(GIB),
        eager_prefill=part.flag_or("eager_prefill"),
        score_bytes=part.number_or("score_bytes", 0.0),
        rotary_tables=part.text_or("rotary_tables", ""),
        cache_tokens=part.text_or("cache_tokens", "context"),
        cache_copies=part.number_or("cache_copies", 1.0),
        expands_heads=part.flag_or("expands_heads"),
        quantises_head=part.flag_or("quantises_head"),
        unpacked_bytes=part.number_or("unpacked_bytes", 0.0),
        loads_twice=part.text_or("loads_twice", ""),
        stacks_experts=part.flag_or("stacks_experts"),
        loads_tables=part.flag_or("loads_tables"),
        split_k=int(part.number_or("split_k", 0)),
        padded_formats=part.names_or_none("padded_formats"),
        padding=_pair(part, "padding", (1, 1)),
        loads_towers=part.flag_or("loads_towers"),
        planned_graph=part.flag_or("planned_graph"),
        prefill_seen=part.flag_or("prefill_seen", default=True),
        unties=part.names_or_none("unties"),
        ties_late=part.names_or_none("ties_late"),
        eager_context=part.flag_or("eager_context"),
        large_sequences=int(part.number_or("large_sequences", 0)),
        large_graph_bytes=part.span_or("large_graph_gib", NOTHING).scaled(GIB),
        sampler_bytes=part.span_or("sampler_bytes", SAMPLER),
        tensor_bytes=part.span_or("tensor_gib", NOTHING).scaled(GIB),
        graphs_outside=part.flag_or("graphs_outside"),
        keeps_batch_buffers=part.flag_or("keeps_batch_buffers"),
        square_mask=part.flag_or("square_mask"),
        expands_on_read=part.flag_or("expands_on_read"),
        layer_groups=part.flag_or("layer_groups"),
        cache_types=_cache_types(part),
        cache_mixes=part.flag_or("cache_mixes"),
        default_beams=int(part.number_or("default_beams", 1)),
        shares_source=part.flag_or("shares_source"),
        draft_tokens=int(part.number_or("draft_tokens", 0)),
        draft_stage=part.text_or("draft_stage", ""),
        draft_vocabulary=int(part.number_or("draft_vocabulary", 0)),
        draft_cache_plain=part.flag_or("draft_cache_plain"),
        draft_contexts=part.flag_or("draft_contexts"),
        lone_window_s=part.number_or("lone_window_s", 30.0),
        batched_window_s=part.number_or("batched_window_s", 30.0),
        source=part.text("source"),
    )


def _cache_types(part: Section) -> tuple[CacheType, ...]:
    """The types of a cache, each a table of its own."""
    return tuple(_cache_type(table) for table in part.sections("cache_types", _CACHE_TYPE))


def _cache_type(part: Section) -> CacheType:
    return CacheType(
        id=part.text("id"),
        bits=part.number("bits"),
        scale_bits=part.number_or("scale_bits", 0.0),
        group=int(part.number_or("group", 0)),
        block=int(part.number_or("block", 0)),
        residual_tokens=int(part.number_or("residual_tokens", 0)),
        layer_copies=part.number_or("layer_copies", 0.0),
        latents=part.flag_or("latents", default=True),
        all_full=part.flag_or("all_full"),
        min_compute_capability=_capability(part),
    )


def _training(part: Section) -> TrainingPolicy:
    return TrainingPolicy(
        optimizer_temporary=part.flag("optimizer_temporary"),
        loss=part.text("loss"),
        attention=part.text("attention"),
        adapter_bytes=part.whole("adapter_bytes"),
        ties_weights=part.flag("ties_weights"),
        master_weights=part.flag("master_weights"),
        reserved_over_allocated=part.span("reserved_over_allocated"),
        expands_heads=part.flag_or("expands_heads"),
        fused_qkv=part.flag_or("fused_qkv"),
        adapter_dropout=part.flag_or("adapter_dropout"),
        keeps_inputs=part.flag_or("keeps_inputs"),
        keeps_batch=part.flag_or("keeps_batch"),
        quantises_head=part.flag_or("quantises_head"),
        unpacked_bytes=part.number_or("unpacked_bytes", 2.0),
        zeroes_gradients=part.flag_or("zeroes_gradients"),
        chunked_bytes=part.number_or("chunked_bytes", 2.25),
        eager_context=part.flag_or("eager_context"),
        reserved_over_moving=part.span("reserved_over_moving") if part.has("reserved_over_moving") else None,
        stream_pools=part.flag_or("stream_pools"),
        checkpoints_on_host=part.flag_or("checkpoints_on_host"),
        upcasts=part.flag_or("upcasts"),
        fused_layers=part.flag_or("fused_layers"),
        writes_over=part.flag_or("writes_over"),
        gradient_bytes=part.number_or("gradient_bytes", 0.0),
        full_bytes=part.number_or("full_bytes", 12.0),
        bucket_elements=part.number_or("bucket_elements", 0.0),
        fused_norms=part.flag_or("fused_norms"),
        hub_code=part.flag_or("hub_code"),
        saves_modules=part.flag_or("saves_modules"),
        other_losses=part.texts("other_losses"),
        offloads=part.texts("offloads"),
        savings=part.texts("savings"),
        saves_adapters_alone=part.flag_or("saves_adapters_alone"),
        held_logit_bytes=part.number_or("held_logit_bytes", 0.0),
        gathers_stage=part.flag_or("gathers_stage"),
        torch_loss=part.flag_or("torch_loss"),
        compiles_loss=part.flag_or("compiles_loss"),
        splits_root=part.flag_or("splits_root"),
        grouped_scores=part.flag_or("grouped_scores"),
        source=part.text("source"),
    )


def _speed(part: Section) -> SpeedPolicy:
    return SpeedPolicy(
        host=Host(part.text("host")),
        launch_s_per_layer=part.number("launch_us_per_layer") * 1e-6,
        decode_bandwidth=part.number("decode_bandwidth"),
        cache_bandwidth=part.number("cache_bandwidth"),
        prefill_flop=part.number("prefill_flop"),
        train_flop=part.number("train_flop"),
        quantised_kernel=part.number("quantised_kernel"),
        spread=part.number("spread"),
        vector_kernels=part.flag_or("vector_kernels"),
        hopper_attention=part.flag_or("hopper_attention"),
        stage_chunks=part.whole("stage_chunks") if part.has("stage_chunks") else 1,
        train_spread=part.number_or("train_spread", 0.3),
        attention_flop=part.number_or("attention_flop", 0.0),
        unpack_flop=part.number_or("unpack_flop", 0.0),
        measured_on=part.names("measured_on") if part.has("measured_on") else frozenset(),
        split_stages=part.whole("split_stages") if part.has("split_stages") else 0,
        step_s=part.number_or("step_us", 0.0) * 1e-6,
        cache_per_head=part.flag_or("cache_per_head"),
        early_rocm=part.flag_or("early_rocm"),
        crossed_launches=part.number_or("crossed_launches", 1.5),
        sequence_s=part.number_or("sequence_us", 0.0) * 1e-6,
        source=part.text("source"),
    )


def _scheduling(part: Section) -> Scheduling:
    name = part.text("order")
    if name not in set(Order):
        raise ValueError(f"{part.where}.order: {name!r} is not one of {', '.join(Order)}")
    return Scheduling(
        order=Order(name),
        step_tokens=part.whole("step_tokens"),
        large_step_tokens=part.whole("large_step_tokens") if part.has("large_step_tokens") else 0,
        cuts_prompts=part.flag("cuts_prompts"),
        reserved_output=part.number("reserved_output"),
        kept_free=part.number_or("kept_free", 0.0),
        keeps_prefixes=part.flag_or("keeps_prefixes"),
        source=part.text("source"),
    )
