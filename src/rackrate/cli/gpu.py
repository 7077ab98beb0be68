"""``rackrate gpu``: the facts of a card, or several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options

if TYPE_CHECKING:
    from datetime import datetime


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from rackrate.app.suggest import card_ids

    return [name for name in card_ids() if name.startswith(incomplete)]


@click.command(
    "gpu",
    epilog=examples(
        "rackrate gpu a40",
        "rackrate gpu a100-pcie-40 a100-pcie-80 --currency CNY",
    ),
)
@click.argument("cards", nargs=-1, metavar="[CARD]...", shell_complete=_complete)
@click.option("--currency", default="USD", show_default=True, help="Currency of the prices.")
@as_of_option
@output_options
def command(cards: tuple[str, ...], currency: str, at: datetime | None, form: str | None) -> None:
    """Show the facts of CARD with a source for each number, what others measured, what the card suits and holds.

    Prices are the cheapest of each market; results are priced on demand.
    Several cards stand side by side, with the share of the first one's
    numbers; without a card all are listed.
    """
    from rackrate.app.gpus import gpu

    document = gpu(cards, currency=currency, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import gpu_screen

        emit(form, gpu_screen.table(document, for_people=form == "md"), gpu_screen.screen(document))
