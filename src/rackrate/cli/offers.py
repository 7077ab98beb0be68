"""``rackrate offers``: the price list, filtered and sorted; ``offers pack``: a long one, ready to be planned over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.actions import Actions
from rackrate.cli.options import complete_file, flag_options, offers_option
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_NO

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


def _complete_columns(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from rackrate.cli.offers_columns import COLUMN_KEYS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{key}" for key in COLUMN_KEYS if key.startswith(last)]


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    from rackrate.cli.offers_columns import columns_of

    return columns_of(text)


def _listing_options(function: Callable[..., None]) -> Callable[..., None]:
    from rackrate.app.listing_flags import flags

    return flag_options(function, flags())


@click.group(
    "offers",
    cls=Actions,
    invoke_without_command=True,
    epilog=examples(
        "rackrate offers --gpu a100 --region eu --max-price-per-gpu 2",
        "rackrate offers --min-memory 80 --group-by card",
        "rackrate offers --provider aws --sort -gpus,price --csv",
    ),
)
@_listing_options
@click.option(
    "--columns",
    metavar="NAMES",
    shell_complete=_complete_columns,
    help="Columns to show, in this order; not for --json.",
)
@click.option("--top", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="How many to show.")
@offers_option
@as_of_option
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    columns: str | None,
    top: int,
    over: str | None,
    at: datetime | None,
    form: str | None,
    **flags: object,
) -> None:
    """List what is on offer, cheapest per card and hour first, with what each filter left out.

    Prices are per hour: of the whole offer, of one card (of a slice: of the
    whole card), and of a GB of its memory as sold. What is not known of an
    offer passes no filter and is sorted last. Exit code 0: there is one; 3:
    there is none, and the screen says which filter to drop; 2: the request
    could not be understood.
    """
    if ctx.invoked_subcommand is not None:
        return
    from rackrate.app.listing import offers

    shown = _columns(columns)
    asked = {name.removeprefix("limits__"): value for name, value in flags.items()}
    document = offers(asked, limit=top, over=over, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import offers_screen

        emit(form, offers_screen.table(document, shown), offers_screen.screen(document, shown))
    if not document.offers:
        if form in {"csv", "md"}:
            click.echo("no offer: every one was left out; leave out the form to see why", err=True)
        raise SystemExit(EXIT_NO)


@command.command(
    "pack",
    short_help="Write long price lists as a file that opens at once.",
    epilog=examples("rackrate offers pack lists offers.columns", "rackrate plan job.toml --offers offers.columns"),
)
@click.argument("lists", shell_complete=complete_file)
@click.argument("file", shell_complete=complete_file)
@as_of_option
@output_options
def pack(lists: str, file: str, at: datetime | None, form: str | None) -> None:
    """Write the price lists in LISTS (a CSV in the format of the bundled ones, or a folder) to FILE.

    FILE holds them as columns: a million offers open in a moment. It belongs
    to the facts that it was written with; after an update it is written anew.
    """
    from rackrate.app.long_lists import pack as write
    from rackrate.cli.progress import reading

    with reading(lists) as progress:
        document = write(lists, file, at=day_of(at), progress=progress)
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import offers_screen

        emit(form, offers_screen.pack_table(document), offers_screen.pack_screen(document))
