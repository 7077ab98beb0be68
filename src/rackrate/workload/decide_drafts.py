"""Deciding: the draft model of speculative decoding."""

from __future__ import annotations

from rackrate.facts.book import FactBook
from rackrate.facts.model import Model
from rackrate.problems import Code
from rackrate.values import replace
from rackrate.workload.draft import Draft
from rackrate.workload.keys_of_serving import OF_DRAFTS
from rackrate.workload.layouts import divides_tensors
from rackrate.workload.named import named_format, named_model
from rackrate.workload.resolve import Chosen
from rackrate.workload.workload import DraftModel, Serving

NO_DRAFT = "none"
"""What to call the draft model for none."""

_MODEL, _FORMAT, _TOKENS, _ACCEPTED = OF_DRAFTS


def drafted(draft: Draft, chosen: Chosen, serving: Serving, book: FactBook) -> Serving:
    """``serving`` with the draft model asked for; one that cannot be used leaves a finding."""
    named = draft.text(_MODEL)
    if named is None or named.casefold() == NO_DRAFT:
        _refuse_alone(draft)
        return serving
    model, weights = named_model(draft, book, _MODEL), named_format(draft, book, _FORMAT)
    if model is None or draft.refused or not _goes_together(draft, chosen, serving, model):
        return serving
    if weights is None:
        own_files = chosen.weights.id.startswith("gguf") or chosen.engine.serving is None
        name = chosen.weights.id if own_files else chosen.precision.value
        usual = name if name in ("bf16", "fp16", "fp32") or own_files else "bf16"
        weights = book.formats[draft.choose(_FORMAT, usual, "draft_checkpoint")]
    if weights.id not in chosen.engine.weight_formats:
        _refuse_format(draft, chosen, weights.id)
        return serving
    usual_tokens = chosen.engine.serving.draft_tokens if chosen.engine.serving is not None else 0
    return replace(
        serving,
        draft=DraftModel(
            model=model,
            weights=weights,
            tokens=draft.choose(_TOKENS, usual_tokens, "engine_guesses"),
            acceptance_rate=draft.number(_ACCEPTED),
        ),
    )


def _refuse_alone(draft: Draft) -> None:
    """Keys of a draft model mean nothing without one."""
    for path in (path for path in OF_DRAFTS if path != _MODEL and path in draft):
        draft.problem(
            path,
            Code.CONFLICT,
            f"{path} without a draft model",
            "a draft model",
            "give serving.draft_model (--draft-model) too, or leave it out",
        )


def _refuse_format(draft: Draft, chosen: Chosen, name: str) -> None:
    draft.problem(
        _FORMAT if _FORMAT in draft else _MODEL,
        Code.CONFLICT,
        f"{chosen.engine.id} does not load {name}",
        f"a format that {chosen.engine.id} loads: {', '.join(sorted(chosen.engine.weight_formats))}",
        "choose one of them with serving.draft_quantization (--draft-quantization)",
    )


def _goes_together(draft: Draft, chosen: Chosen, serving: Serving, model: Model) -> bool:
    """Whether the engine decodes with a draft model, and with this one for the model; if not, why."""
    policy, engine = chosen.engine.serving, chosen.engine.id
    if policy is None or not policy.draft_tokens:
        draft.problem(
            _MODEL,
            Code.CONFLICT,
            f"a draft model in {engine}",
            "an engine whose speculative decoding is counted: vllm (0.14 and later), sglang, tensorrt-llm, llama.cpp",
            "choose one of them, or leave it out",
        )
        return False
    if serving.encoded or not (chosen.model.generates_text and model.generates_text) or model.is_encoder_decoder:
        draft.problem(
            _MODEL,
            Code.CONFLICT,
            f"{model.id} as the draft of {chosen.model.id}",
            "two decoders of text",
            "choose such models, or leave it out",
        )
        return False
    target, own = chosen.model.vocab_size or 0, model.vocab_size or 0
    if abs(target - own) > policy.draft_vocabulary:
        most = f"at most {policy.draft_vocabulary} more or fewer" if policy.draft_vocabulary else "the same number"
        draft.problem(
            _MODEL,
            Code.CONFLICT,
            f"{model.id} knows {own} tokens, {chosen.model.id} {target}",
            f"{most} in {engine}, which compares tokens one by one",
            "choose a draft model of the same family",
        )
        return False
    tensor = int(draft.number("parallel.tensor") or 1)
    if tensor > 1 and not divides_tensors(model, tensor):
        draft.problem(
            _MODEL,
            Code.CONFLICT,
            f"{model.id} over {tensor} cards",
            f"a draft model that {tensor} cards can share: {engine} splits it as the model",
            "choose another draft model, or lower parallel.tensor (--tensor-parallel)",
        )
        return False
    return True
