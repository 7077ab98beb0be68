"""``rackrate fit``: does a workload fit on a card, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.options import Asking, complete_file, workload_options
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_NO

if TYPE_CHECKING:
    from datetime import datetime


@click.command(
    "fit",
    cls=Asking,
    epilog=examples(
        "rackrate fit examples/lora-7b.toml --gpu a40",
        "rackrate fit --model meta-llama/Llama-2-13b-hf --gpu a100-pcie-40 --gpus 1,2",
    ),
)
@click.argument("file", required=False, metavar="[FILE]", shell_complete=complete_file)
@workload_options
@as_of_option
@output_options
def command(file: str | None, at: datetime | None, form: str | None, **flags: object) -> None:
    """Show whether a workload fits on --gpu, what fills the memory, and what would make it fit.

    Of several numbers of cards (--gpus 1,8) each is answered, and the one that fits best in full. Beside
    it the largest sizes that fit, copies on one card, MIG slices, and the cheapest cards that hold it.
    Exit code 0: it fits (perhaps tightly); 3: it does not, or the card cannot do it; 2: the request
    could not be understood.
    """
    from rackrate.app.fitting import fit
    from rackrate.app.flags import by_path

    document = fit(file, by_path(flags), at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import fit_screen

        emit(form, fit_screen.table(document), fit_screen.screen(document))
    if document.verdict == "does_not_fit" or any(w.severity == "error" for w in document.warnings):
        raise SystemExit(EXIT_NO)
