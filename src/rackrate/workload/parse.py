"""Parsing: a request becomes a workload with every default listed, or findings that name all that is wrong."""

from __future__ import annotations

from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.money import currency_code
from rackrate.problems import Code, Finding
from rackrate.values import Value
from rackrate.workload.checks import check_limits, check_scopes, check_sizes, spread_shorthands
from rackrate.workload.decide_images import decide_images
from rackrate.workload.decide_serving import decide_serving
from rackrate.workload.decide_training import decide_training
from rackrate.workload.decide_use import decide_use
from rackrate.workload.draft import Draft
from rackrate.workload.keys import KEYS
from rackrate.workload.keys_of_serving import OF_DRAFTS
from rackrate.workload.measured import Measured
from rackrate.workload.named import (
    check_currency,
    named_cards,
    named_engine,
    named_format,
    named_model,
    named_vendors,
)
from rackrate.workload.needs import needs
from rackrate.workload.request import Request
from rackrate.workload.requirements import requirements
from rackrate.workload.resolve import is_quantised, resolve
from rackrate.workload.workload import Budget, Limits, Task, Workload

_NOT_YET = {Task.RENDER}
_NOW = ", ".join(task.value for task in Task if task not in _NOT_YET)
_ORDER = {path: place for place, path in enumerate(KEYS)}


class Parsed(Value, frozen=True, kw_only=True):
    """A workload that can be planned for, the request that it was decided from, and what its author should know."""

    workload: Workload
    request: Request
    warnings: tuple[Finding, ...] = ()


def parse(request: Request, book: FactBook) -> Parsed | tuple[Finding, ...]:
    """The workload that ``request`` describes, or everything that is wrong with it.

    Never raises for what users say. Warnings that came up stand among the findings of a refusal.
    """
    draft = Draft(request)
    limits, currency = _limits(draft, book), _currency(draft, book)
    task = _task(draft, request, book)
    if task is None or task in _NOT_YET:
        _look_up(draft, book, needed=task is None)
        return tuple(draft.findings)
    online = _online(draft, task)
    spread_shorthands(draft, task)
    check_scopes(draft, task, online=online)
    check_sizes(draft, task, online=online)
    chosen, measured = resolve(draft, task, limits.vendors, book), _measured(draft, task, book)
    if draft.refused or chosen is None:
        return tuple(draft.findings)
    training = decide_training(draft, task, chosen) if task.trains else None
    pipeline = chosen.pipeline if task is Task.DIFFUSION else None
    images = decide_images(draft, pipeline) if pipeline is not None else None
    serving = None if task.trains or images else decide_serving(draft, chosen, online=online)
    if serving is not None and any(path in draft for path in OF_DRAFTS):
        from rackrate.workload.decide_drafts import drafted  # imported here: few requests have one

        serving = drafted(draft, chosen, serving, book)
    if _refused(draft):
        return tuple(draft.findings)
    parallel = None
    if any(path.startswith("parallel.") for path in draft.values):
        from rackrate.workload.decide_parallel import decide_parallel

        parallel = decide_parallel(draft, chosen, training)
        if parallel is None:
            return tuple(draft.findings)
    workload = Workload(
        model=chosen.model,
        task=task,
        precision=chosen.precision,
        weights=chosen.weights,
        limits=limits,
        use=decide_use(draft, task, chosen, online=online),
        engine_id=chosen.engine.id,
        training=training,
        serving=serving,
        images=images,
        parallel=parallel,
        sight=chosen.sight,
        display_currency=currency,
        assumptions=tuple(sorted(draft.assumptions, key=lambda a: _ORDER[a.key])),
        measured=measured,
    )
    _warn_of_context(draft, workload, chosen.engine)
    return Parsed(workload=workload, request=request, warnings=tuple(draft.findings))


def _refused(draft: Draft) -> bool:
    return draft.refused


def _measured(draft: Draft, task: Task, book: FactBook) -> Measured | None:
    if "measured" not in draft:
        return None
    from rackrate.workload.measured_text import measured_in  # imported here: few requests have one

    return measured_in(draft, task, book)


def parse_limits(request: Request, book: FactBook) -> Limits | tuple[Finding, ...]:
    """The limits in ``request`` without a workload, or everything that is wrong with them."""
    draft = Draft(request)
    limits = _limits(draft, book)
    return tuple(draft.findings) if draft.refused else limits


def _look_up(draft: Draft, book: FactBook, *, needed: bool) -> None:
    """Say which names are not known, where the rest cannot be checked; a model is ``needed`` for some task."""
    if needed or "model" in draft:
        named_model(draft, book)
    named_engine(draft, book)
    named_format(draft, book)


