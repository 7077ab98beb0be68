"""``rackrate facts``: what is known, from where, which source counts, and what of it is the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.actions import Actions
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from datetime import datetime

_KINDS = ("cards", "models", "engines", "formats", "providers")


@click.group("facts", cls=Actions, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Look into what rackrate knows, and into the facts and prices of your own that it reads."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _complete_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from rackrate.app.suggest import words

    kinds = ("card", "model", "engine", "format", "provider")
    folded = incomplete.casefold()
    return [word for kind in kinds for word in words(kind) if word.casefold().startswith(folded)]


def _complete_quantities(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from rackrate.app.suggest import quantities

    return [word for word in quantities(str(ctx.params.get("name", ""))) if word.startswith(incomplete)]


@command.command(
    "show",
    short_help="Every number of one thing, with its sources.",
    epilog=examples("rackrate facts show a40 bandwidth", "rackrate facts show AutoDL"),
)
@click.argument("name", metavar="ID", shell_complete=_complete_ids)
@click.argument("quantity", required=False, metavar="[QUANTITY]", shell_complete=_complete_quantities)
@as_of_option
@output_options
def show(name: str, quantity: str | None, at: datetime | None, form: str | None) -> None:
    """Show every number of ID with every source, which one counts, and why.

    ID is a card, a model, an engine, a weight format or a provider.
    """
    from rackrate.app.facts_showing import show_facts

    document = show_facts(name, quantity, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import facts_screen

        emit(form, facts_screen.show_table(document), facts_screen.show_screen(document))


@command.command(
    "list",
    short_help="What is known, by kind.",
    epilog=examples("rackrate facts list", "rackrate facts list providers"),
)
@click.argument("kind", required=False, type=click.Choice(_KINDS), metavar="[KIND]")
@as_of_option
@output_options
def list_(kind: str | None, at: datetime | None, form: str | None) -> None:
    """List what is known: cards, models, engines, formats or providers; without KIND, how many of each."""
    from rackrate.app.facts_listing import list_facts

    document = list_facts(kind, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import facts_screen

        emit(form, facts_screen.list_table(document), facts_screen.list_screen(document))


@command.command(
    "check",
    short_help="What is wrong with files of facts.",
    epilog=examples("rackrate facts check", "rackrate facts check examples/own-facts"),
)
@click.argument("folder", required=False, type=click.Path(), metavar="[FOLDER]")
@as_of_option
@output_options
def check(folder: str | None, at: datetime | None, form: str | None) -> None:
    """Check the bundled files, and your own: those in FOLDER, or in the folders that are read.

    Each problem has its file, line and column, and the next step. Exit code 0:
    there is none; 2: there is one.
    """
    from rackrate.app.facts_checking import check_facts

    document = check_facts(folder, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import facts_screen

        emit(form, facts_screen.check_table(document), facts_screen.check_screen(document))
    if not document.good:
        raise SystemExit(EXIT_BAD_INPUT)


@command.command("path", short_help="Where your own facts are looked for.", epilog=examples("rackrate facts path"))
@as_of_option
@output_options
def path(at: datetime | None, form: str | None) -> None:
    """Show where facts and prices of your own are looked for."""
    from rackrate.app.facts_listing import facts_path

    document = facts_path(at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import facts_screen

        emit(form, facts_screen.path_table(document), facts_screen.path_screen(document))
