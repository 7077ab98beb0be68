"""A training step, or prefill and decode, of a language model of the transformers library."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes
from transformers import (
    AttentionInterface,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
)
from transformers.masking_utils import AttentionMaskInterface

from rackrate.memory.estimate_types import Phase
from rackrate.memory.simulation.adapters import add_adapters
from rackrate.memory.simulation.kernels import ATTENTION, attention_of_transformers, no_mask
from rackrate.memory.simulation.ledger import DEVICE
from rackrate.memory.simulation.recorder import Program, Recorder, Step
from rackrate.memory.simulation.records import Job, Kind

_LEFT_OUT = ("quantization_config", "auto_map", "torch_dtype", "dtype", "model_type", "transformers_version")
"""Keys of a config.json that say how a checkpoint was stored, not what the model is."""


def program_of(job: Job) -> Program:
    """The program that runs ``job``."""

    def build(recorder: Recorder) -> Step:
        model = model_of(job)
        recorder.adopt(model)
        head = model.get_output_embeddings()
        recorder.heads.update(name for name, part in model.named_modules() if part is head and head is not None)
        return _training(model, job, recorder) if job.trains else _inference(model, job, recorder)

    return build


def model_of(job: Job) -> Any:
    """The model, made unseen by the ledger: a checkpoint is loaded tensor by tensor, straight onto the card."""
    AttentionInterface.register(ATTENTION, attention_of_transformers)
    AttentionMaskInterface.register(ATTENTION, no_mask)
    values = dict(job.config)
    kind = str(values.get("model_type", ""))
    config = AutoConfig.for_model(kind, **{key: value for key, value in values.items() if key not in _LEFT_OUT})
    if job.source_tokens and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0  # stands in generation_config.json of newer checkpoints
    classes = _classes(config, job)
    attention = _attention(classes, config) if job.attention == "flash" else job.attention
    with _disable_current_modes(), torch.device(DEVICE):
        model = classes.from_config(config, dtype=getattr(torch, job.dtype), attn_implementation=attention)
        if job.adapters is not None and not add_adapters(model, job.adapters):
            raise ValueError(f"{kind} has no linear layer named {', '.join(job.adapters.targets)}")
    return model


def _classes(config: Any, job: Job) -> Any:
    """The classes that transformers has for this kind of model."""
    if not job.source_tokens:
        return AutoModelForCausalLM
    return AutoModelForSpeechSeq2Seq if hasattr(config, "num_mel_bins") else AutoModelForSeq2SeqLM


def _attention(classes: Any, config: Any) -> str:
    """Flash attention under the name by which this model takes it: from the registry, or in torch's own function."""
    kind = classes._model_mapping[type(config)]
    return ATTENTION if getattr(kind, "_supports_attention_backend", False) else "sdpa"


def _training(model: Any, job: Job, recorder: Recorder) -> Step:
    """One optimizer step as the transformers Trainer makes it: forward, backward, step, gradients dropped."""
    if job.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if job.adapters is not None:
            model.enable_input_require_grads()
    model.train()
    _mark_loss(model, recorder)
    optimizer = _optimizer([weight for weight in model.parameters() if weight.requires_grad], job.optimizer)
    ids = torch.zeros(job.batch, job.tokens, dtype=torch.long, device=DEVICE)
    inputs = _read(model, job) if job.source_tokens else {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    narrow = getattr(torch, job.autocast) if job.autocast else None

    def step() -> None:
        for _ in range(min(job.accumulation, 2)):  # the second has gradients from the start, as every later one
            with torch.autocast("cuda", dtype=narrow or torch.bfloat16, enabled=narrow is not None):
                loss = model(**inputs, labels=ids, use_cache=False).loss
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _read(model: Any, job: Job) -> dict[str, torch.Tensor]:
    """What an encoder reads: a spectrogram, or tokens without padding."""
    if hasattr(model.config, "num_mel_bins"):
        frames = (job.batch, model.config.num_mel_bins, 2 * job.source_tokens)
        return {"input_features": torch.zeros(frames, dtype=model.dtype, device=DEVICE)}
    ids = torch.zeros(job.batch, job.source_tokens, dtype=torch.long, device=DEVICE)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _mark_loss(model: Any, recorder: Recorder) -> None:
    """The loss function is a phase of its own."""
    compute = model.loss_function

    def marked(*args: Any, **named: Any) -> Any:
        with recorder.during(Phase.LOSS):
            return compute(*args, **named)

    model.loss_function = marked


def _optimizer(weights: list[nn.Parameter], name: str) -> torch.optim.Optimizer:
    """The optimizer of ``name``, such as ``adamw-fused``."""
    base, _, form = name.rpartition("-") if name.endswith(("-foreach", "-fused", "-loop")) else (name, "", "foreach")
    if base == "adafactor":
        return torch.optim.Adafactor(weights, foreach=form == "foreach")
    forms: dict[str, Any] = {"foreach": form == "foreach", "fused": form == "fused"}
    if base in {"sgd", "sgd-momentum"}:
        return torch.optim.SGD(weights, momentum=0.9 if base == "sgd-momentum" else 0.0, **forms)
    return (torch.optim.AdamW if base == "adamw" else torch.optim.Adam)(weights, **forms)


def _inference(model: Any, job: Job, recorder: Recorder) -> Step:
    """A prompt, then tokens one at a time over a growing cache, as ``generate`` runs them."""
    model.eval()
    ids = torch.zeros(job.batch, job.tokens, dtype=torch.long, device=DEVICE)
    mask = torch.ones(job.batch, job.tokens + job.output_tokens, dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def step() -> None:
        with recorder.during(Phase.PREFILL):
            out = model(input_ids=ids, attention_mask=mask[:, : job.tokens], use_cache=True, logits_to_keep=1)
        with recorder.during(Phase.DECODE):
            for number in range(min(job.output_tokens, 2)):
                cache = _cache(out)
                _name_cache(cache, recorder)
                del out
                length = job.tokens + number + 1
                out = model(input_ids=ids[:, :1], attention_mask=mask[:, :length], use_cache=True, **cache)
            _name_cache(_cache(out), recorder)

    return step


def _cache(out: Any) -> dict[str, Any]:
    """The cache of an output under the name that it has there."""
    return {name: out[name] for name in ("cache", "past_key_values") if out.get(name) is not None}


def _name_cache(cache: dict[str, Any], recorder: Recorder) -> None:
    for held in cache.values():
        for layer in getattr(held, "layers", ()):
            for tensor in (getattr(layer, "keys", None), getattr(layer, "values", None)):
                if isinstance(tensor, torch.Tensor):
                    recorder.ledger.name(tensor, Kind.CACHE)
