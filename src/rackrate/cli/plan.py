"""``rackrate plan``: what to rent for a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rackrate.cli.options import Asking, complete_file, offers_option, workload_options
from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options
from rackrate.cli.refusals import EXIT_NO

if TYPE_CHECKING:
    from datetime import datetime


@click.command(
    "plan",
    cls=Asking,
    epilog=examples(
        "rackrate plan examples/lora-7b.toml",
        "rackrate plan --model meta-llama/Llama-2-13b-hf --context 4096",
        "rackrate plan --model sdxl --task diffusion --images 10k",
        "rackrate plan --model whisper-large-v3 --requests 10k --audio-seconds 3600",
    ),
)
@click.argument("file", required=False, metavar="[FILE]", shell_complete=complete_file)
@workload_options
@click.option(
    "--rank-by", "rank", type=click.Choice(["cost", "time", "both"]), default="cost", help="What to order plans by."
)
@click.option("--top", type=click.IntRange(1, 1000), default=8, show_default=True, help="How many plans to show.")
@click.option("--no-hosted", "serving__hosted", flag_value="none", help="Do not compare with hosted APIs.")
@offers_option
@as_of_option
@output_options
def command(
    file: str | None, rank: str, top: int, over: str | None, at: datetime | None, form: str | None, **flags: object
) -> None:
    """Rank rental plans for a workload, described in FILE (TOML or JSON, - for stdin), by flags, or both.

    Flags win over the file. Exit code 0: a plan was found; 3: none, with the
    nearest misses; 2: the request could not be understood.
    """
    from rackrate.app.flags import by_path
    from rackrate.app.planning import plan, plan_over

    if over is None:
        document = plan(file, by_path(flags), rank=rank, limit=top, at=day_of(at))
    else:
        from rackrate.app.long_lists import context_over

        document = plan_over(context_over(over, day_of(at)), file, by_path(flags), rank=rank, limit=top)
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import plan_screen

        emit(form, plan_screen.table(document), plan_screen.screen(document))
    if not document.plans:
        if form in {"csv", "md"}:
            click.echo("no plan: every offer was left out; leave out the form to see why", err=True)
        raise SystemExit(EXIT_NO)
