"""Deciding: the sizes of an inference job that were not given."""

from __future__ import annotations

import math

from rackrate.facts.accelerator import Precision
from rackrate.facts.engine import Engine
from rackrate.facts.model import Model
from rackrate.problems import Code
from rackrate.values import replace
from rackrate.workload.caches import cache_types, cached_as, why_not
from rackrate.workload.draft import Draft
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import NOT_HOSTED, WINDOW_S, Seen, Serving, windows_of

_PROMPT_TOKENS, _OUTPUT_TOKENS = 1024, 128  # vllm-project/vllm vllm/benchmarks/datasets.py, RandomDataset
_WINDOW_TOKENS = 448  # openai/whisper whisper/model.py ModelDimensions, n_text_ctx
_FIRST_TOKEN_S, _S_PER_OUTPUT_TOKEN = 0.45, 0.04  # mlcommons/inference_policies, Llama 2 70B interactive
_MEDIAN = 50


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
