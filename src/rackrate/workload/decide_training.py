"""Deciding: the sizes of a training run that were not given."""

from __future__ import annotations

import math

from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.problems import Code
from rackrate.workload.draft import Draft
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import Checkpointing, Pictured, Task, Training

_TOKENS_PER_PRETRAIN_STEP = 2**21  # GPT-3 6.7B and 13B: arXiv 2005.14165, table 2.1
_TOKENS_PER_PARAMETER = 20  # arXiv 2203.15556
_TARGET_TOKENS = 128  # huggingface/transformers examples/pytorch/summarization, max_target_length
_FINE_TUNE_TOKENS = 10e6
_EVALUATED = 0.01  # of the tokens of a run


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
