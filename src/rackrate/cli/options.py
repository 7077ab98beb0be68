"""Workload flags, made from the one table of workload keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rackrate.app.flags import Flag

F = TypeVar("F", bound=Callable[..., Any])


_HEADINGS = {
    "": "What to run",
    "training": "Training runs",
    "memory": "Training: what takes memory and time",
    "adapters": "Training: LoRA and QLoRA",
    "serving": "Inference: services and batches of requests",
    "targets": "Inference: load and latency targets",
    "cache": "Inference: KV cache, prefixes, speculative decoding",
    "seen": "Inference: images in prompts, sound, translation",
    "images": "Images and videos, made or trained on",
    "parallel": "How the work is divided over cards",
    "use": "When the machine runs, and what is kept around it",
    "limits": "What a plan must keep to",
}
_ANSWER = "The answer"
_TOPICS = {
    "memory": (
        *("training__optimizer", "training__checkpointing", "training__pure_16bit", "training__loss"),
        *("training__attention", "training__compiled", "training__step_in_backward", "training__offload"),
        *("training__saving", "training__packed"),
    ),
    "adapters": ("training__lora_rank", "training__lora_targets", "training__modules_to_save", "training__dora"),
    "targets": (
        *("serving__requests_per_s", "serving__first_token_ms", "serving__output_token_ms"),
        *("serving__percentile", "serving__length_spread"),
    ),
    "cache": (
        *("serving__cache_precision", "serving__value_cache_precision", "serving__shared_prefix_tokens"),
        *("serving__draft_model", "serving__draft_quantization", "serving__draft_tokens", "serving__acceptance_rate"),
    ),
    "seen": (
        *("serving__images_per_request", "serving__image_width", "serving__image_height"),
        *("serving__audio_seconds", "serving__beams", "training__target_tokens"),
    ),
    "images": ("training__cached",),
}
"""Flags that stand under a heading of their own in --help; others stand under that of their section."""
_TOPIC_OF = {parameter: topic for topic, parameters in _TOPICS.items() for parameter in parameters}


class Asking(click.Command):
    """A verb that asks about a workload: its --help lists the flags under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags, section by section of the workload, those of the answer last."""
        from rackrate.app.flags import flags

        work = {flag.parameter for flag in flags()}
        told: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*_HEADINGS.values(), _ANSWER)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                name = f"{param.name}"
                section = _TOPIC_OF.get(name, name.partition("__")[0] if "__" in name else "")
                told[_HEADINGS[section] if name in work else _ANSWER].append(record)
        for heading, records in told.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def complete_file(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion of a workload file to the shell."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def workload_options(function: F) -> F:
    """Add a flag for every workload key that has one, in the order of the key table."""
    from rackrate.app.flags import flags

    return flag_options(function, flags())


def flag_options(function: F, flags: Sequence[Flag]) -> F:
    """Add flags, in their order."""
    for flag in reversed(flags):
        option = click.option(
            *flag.names,
            flag.parameter,
            is_flag=flag.is_switch,
            default=None,
            metavar=flag.metavar,
            help=_with_choices(flag),
            multiple=flag.multiple,
            shell_complete=_completer(flag),
        )
        function = option(function)
    return function


def offers_option(function: F) -> F:
    """Add --offers: price lists to use instead of the bundled ones."""
    option = click.option(
        "--offers",
        "over",
        metavar="PATH",
        shell_complete=complete_file,
        help="Use this price list instead of the bundled ones: a CSV, a folder of them, or a file of columns.",
    )
    return option(function)


def _with_choices(flag: Flag) -> str:
    return f"{flag.help} One of: {', '.join(flag.choices)}." if flag.choices else flag.help


def _completer(flag: Flag) -> Callable[[click.Context, click.Parameter, str], list[str]] | None:
    if not flag.completes and not flag.choices:
        return None

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        from rackrate.app.suggest import completions

        return list(completions(flag.completes, incomplete, flag.choices))

    return complete