def _task(draft: Draft, request: Request, book: FactBook) -> Task | None:
    """The task, as given or as the other keys tell; None when it cannot be told."""
    given = draft.text("task")
    if given is not None:
        if Task(given) in _NOT_YET:
            _refuse_for_now(draft, given)
        return Task(given)
    if "task" in request.values:  # its value was refused: nothing to guess from
        return None
    sections = {path.partition(".")[0] for path in request.values if path in KEYS}
    if {"training", "serving"} <= sections:
        draft.problem(
            "task",
            Code.MISSING_VALUE,
            "keys of training and of serving, and no task",
            f"one of {_NOW}",
            'give task = "inference", or the training task meant',
        )
        return None
    if "images" in sections and not {"training", "serving"} & sections:
        draft.assume("task", Task.DIFFUSION.value, "asked_sizes")
        return Task.DIFFUSION
    if "training" not in sections:
        draft.assume("task", Task.INFERENCE.value, "no_training_sizes")
        return Task.INFERENCE
    weights = next((f for f in book.formats.values() if f.id == draft.text("quantization")), None)
    task = Task.QLORA if weights is not None and is_quantised(weights) else Task.LORA
    draft.assume("task", task.value, "asked_sizes")
    return task


def _refuse_for_now(draft: Draft, task: str) -> None:
    draft.problem(
        "task",
        Code.NOT_YET,
        task,
        f"one of {_NOW}",
        "choose one of them; `rackrate gpu` compares cards for other work",
    )


def _online(draft: Draft, task: Task) -> bool:
    """Whether inference is a service: as given, else unless a number of requests makes it a batch job."""
    if task.trains or task is Task.DIFFUSION:
        return False
    offline = "serving.requests" in draft
    default, why = ("offline", "requests_given") if offline else ("online", "a_service")
    return draft.choose("serving.mode", default, why) == "online"


def _limits(draft: Draft, book: FactBook) -> Limits:
    """What a plan must keep to; limits that cannot be read or looked up leave findings."""
    check_limits(draft)
    budget, counts, most = draft.said("limits.budget"), draft.said("limits.gpu_counts"), draft.number("limits.max_gpus")
    if isinstance(budget, Budget):
        check_currency(draft, "limits.budget", budget.money.currency, book)
    return Limits(
        deadline_hours=draft.number("limits.deadline"),
        budget=budget if isinstance(budget, Budget) else None,
        gpus=named_cards(draft, book),
        gpu_counts=tuple(n for n in counts if isinstance(n, int)) if isinstance(counts, tuple) else (),
        max_gpus=None if most is None else int(most),
        regions=draft.texts("limits.regions"),
        providers=draft.texts("limits.providers"),
        exclude_providers=draft.texts("limits.exclude_providers"),
        markets=tuple(text.casefold().replace("-", "_").replace(" ", "_") for text in draft.texts("limits.markets")),
        interruptible=draft.constant("limits.interruptible", bool),
        require=requirements(draft.texts("limits.require")),
        vendors=named_vendors(draft, book),
        access=needs(draft.texts("limits.access")),
    )


def _currency(draft: Draft, book: FactBook) -> str:
    """The currency to show costs in: as given, the budget's, or USD."""
    given, budget = draft.text("currency"), draft.said("limits.budget")
    if given is not None:
        code = currency_code(given)
        check_currency(draft, "currency", code, book)
        return code
    if isinstance(budget, Budget):
        return draft.choose("currency", budget.money.currency, "budget_currency")
    return draft.choose("currency", "USD", "usual_currency")


def _warn_of_context(draft: Draft, workload: Workload, engine: Engine) -> None:
    """Say when the plan is for more than the model can do, or for less than the engine would reserve."""
    most = workload.model.max_context
    path, planned, by_engine = "serving.context_tokens", 0, _engine_context(engine, most)
    if workload.training is not None:
        path, planned, by_engine = "training.sequence_tokens", workload.training.sequence_tokens, 0
    if workload.serving is not None:
        planned = workload.serving.cached_tokens if workload.serving.encoded else workload.serving.context_tokens
    if most is not None and planned > most:
        draft.warning(
            path,
            Code.CONTEXT_BEYOND_MODEL,
            f"{planned} tokens",
            f"at most {most}, the maximum of {workload.model.id}",
            "shorten the sequences, or make sure that the model is extended (rope scaling)",
        )
    elif by_engine > planned:
        draft.warning(
            path,
            Code.ENGINE_DEFAULT_LARGER,
            f"{engine.id} plans for {by_engine} tokens a request unless told otherwise",
            f"{planned} tokens, as planned here",
            f"start {engine.id} with a maximum length of {planned}, or plan for more with --context",
        )


def _engine_context(engine: Engine, model_maximum: int | None) -> int:
    """Tokens of context that the engine plans for by itself; 0 when it reserves none or that is not known."""
    default = engine.serving.default_context if engine.serving is not None else ""
    if default == "model":
        return model_maximum or 0
    return int(default) if default.isdigit() else 0
