"""Deciding: every size that was not given gets the value a practitioner would take, and is listed."""

from __future__ import annotations

import math

from rackrate.facts.accelerator import Precision
from rackrate.facts.denoiser import Denoiser
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.problems import Code
from rackrate.units import GB
from rackrate.values import replace
from rackrate.workload.caches import cache_types, cached_as, why_not
from rackrate.workload.draft import Draft
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import (
    NOT_HOSTED,
    WINDOW_S,
    Checkpointing,
    Images,
    Pictured,
    Seen,
    Serving,
    Task,
    Training,
    Use,
    windows_of,
)

_TOKENS_PER_PRETRAIN_STEP = 2**21  # GPT-3 6.7B and 13B: arXiv 2005.14165, table 2.1
_TOKENS_PER_PARAMETER = 20  # arXiv 2203.15556
_TARGET_TOKENS = 128  # huggingface/transformers examples/pytorch/summarization, max_target_length
_FINE_TUNE_TOKENS = 10e6
_EVALUATED = 0.01  # of the tokens of a run
_PROMPT_TOKENS, _OUTPUT_TOKENS = 1024, 128  # vllm-project/vllm vllm/benchmarks/datasets.py, RandomDataset
_WINDOW_TOKENS = 448  # openai/whisper whisper/model.py ModelDimensions, n_text_ctx
_FIRST_TOKEN_S, _S_PER_OUTPUT_TOKEN = 0.45, 0.04  # mlcommons/inference_policies, Llama 2 70B interactive
_MEDIAN = 50
_CHECKPOINT_BYTES_PER_PARAM = 14  # 16-bit weights, FP32 master weights and two FP32 moments


