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
    "serving": "Inference: services and batches of requests",
    "images": "Image generation",
    "parallel": "How the work is divided over cards",
    "use": "When the machine runs, and what is kept around it",
    "limits": "What a plan must keep to",
}
_ANSWER = "The answer"


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
                section = f"{param.name}".partition("__")[0] if "__" in f"{param.name}" else ""
                told[_HEADINGS[section] if param.name in work else _ANSWER].append(record)
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
