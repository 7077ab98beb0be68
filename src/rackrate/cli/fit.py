"""``rackrate fit``: does a workload fit on a card, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.options import Asking, complete_file, workload_options
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_NO

if TYPE_CHECKING:
    from datetime import date, datetime

    from rackrate.app.wire.simulation import SimulationDocument

_WORKLOAD = "the workload"


@click.command(
    "fit",
    cls=Asking,
    epilog=examples(
        "rackrate fit examples/lora-7b.toml --gpu a40",
        "rackrate fit --model meta-llama/Llama-2-13b-hf --gpu a100-pcie-40 --gpus 1,2",
        "rackrate fit --model sdxl --task lora --rows 30 --epochs 100 --gpu rtx3090",
        "rackrate fit examples/lora-7b.toml --gpu a40 --simulate",
        "rackrate fit --simulate examples/own-step/train_step.py:build --gpu a40",
    ),
)
@click.argument("file", required=False, metavar="[FILE]", shell_complete=complete_file)
@workload_options
@click.option(
    "--simulate",
    is_flag=False,
    flag_value=_WORKLOAD,
    default=None,
    metavar="[PY:FUNCTION]",
    help="Run two real training steps (or prefill and decode) without a GPU, on tensors without values, and show "
    "what they allocate: the workload's, or those of a function in a Python file of your own. Needs the extra "
    "`measure`.",
)
@as_of_option
@output_options
def command(file: str | None, at: datetime | None, form: str | None, simulate: str | None, **flags: object) -> None:
    """Show whether a workload fits on --gpu, what fills the memory, and what would make it fit.

    Without --gpu the answer is for the cheapest card on demand that surely holds the work.
    Of several numbers of cards (--gpus 1,8) each is answered, and the one that fits best in full. Beside
    it the largest sizes that fit, copies on one card, MIG slices, and the cheapest cards that hold it.
    Exit code 0: it fits (perhaps tightly); 3: it does not, or the card cannot do it; 2: the request
    could not be understood.
    """
    from rackrate.app.flags import by_path

    if simulate is not None:
        _simulate(file, by_path(flags), simulate, day_of(at), form)
        return
    from rackrate.app.fitting import fit

    document = fit(file, by_path(flags), at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import fit_screen

        emit(form, fit_screen.table(document), fit_screen.screen(document))
    if document.verdict == "does_not_fit" or any(w.severity == "error" for w in document.warnings):
        raise SystemExit(EXIT_NO)


def _simulate(file: str | None, flags: dict[str, object], what: str, at: date | None, form: str | None) -> None:
    """Print a simulation; ``what`` is the workload, a program, or the workload's file behind the flag."""
    from rackrate.cli import simulation_screen

    document = _simulated(file, flags, what, at)
    if form == "json":
        emit_json(document)
    else:
        emit(form, simulation_screen.table(document), simulation_screen.screen(document))
    if document.card is not None and document.card.verdict == "does_not_fit":
        raise SystemExit(EXIT_NO)


def _simulated(file: str | None, flags: dict[str, object], what: str, at: date | None) -> SimulationDocument:
    from rackrate.app.programs import is_program
    from rackrate.app.simulating import simulate
    from rackrate.cli.progress import simulating

    with simulating() as watch:
        if what != _WORKLOAD and (is_program(what) or file is not None):
            return simulate(file, flags, program=what, at=at, watch=watch)
        return simulate(file if what == _WORKLOAD else what, flags, at=at, watch=watch)
