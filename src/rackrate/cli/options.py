"""Workload flags, made from the one table of workload keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def workload_options(function: F) -> F:
    """Add a flag for every workload key that has one, in the order of the key table."""
    from rackrate.app.flags import flags

    for flag in reversed(flags()):
        option = click.option(
            *flag.names,
            flag.parameter,
            is_flag=flag.is_switch,
            default=None,
            metavar=flag.metavar,
            help=flag.help,
            multiple=flag.multiple,
            shell_complete=_completer(flag.completes),
        )
        function = option(function)
    return function


def _completer(what: str) -> Callable[[click.Context, click.Parameter, str], list[str]] | None:
    if not what:
        return None

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        from rackrate.app.suggest import words

        return [w for w in words(what) if w.lower().startswith(incomplete.lower())]

    return complete
