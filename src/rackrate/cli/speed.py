"""``rackrate speed``: how fast cards do a workload, and what limits them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.options import Asking, complete_file, workload_options
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_NO

if TYPE_CHECKING:
    from datetime import datetime


@click.command(
    "speed",
    cls=Asking,
    epilog=examples(
        "rackrate speed examples/lora-7b.toml --gpu a40 --gpu l40s",
        "rackrate speed --model meta-llama/Llama-2-13b-hf --gpu l40s --gpus 1,2,4",
        "rackrate speed --model llama-3-8b --gpu l4 --requests-per-s 1 --simulate",
        'rackrate speed --model llama-3-8b --gpu l4 --measured "12 tok/s"',
    ),
)
@click.argument("file", required=False, metavar="[FILE]", shell_complete=complete_file)
@workload_options
@click.option("--simulate", is_flag=True, help="Simulate serving: latencies of 50, 90 and 99 in 100, highest load.")
@as_of_option
@output_options
def command(file: str | None, at: datetime | None, form: str | None, *, simulate: bool, **flags: object) -> None:
    """Show how fast a workload goes on --gpu (repeatable) in each number of --gpus, and what limits it.

    Without --gpu the most rented cards are shown, without --gpus 1, 2, 4 and 8 of each. With --simulate,
    or --percentile above 50, requests are served one by one: a card or two take a second. Exit code 0:
    some do the work and meet its targets; 3: none does; 2: the request could not be understood.
    """
    from rackrate.app.flags import by_path
    from rackrate.app.speeds import speed

    document = speed(file, by_path(flags), at=day_of(at), simulate=simulate)
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import speed_screen

        emit(form, speed_screen.table(document), speed_screen.screen(document))
    if all(card.fewest_gpus is None for card in document.cards):
        raise SystemExit(EXIT_NO)
