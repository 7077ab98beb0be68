"""Checks: keys that contradict each other, or that have no meaning for the task."""

from __future__ import annotations

from rackrate.problems import Code
from rackrate.workload.draft import Draft
from rackrate.workload.keys import KEYS, Key
from rackrate.workload.needs import parse_need
from rackrate.workload.requirements import parse_requirement
from rackrate.workload.workload import Task

_TOKENS = "training.tokens"
_ROWS = ("training.rows", "training.epochs", "training.mean_tokens")


def spread_shorthands(draft: Draft, task: Task) -> None:
    """Hand ``batch`` and ``context`` to the key that they stand for in this task; a flag outranks a file."""
    for key in KEYS.values():
        if key.stands_for is None or key.path not in draft:
            continue
        target = key.stands_for[0 if task.trains else 2 if task is Task.DIFFUSION else 1]
        if not target:
            _refuse_shorthand(draft, key.path, task)
            continue
        if target in draft and draft.said(target) != draft.said(key.path):
            loser = _outranked(draft, key.path, target)
            if loser is None:
                _contradict(draft, key.path, target)
            if loser == key.path:
                continue
        draft.values[target] = draft.values[key.path]
        draft.origins[target] = draft.origins.get(key.path, "")


def _refuse_shorthand(draft: Draft, path: str, task: Task) -> None:
    draft.problem(
        path,
        Code.CONFLICT,
        f"{path} with {task}",
        f"a key that matters to {task}",
        "leave it out, or choose another task",
    )
    draft.drop(path)


def check_scopes(draft: Draft, task: Task, *, online: bool) -> None:
    """Refuse keys that have no meaning for this task; those of a file are dropped when a flag chose the task."""
    scopes = _scopes(task, online=online)
    chosen_by_flag = draft.by_flag("task") or draft.by_flag("serving.mode")
    what = task.value if task.trains or task is Task.DIFFUSION else f"{'online' if online else 'offline'} inference"
    for key in [key for key in KEYS.values() if key.path in draft and key.scope not in scopes]:
        say = draft.warning if chosen_by_flag and not draft.by_flag(key.path) else draft.problem
        say(key.path, Code.CONFLICT, f"{key.path} with {what}", f"a key that matters to {what}", _way_out(key, task))
        draft.drop(key.path)


def _scopes(task: Task, *, online: bool) -> set[str]:
    if task.trains:
        return {"any", "training", "job", "pictures"} | ({"adapters"} if task.trains_adapters else set())
    if task is Task.DIFFUSION:
        return {"any", "images", "pictures", "job"}
    return {"any", "serving", "online"} if online else {"any", "serving", "offline", "job"}


def _way_out(key: Key, task: Task) -> str:
    where = {
        "training": "choose a training task",
        "adapters": "choose task lora or qlora",
        "serving": "choose task inference",
        "online": "leave serving.requests out for a service kept online"
        if task is Task.INFERENCE
        else "choose task inference",
        "offline": "choose serving.mode offline" if task is Task.INFERENCE else "choose task inference",
        "images": "choose task diffusion",
        "pictures": "choose task diffusion, or train a diffusion model",
        "job": "give serving.requests for a batch job",
    }
    return f"leave it out, or {where[key.scope]}"


OF_TEXT = (
    *("training.sequence_tokens", "training.tokens", "training.mean_tokens", "training.packed", "training.loss"),
    *("training.checkpoint_every", "training.evaluate_every", "training.eval_tokens", "measured"),
    *("training.attention", "training.compiled", "training.step_in_backward", "training.offload", "training.dora"),
    *("training.pure_16bit", "training.modules_to_save", "training.saving"),
)
"""Keys of training that mean nothing, or are not modelled, for a model that makes images."""

OF_PICTURES = ("images.width", "images.height", "training.cached")


def check_pictured(draft: Draft, task: Task, *, pictured: bool) -> None:
    """Refuse what does not go with training on images, or on text."""
    if not task.trains:
        return
    what = "training on images" if pictured else f"{task} of a language model"
    for path in OF_TEXT if pictured else OF_PICTURES:
        if path in draft:
            action = "leave it out, or choose " + ("a language model" if pictured else "a diffusion model")
            draft.problem(path, Code.CONFLICT, f"{path} with {what}", f"a key that matters to {what}", action)
            draft.drop(path)
    if pictured and draft.text("training.checkpointing") == "selective":
        draft.problem(
            "training.checkpointing",
            Code.NOT_YET,
            f"selective with {what}",
            "none, or full: each block computed again (enable_gradient_checkpointing)",
            "choose none or full",
        )


