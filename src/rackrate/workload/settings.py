"""Settings: a decided workload written back as values of keys, every default made explicit."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.workload.layout import Parallel
from rackrate.workload.workload import Budget, Images, Limits, Pictured, Serving, Training, Use, Workload

Setting = str | int | float | bool | list[str] | list[int]


def settings(workload: Workload) -> Mapping[str, Setting]:
    """The values, by key path, that describe ``workload`` in full; parsing them gives it back without assumptions."""
    found: dict[str, Setting | None] = {
        "model": workload.model.id,
        "task": workload.task.value,
        "engine": workload.engine_id,
        "precision": workload.precision.value,
        "quantization": workload.weights.id,
        "currency": workload.display_currency,
        "measured": workload.measured.text if workload.measured else None,
    }
    if workload.training is not None:
        found |= _training(workload.training, adapters=workload.task.trains_adapters)
    if workload.serving is not None:
        found |= _serving(workload.serving)
    if workload.images is not None:
        found |= _images(workload.images)
    if workload.parallel is not None:
        found |= _parallel(workload.parallel, trains=workload.task.trains)
    found |= _use(workload.use, online=workload.is_service) | _limits(workload.limits)
    return {path: value for path, value in found.items() if value is not None and value != []}


def _pictured(training: Training, pictured: Pictured, *, adapters: bool) -> dict[str, Setting | None]:
    return {
        "images.width": pictured.width,
        "images.height": pictured.height,
        "training.cached": pictured.cached or "none",
        "training.micro_batch": training.micro_batch,
        "training.global_batch": training.global_batch,
        "training.rows": training.tokens / training.sequence_tokens,
        "training.epochs": 1.0,
        "training.optimizer": training.optimizer,
        "training.checkpointing": training.checkpointing.value,
        "training.lora_rank": training.lora_rank if adapters else None,
        "training.lora_targets": list(training.lora_targets),
    }


def _training(training: Training, *, adapters: bool) -> dict[str, Setting | None]:
    if training.pictured is not None:
        return _pictured(training, training.pictured, adapters=adapters)
    return {
        "training.sequence_tokens": training.sequence_tokens,
        "training.micro_batch": training.micro_batch,
        "training.global_batch": training.global_batch,
        "training.tokens": training.tokens,
        "training.optimizer": training.optimizer,
        "training.checkpointing": training.checkpointing.value,
        "training.pure_16bit": training.pure_16bit,
        "training.packed": training.packed,
        "training.lora_rank": training.lora_rank if adapters else None,
        "training.lora_targets": list(training.lora_targets),
        "training.loss": training.loss or None,
        "training.attention": training.attention or None,
        "training.compiled": training.compiled or None,
        "training.step_in_backward": training.step_in_backward or None,
        "training.offload": training.offload or None,
        "training.dora": training.dora or None,
        "training.checkpoint_every": training.checkpoint_every,
        "training.evaluate_every": training.evaluate_every,
        "training.eval_tokens": training.eval_tokens or None,
        "training.target_tokens": training.target_tokens or None,
        "training.modules_to_save": list(training.modules_to_save),
        "training.saving": training.saving or None,
    }


def _serving(serving: Serving) -> dict[str, Setting | None]:
    return {
        "serving.mode": "online" if serving.online else "offline",
        "serving.prompt_tokens": None if serving.audio_seconds else serving.prompt_tokens - serving.image_tokens,
        "serving.images_per_request": serving.seen.count if serving.seen else None,
        "serving.image_width": serving.seen.width if serving.seen else None,
        "serving.image_height": serving.seen.height if serving.seen else None,
        "serving.shared_prefix_tokens": serving.shared_prefix_tokens or None,
        "serving.output_tokens": serving.output_tokens,
        "serving.context_tokens": serving.cached_tokens if serving.audio_seconds else serving.context_tokens,
        "serving.beams": serving.beams if serving.encoded else None,
        "serving.audio_seconds": serving.audio_seconds,
        "serving.concurrency": serving.concurrency,
        "serving.requests_per_s": serving.requests_per_s,
        "serving.requests": serving.requests,
        "serving.first_token_ms": _ms(serving.max_first_token_s),
        "serving.output_token_ms": _ms(serving.max_s_per_output_token),
        "serving.hosted": serving.hosted or None,
        "serving.cache_precision": serving.cache.id if serving.cache is not None else None,
        "serving.value_cache_precision": serving.value_cache.id if serving.value_cache is not None else None,
        "serving.draft_model": serving.draft.model.id if serving.draft else None,
        "serving.draft_quantization": serving.draft.weights.id if serving.draft else None,
        "serving.draft_tokens": serving.draft.tokens if serving.draft else None,
        "serving.acceptance_rate": serving.draft.acceptance_rate if serving.draft else None,
    }


def _images(images: Images) -> dict[str, Setting | None]:
    return {
        "images.count": images.count,
        "images.steps": images.steps,
        "images.frames": images.frames if images.frames > 1 else None,
        "images.width": images.width,
        "images.height": images.height,
        "images.at_once": images.at_once,
        "images.pipeline_offload": images.pipeline_offload,
        "images.slicing": images.slicing or None,
        "images.tiling": images.tiling or None,
    }


def _parallel(parallel: Parallel, *, trains: bool) -> dict[str, Setting | None]:
    return {
        **({} if parallel.free else _division(parallel, trains=trains)),
        "parallel.nodes": parallel.nodes if parallel.nodes > 1 or parallel.free else None,
        "parallel.network": parallel.network.text if parallel.network is not None else None,
    }


def _division(parallel: Parallel, *, trains: bool) -> dict[str, Setting | None]:
    return {
        "parallel.tensor": parallel.tensor,
        "parallel.pipeline": parallel.pipeline,
        "parallel.data": parallel.data or None,
        "parallel.context": parallel.context if trains else None,
        "parallel.expert": parallel.expert,
        "parallel.sequence": parallel.sequence if trains else None,
        "parallel.virtual_stages": parallel.virtual_stages if trains else None,
        "parallel.zero_stage": parallel.zero_stage,
        "parallel.tensor_split": ",".join(f"{share:.17g}" for share in parallel.tensor_split) or None,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _use(use: Use, *, online: bool) -> dict[str, Setting | None]:
    return {
        "use.hours_per_day": use.hours_per_day if online else None,
        "use.horizon_days": use.horizon_days if online else None,
        "use.starts": None if online else use.starts,
        "use.disk": f"{use.disk_bytes!r} B",
        "use.data_in": f"{use.data_in_bytes!r} B",
        "use.data_out": f"{use.data_out_bytes!r} B",
        "use.keep_disk_days": use.keep_disk_days,
    }


def _limits(limits: Limits) -> dict[str, Setting | None]:
    return {
        "limits.deadline": limits.deadline_hours,
        "limits.budget": _budget(limits.budget),
        "limits.gpus": list(limits.gpus),
        "limits.gpu_counts": list(limits.gpu_counts),
        "limits.max_gpus": limits.max_gpus,
        "limits.regions": list(limits.regions),
        "limits.providers": list(limits.providers),
        "limits.exclude_providers": list(limits.exclude_providers),
        "limits.markets": list(limits.markets),
        "limits.interruptible": limits.interruptible,
        "limits.require": list(limits.require),
        "limits.vendors": list(limits.vendors),
    }


def _budget(budget: Budget | None) -> str | None:
    return None if budget is None else f"{budget.money.amount} {budget.money.currency}/{budget.period}"
