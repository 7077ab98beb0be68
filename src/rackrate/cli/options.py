"""Workload flags, made from the one table of workload keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rackrate.app.flags import Flag

F = TypeVar("F", bound=Callable[..., Any])


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
        from rackrate.app.suggest import words

        known = flag.choices or words(flag.completes)
        return [word for word in known if word.lower().startswith(incomplete.lower())]

    return complete
