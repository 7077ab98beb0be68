"""``rackrate completion``: the script that makes a shell complete verbs, flags, cards and models."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    For bash: rackrate completion bash >> ~/.bashrc
    """
    from rackrate.cli.main import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "rackrate", "_RACKRATE_COMPLETE").source())