def check_sizes(draft: Draft, task: Task, *, online: bool) -> None:
    """Refuse sizes that contradict each other."""
    if task.trains:
        _check_data_size(draft)
        _check_batches(draft)
        _check_rows(draft)
    elif task is not Task.DIFFUSION:
        _check_request(draft)
        if not online and "serving.requests" not in draft:
            draft.problem(
                "serving.requests",
                Code.MISSING_VALUE,
                "offline inference without its number of requests",
                "the number of requests of the whole job",
                "give serving.requests (--requests 100k), or serving.mode online",
            )


def _check_data_size(draft: Draft) -> None:
    """A run is given as tokens, or as rows x epochs x mean tokens, not both."""
    parts = [path for path in _ROWS if path in draft]
    if _TOKENS in draft and parts:
        loser = _outranked(draft, _TOKENS, parts[0])
        if loser is None:
            _contradict(draft, _TOKENS, parts[0])
        elif loser == _TOKENS:
            draft.drop(_TOKENS)
        else:
            for path in parts:
                draft.drop(path)
    elif parts and "training.rows" not in draft:
        draft.problem(
            parts[0],
            Code.MISSING_VALUE,
            f"{parts[0]} without training.rows",
            "training.rows beside it, or training.tokens instead",
            "give training.rows (--rows 50k) or training.tokens (--tokens 30M)",
        )


def _check_batches(draft: Draft) -> None:
    micro, whole = draft.number("training.micro_batch"), draft.number("training.global_batch")
    if micro and whole and whole % micro:
        draft.problem(
            "training.global_batch",
            Code.CONFLICT,
            f"global batch {whole:g}, micro batch {micro:g}",
            "a global batch that is a multiple of the micro batch",
            f"choose {max(1, whole // micro) * micro:g} or {(whole // micro + 1) * micro:g}",
        )


def _check_rows(draft: Draft) -> None:
    mean, longest = draft.number("training.mean_tokens"), draft.number("training.sequence_tokens")
    if mean and longest and mean > longest:
        draft.problem(
            "training.mean_tokens",
            Code.CONFLICT,
            f"rows of {mean:g} tokens on average in sequences of {longest:g}",
            "a mean no longer than the sequence",
            "raise training.sequence_tokens (--context) or give the mean after truncation",
        )


def _check_request(draft: Draft) -> None:
    context = draft.number("serving.context_tokens")
    prompt, output = draft.number("serving.prompt_tokens"), draft.number("serving.output_tokens")
    least = (prompt or 1) + (output or 1)
    if context and least > context:
        draft.problem(
            "serving.context_tokens",
            Code.CONFLICT,
            f"a context of {context:g} tokens for requests of at least {least:g}",
            "room for prompt and output",
            f"raise serving.context_tokens (--context) to {least:g} or shorten the requests",
        )


def check_limits(draft: Draft) -> None:
    """Refuse limits that leave nothing, and properties that no card can be tested for."""
    counts, most = draft.said("limits.gpu_counts"), draft.number("limits.max_gpus")
    if isinstance(counts, tuple) and counts and most and all(isinstance(n, int) and n > most for n in counts):
        draft.problem(
            "limits.max_gpus",
            Code.CONFLICT,
            f"at most {most:g} cards, and {', '.join(map(str, counts))} asked for",
            "a count within the maximum",
            "raise limits.max_gpus (--max-gpus) or lower limits.gpu_counts (--gpus)",
        )
    both = set(draft.texts("limits.providers")) & set(draft.texts("limits.exclude_providers"))
    for provider in sorted(both):
        draft.problem(
            "limits.exclude_providers",
            Code.CONFLICT,
            f"{provider} is both asked for and left out",
            "a provider in one of the two lists",
            f"take {provider} out of limits.providers or limits.exclude_providers",
        )
    for text in draft.texts("limits.require"):
        try:
            parse_requirement(text)
        except ValueError as wrong:
            draft.problem("limits.require", Code.BAD_VALUE, text, "a property of cards", str(wrong))
    for text in draft.texts("limits.access"):
        try:
            parse_need(text)
        except ValueError as wrong:
            draft.problem("limits.access", Code.BAD_VALUE, text, "something that renting needs", str(wrong))


def _outranked(draft: Draft, one: str, other: str) -> str | None:
    """Which of two contradicting keys gives way: the one of the file, if the other is a flag."""
    if draft.by_flag(one) == draft.by_flag(other):
        return None
    loser, winner = (other, one) if draft.by_flag(one) else (one, other)
    draft.warning(
        loser,
        Code.CONFLICT,
        f"{loser} in the file, {draft.subject(winner)} on the command line",
        "one of the two",
        "nothing to do: the flag wins",
    )
    return loser


def _contradict(draft: Draft, one: str, other: str) -> None:
    draft.problem(
        one, Code.CONFLICT, f"both {draft.subject(one)} and {draft.subject(other)}", "one of the two", "leave one out"
    )