def decide_training(draft: Draft, task: Task, chosen: Chosen) -> Training:
    """The sizes of a training run, with the defaults of the key table."""
    if chosen.pipeline is not None:
        return _decide_pictured(draft, task, chosen.pipeline)
    pretrain = task is Task.PRETRAIN
    sequence = _sequence_tokens(draft, task, chosen.model)
    micro = draft.constant("training.micro_batch", int)
    usual = max(1, _TOKENS_PER_PRETRAIN_STEP // sequence) if pretrain else 16
    why = "pretrain_global_batch" if pretrain else "usual_global_batch"
    rank, targets = _adapters(draft) if task.trains_adapters else (0, ())
    tokens = _run_tokens(draft, task, chosen.model, sequence)
    reads = chosen.model.encoder_positions or 0
    kept = chosen.engine.training is not None and not chosen.engine.training.master_weights
    return Training(
        sequence_tokens=sequence,
        micro_batch=micro,
        global_batch=draft.choose("training.global_batch", math.ceil(usual / micro) * micro, why),
        tokens=tokens,
        optimizer=draft.constant("training.optimizer", str),
        checkpointing=_checkpointing(draft, pretrain=pretrain),
        pure_16bit=draft.choose(
            "training.pure_16bit", kept, "engine_keeps_16bit" if kept else "standard_mixed_precision"
        ),
        packed=draft.choose("training.packed", pretrain, "pretrain_packs" if pretrain else "one_row_a_sequence"),
        lora_rank=rank,
        lora_targets=targets,
        loss=draft.text("training.loss") or "",
        attention=draft.text("training.attention") or "",
        compiled=draft.said("training.compiled") is True,
        step_in_backward=draft.said("training.step_in_backward") is True,
        dora=draft.said("training.dora") is True,
        target_tokens=_target_tokens(draft, chosen.model) if chosen.model.is_encoder_decoder and not reads else 0,
        source_positions=reads,
        modules_to_save=_modules_to_save(draft, chosen),
        saving=_saving(draft, chosen),
        offload=(draft.text("training.offload") or "").removeprefix("none"),
        checkpoint_every=draft.constant("training.checkpoint_every", int),
        evaluate_every=draft.constant("training.evaluate_every", int),
        eval_tokens=_eval_tokens(draft, tokens),
    )


_IMAGE_ROWS, _IMAGES_A_STEP = 1000.0, 4
_TEXTS_CACHED = frozenset({"flux", "sd3", "sd3-normed"})


def _decide_pictured(draft: Draft, task: Task, pipeline: Pipeline) -> Training:
    """The sizes of a run of a diffusion model: each image is a row, and a sequence of latent tokens."""
    kind = pipeline.denoiser.kind
    usual = "texts" if kind in _TEXTS_CACHED else "none"
    pictured = Pictured(
        pipeline=pipeline,
        width=draft.choose("images.width", pipeline.denoiser.width, "trained_size"),
        height=draft.choose("images.height", pipeline.denoiser.height, "trained_size"),
        cached=draft.choose("training.cached", usual, "usual_script").removeprefix("none"),
    )
    micro, tokens = draft.constant("training.micro_batch", int), int(pictured.latents)
    rows = draft.number("training.rows")
    if rows is None:
        rows = draft.choose("training.rows", _IMAGE_ROWS, "size_not_given")
    rank = draft.constant("training.lora_rank", int) if task.trains_adapters else 0
    targets: tuple[str, ...] = ()
    if task.trains_adapters:
        targets = draft.texts("training.lora_targets")
        if not targets:
            targets = draft.choose("training.lora_targets", ("q", "k", "v", "o"), "attention_matrices")
    return Training(
        sequence_tokens=tokens,
        micro_batch=micro,
        global_batch=draft.choose(
            "training.global_batch", math.ceil(_IMAGES_A_STEP / micro) * micro, "usual_image_batch"
        ),
        tokens=rows * draft.constant("training.epochs", float) * tokens,
        optimizer=draft.constant("training.optimizer", str),
        checkpointing=_checkpointing(draft, pretrain=False),
        pure_16bit=False,
        packed=True,
        lora_rank=rank,
        lora_targets=("q", "k", "v", "o", "up", "down") if "all" in targets else targets,
        pictured=pictured,
    )


def _eval_tokens(draft: Draft, tokens: float) -> float:
    """Tokens of one evaluation; none where none is made."""
    if not draft.number("training.evaluate_every"):
        return 0.0
    return draft.choose("training.eval_tokens", tokens * _EVALUATED, "usual_evaluation")


def _target_tokens(draft: Draft, model: Model) -> int:
    """Tokens that an encoder-decoder learns to write for each input."""
    return draft.choose(
        "training.target_tokens", min(_TARGET_TOKENS, model.max_context or _TARGET_TOKENS), "usual_target"
    )


def _sequence_tokens(draft: Draft, task: Task, model: Model) -> int:
    usual, why = (4096, "pretrain_sequence") if task is Task.PRETRAIN else (2048, "usual_sequence")
    usual = min(usual, model.max_context or usual)
    mean_row = math.ceil(draft.number("training.mean_tokens") or 1)
    if mean_row > usual:
        usual, why = mean_row, "mean_row"
    return draft.choose("training.sequence_tokens", usual, why)


def _run_tokens(draft: Draft, task: Task, model: Model, sequence_tokens: int) -> float:
    """Tokens of the whole run: as given, rows x epochs x mean tokens, or a stated guess."""
    rows = draft.number("training.rows")
    if rows is not None and model.encoder_positions is not None:  # a window of sound, whatever is said in it
        return rows * draft.constant("training.epochs", float) * sequence_tokens
    if rows is not None:
        mean = draft.choose("training.mean_tokens", float(min(512, sequence_tokens)), "usual_row")
        return rows * draft.constant("training.epochs", float) * mean
    if task is Task.PRETRAIN:
        return draft.choose("training.tokens", float(_TOKENS_PER_PARAMETER * model.params_total), "chinchilla")
    return draft.choose("training.tokens", _FINE_TUNE_TOKENS, "size_not_given")


def _checkpointing(draft: Draft, *, pretrain: bool) -> Checkpointing:
    default, why = ("selective", "pretrain_speed") if pretrain else ("full", "least_memory")
    return Checkpointing(draft.choose("training.checkpointing", default, why))


def _adapters(draft: Draft) -> tuple[int, tuple[str, ...]]:
    rank = draft.constant("training.lora_rank", int)
    targets = draft.texts("training.lora_targets") or (draft.constant("training.lora_targets", str),)
    return rank, ("all",) if "all" in targets else targets


def _modules_to_save(draft: Draft, chosen: Chosen) -> tuple[str, ...]:
    """Modules trained whole beside adapters; an engine that trains none leaves a finding."""
    said = draft.texts("training.modules_to_save")
    policy = chosen.engine.training
    if said and (policy is None or not policy.saves_modules):
        draft.problem(
            "training.modules_to_save",
            Code.CONFLICT,
            f"{', '.join(said)} beside adapters in {chosen.engine.id}",
            "an engine that trains whole modules beside adapters: peft-trl, llama-factory, axolotl, unsloth, deepspeed",
            "choose one of them, or leave it out",
        )
    return tuple(sorted(said))


def _saving(draft: Draft, chosen: Chosen) -> str:
    """How divided weights are saved; a way that the engine does not have leaves a finding."""
    said, policy = draft.text("training.saving") or "", chosen.engine.training
    able = policy.savings if policy is not None else ()
    if said and said not in able:
        draft.problem(
            "training.saving",
            Code.CONFLICT,
            f"{said} with {chosen.engine.id}",
            f"a way in which it saves divided weights: {', '.join(able) or 'none, for it divides none'}",
            "choose one of them, or leave it out",
        )
    return said


# ---------------------------------------------------------------- inference


def decide_serving(draft: Draft, chosen: Chosen, *, online: bool) -> Serving:
    """The sizes of an inference job, with the defaults of the key table."""
    seen, sounds = _seen(draft, chosen), chosen.model.encoder_positions is not None
    if sounds:
        prompt, output, context = _window_tokens(draft, chosen)
    else:
        prompt, output, context = _request_tokens(draft, chosen.model, seen.tokens if seen is not None else 0)
    first_ms, token_ms = draft.number("serving.first_token_ms"), draft.number("serving.output_token_ms")
    first_s, token_s = (None if ms is None else ms / 1000 for ms in (first_ms, token_ms))
    rate = draft.number("serving.requests_per_s")
    if rate is None:
        concurrency = _usual_concurrency(draft, chosen.engine, online=online)
    else:
        windows = windows_of(draft.number("serving.audio_seconds") or 0.0, WINDOW_S) if sounds else 1
        times = windows * (first_s or _FIRST_TOKEN_S), token_s or _S_PER_OUTPUT_TOKEN
        flying = requests_in_flight(rate, *times, output * windows)
        concurrency = draft.choose("serving.concurrency", flying, "little_law")
    serving = Serving(
        online=online,
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=context,
        concurrency=concurrency,
        requests_per_s=rate,
        requests=draft.number("serving.requests"),
        max_first_token_s=first_s,
        max_s_per_output_token=token_s,
        hosted=_hosted(draft),
        seen=seen,
        percentile=int(draft.text("serving.percentile") or _MEDIAN),
        length_spread=draft.number("serving.length_spread") or 0.0,
        encoded=chosen.model.is_encoder_decoder,
        beams=_beams(draft, chosen),
        audio_seconds=draft.choose("serving.audio_seconds", float(WINDOW_S), "one_window") if sounds else None,
        window_step_s=_window_step_s(chosen.engine, concurrency),
    )
    return _cached(draft, chosen, _prefixed(draft, chosen, serving))


def _beams(draft: Draft, chosen: Chosen) -> int:
    """Beams of an encoder-decoder: as many as said, else the engine's own number."""
    if not chosen.model.is_encoder_decoder:
        return 1
    usual = chosen.engine.serving.default_beams if chosen.engine.serving is not None else 1
    return draft.choose("serving.beams", usual, "engine_beams")


def _window_step_s(engine: Engine, concurrency: int) -> float:
    """Seconds of sound by which a window is behind the one before."""
    policy = engine.serving
    if policy is None:
        return WINDOW_S
    return policy.lone_window_s if concurrency == 1 else policy.batched_window_s


def _window_tokens(draft: Draft, chosen: Chosen) -> tuple[int, int, int]:
    """Positions of the encoder, output and planned context of one window of sound.

    The encoder reads the same number of positions whatever the sound; the
    context that is asked for is the decoder's alone. Engines that plan for the
    model's maximum take it, and so do windows that follow each other one by one,
    whose decoder is given the text before (SYSTRAN/faster-whisper
    faster_whisper/transcribe.py, get_prompt: up to half the context); windows in
    a batch stand for themselves.
    """
    model, policy = chosen.model, chosen.engine.serving
    most, positions = model.max_context or _WINDOW_TOKENS, model.encoder_positions or 0
    longest = draft.number("serving.context_tokens") or most
    spoken = math.ceil(_OUTPUT_TOKENS * min(1.0, (draft.number("serving.audio_seconds") or WINDOW_S) / WINDOW_S))
    output = draft.choose("serving.output_tokens", max(1, min(spoken, int(longest))), "spoken_window")
    lone = (draft.number("serving.concurrency") or 1) == 1 or (policy is not None and policy.default_context == "model")
    usual, why = (max(most, output), "longest_transcript") if lone else (output, "prompt_and_output")
    planned = draft.choose("serving.context_tokens", usual, why)
    return positions, output, positions + planned


def _seen(draft: Draft, chosen: Chosen) -> Seen | None:
    """The images of a request; None without any."""
    count = draft.number("serving.images_per_request")
    if not count or chosen.sight is None:
        return None
    return Seen(
        sight=chosen.sight,
        count=int(count),
        width=draft.constant("serving.image_width", int),
        height=draft.constant("serving.image_height", int),
    )


def _hosted(draft: Draft) -> str:
    """The hosted model to compare with, as it is called; empty for the model itself."""
    named = (draft.text("serving.hosted") or "").strip()
    return NOT_HOSTED if named.casefold() == NOT_HOSTED else named


def requests_in_flight(
    requests_per_s: float, first_token_s: float, s_per_output_token: float, output_tokens: int
) -> int:
    """Requests in flight under a steady load, at least one.

    N = rate x (time to first token + output tokens x time per output token)

    Source: Little 1961, "A proof for the queuing formula L = lambda W",
    doi 10.1287/opre.9.3.383. Valid for the mean of a stable queue; bursts go higher.
    """
    return max(1, math.ceil(requests_per_s * (first_token_s + output_tokens * s_per_output_token)))


def _request_tokens(draft: Draft, model: Model, images: int) -> tuple[int, int, int]:
    """Prompt with its images, output and planned context of one request; what is not given fits the context."""
    context, prompt = draft.number("serving.context_tokens"), draft.number("serving.prompt_tokens")
    room = max(1, int(context or model.max_context or _PROMPT_TOKENS + _OUTPUT_TOKENS + images) - images)
    left = room - int(prompt) if prompt is not None else max(1, room // 4)
    output = draft.choose("serving.output_tokens", max(1, min(_OUTPUT_TOKENS, left)), "usual_request")
    filled = max(1, room - output)
    if context is None:
        filled, why = min(_PROMPT_TOKENS, filled), "usual_request"
    else:
        why = "fills_context"
    length = draft.choose("serving.prompt_tokens", filled, why) + images
    return length, output, draft.choose("serving.context_tokens", length + output, "prompt_and_output")


def _usual_concurrency(draft: Draft, engine: Engine, *, online: bool) -> int:
    if online:
        return draft.choose("serving.concurrency", 1, "one_user")
    most = engine.serving.default_sequences if engine.serving is not None else 1
    return draft.choose("serving.concurrency", max(1, min(32, most)), "offline_batch")


def _prefixed(draft: Draft, chosen: Chosen, serving: Serving) -> Serving:
    """``serving`` with a prefix that all requests share; where it cannot be kept a finding is left."""
    shared = int(draft.number("serving.shared_prefix_tokens") or 0)
    if not shared:
        return serving
    if not chosen.engine.scheduling.keeps_prefixes or serving.encoded or chosen.model.only_encodes:
        draft.problem(
            "serving.shared_prefix_tokens",
            Code.CONFLICT,
            f"a shared prefix of {chosen.model.id} in {chosen.engine.id}",
            "a decoder in an engine that finds prefixes in its cache: vllm, sglang, tensorrt-llm",
            "choose one of them, or leave it out",
        )
    elif shared >= serving.prompt_tokens:
        draft.problem(
            "serving.shared_prefix_tokens",
            Code.CONFLICT,
            f"{shared} shared tokens in prompts of {serving.prompt_tokens}",
            "a prefix shorter than the prompt",
            f"raise serving.prompt_tokens (--prompt-tokens) above {shared}",
        )
    else:
        return replace(serving, shared_prefix_tokens=shared)
    return serving


def _cached(draft: Draft, chosen: Chosen, serving: Serving) -> Serving:
    """``serving`` with the cache in the types asked for; one that the engine does not have leaves a finding."""
    plain = "fp32" if chosen.precision is Precision.FP32 else "fp16" if chosen.precision is Precision.FP16 else "bf16"
    able = cache_types(chosen.engine, chosen.model)
    keys = draft.choose("serving.cache_precision", plain, "same_as_precision")
    values = draft.text("serving.value_cache_precision") or keys
    mixes = chosen.engine.serving is not None and chosen.engine.serving.cache_mixes
    for path, name in (("serving.cache_precision", keys), ("serving.value_cache_precision", values)):
        if path in draft and name not in able:
            _refuse_cache(draft, path, name, chosen)
    if values != keys and not mixes:
        draft.problem(
            "serving.value_cache_precision",
            Code.CONFLICT,
            f"keys in {keys} and values in {values} with {chosen.engine.id}",
            "one type for both",
            "leave serving.value_cache_precision out, or choose engine llama.cpp",
        )
    if keys not in able or values not in able:
        return serving
    return cached_as(serving, chosen.model, able[keys], able[values] if values != keys else None)


def _refuse_cache(draft: Draft, path: str, name: str, chosen: Chosen) -> None:
    """Say what the engine has instead; or that it has the type, and why not for this model."""
    engine, model = chosen.engine, chosen.model
    offered = engine.serving.cache_types if engine.serving is not None else ()
    why = next((why_not(kind, model) for kind in offered if kind.id == name), "")
    draft.problem(
        path,
        Code.CONFLICT,
        f"a cache of {name} in {engine.id}" + (f" for {model.id}: {why}" if why else ""),
        f"one of {', '.join(cache_types(engine, model))}",
        "choose one of them, or another engine: docs/facts-engines.md lists the types of each",
    )


# ---------------------------------------------------------------- images


def decide_images(draft: Draft, pipeline: Pipeline) -> Images:
    """The sizes of image generation, with the defaults of the key table."""
    return Images(
        pipeline=pipeline,
        width=draft.choose("images.width", pipeline.denoiser.width, "trained_size"),
        height=draft.choose("images.height", pipeline.denoiser.height, "trained_size"),
        at_once=draft.constant("images.at_once", int),
        pipeline_offload=draft.constant("images.pipeline_offload", str),
        slicing=draft.said("images.slicing") is True,
        tiling=draft.said("images.tiling") is True,
        count=_count(draft),
        steps=draft.choose("images.steps", pipeline.denoiser.steps, "usual_steps"),
        frames=_frames(draft, pipeline.denoiser),
    )


def _frames(draft: Draft, shape: Denoiser) -> int:
    """Frames of a video; one of an image, of which nothing is then assumed."""
    return draft.choose("images.frames", shape.frames, "usual_frames") if shape.makes_video else 1


def _count(draft: Draft) -> float:
    given = draft.number("images.count")
    return float(draft.constant("images.count", int)) if given is None else given


# ---------------------------------------------------------------- use


def decide_use(draft: Draft, task: Task, chosen: Chosen, *, online: bool) -> Use:
    """When the machine runs and what is kept and moved, with the defaults of the key table."""
    model, usual = chosen.model, Use()
    results, why = _result_bytes(model, task)
    return Use(
        hours_per_day=draft.constant("use.hours_per_day", float) if online else usual.hours_per_day,
        horizon_days=draft.constant("use.horizon_days", float) if online else usual.horizon_days,
        starts=usual.starts if online else draft.constant("use.starts", int),
        disk_bytes=_bytes(draft, "use.disk", default_disk_bytes(model, chosen.weights, task), "from_weights"),
        data_in_bytes=_bytes(draft, "use.data_in", 0, "no_data_given"),
        data_out_bytes=_bytes(draft, "use.data_out", results, why),
        keep_disk_days=draft.constant("use.keep_disk_days", float),
    )


def _bytes(draft: Draft, path: str, default: float, why: str) -> float:
    """Bytes as given, or the default in whole GB, as disks and traffic are sold."""
    given = draft.number(path)
    if given is not None:
        return given
    gigabytes = math.ceil(default / GB)
    draft.assume(path, f"{gigabytes} GB", why)
    return float(gigabytes * GB)


_QUANTISED_ON_LOAD = frozenset({"nf4", "nf4-dq", "int8"})
"""Formats that bitsandbytes makes while a 16-bit checkpoint loads."""


def download_bytes(model: Model, weights: WeightFormat, task: Task) -> float:
    """Bytes of the checkpoint as it is downloaded.

    16-bit parts (embedding, head) x 2 + the rest x bytes per weight. Where
    bitsandbytes quantises, 16 bits are downloaded and quantised while loading
    (huggingface.co/docs/transformers, bitsandbytes). Norms and scales that a
    format counts apart are left out: below 1 %. Where the files are at hand,
    their headers say.
    """
    quantised_on_load = task is Task.QLORA or weights.id in _QUANTISED_ON_LOAD
    if model.stored is not None and (quantised_on_load or model.stored.format == weights.id):
        return float(model.stored.loaded_bytes + model.stored.beyond_bytes)
    if quantised_on_load:
        return 2.0 * model.params_total
    table = (model.vocab_size or 0) * (model.hidden_size or 0)
    tied = bool(model.tie_embeddings)
    if weights.embedding_bits is None:
        kept = table * weights.embeddings_16bit + table * (weights.head_16bit and not tied)
        wide = max(2.0, weights.bytes_per_weight)
        return wide * kept + weights.bytes_per_weight * (model.params_total - kept)
    ends = table * (weights.embedding_bytes(tied=tied) + (0 if tied else weights.head_bytes))
    return ends + weights.bytes_per_weight * (model.params_total - table * (1 if tied else 2))


def default_disk_bytes(model: Model, weights: WeightFormat, task: Task) -> float:
    """Disk to plan for when none is asked for.

    50 GB (system image, CUDA and Python packages, data) + 2 x download (as
    published, and once more converted or cached) + for runs that train every
    parameter one checkpoint of 14 bytes a parameter: 2 (weights) + 4 (master
    weights) + 8 (two FP32 moments), as Megatron-LM and ZeRO keep them (Rajbhandari
    et al. 2020, arXiv 1910.02054, section 3.1). A rule of thumb: runs that keep
    several checkpoints need more.
    """
    checkpoint = _CHECKPOINT_BYTES_PER_PARAM * model.params_total if task.trains and not task.trains_adapters else 0
    return 50 * GB + 2 * download_bytes(model, weights, task) + checkpoint


def _result_bytes(model: Model, task: Task) -> tuple[float, str]:
    if task is Task.DIFFUSION:
        return 0.0, "images_not_counted"
    if task.trains_adapters:
        return 1.0 * GB, "results_uploaded"
    return (2.0 * model.params_total, "results_uploaded") if task.trains else (0.0, "text_is_small")
