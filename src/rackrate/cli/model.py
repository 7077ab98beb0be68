"""``rackrate model``: what a model is, what its weights take in every format, and how its cache grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rackrate.cli.output import as_of_option, day_of, emit, emit_json, examples, output_options

if TYPE_CHECKING:
    from datetime import datetime


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from rackrate.app.suggest import completions

    if incomplete.startswith((".", "/", "~")):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in completions("model", incomplete)]


@click.command(
    "model",
    epilog=examples(
        "rackrate model meta-llama/Llama-2-7b-hf",
        "rackrate model ./my-model ./my-model.Q4_K_M.gguf",
        "rackrate model hub:Qwen/Qwen3-8B",
        'rackrate model --family "Qwen3 MoE"',
    ),
)
@click.argument("models", nargs=-1, metavar="[MODEL]...", shell_complete=_complete)
@click.option("--family", default="", metavar="NAME", help="List the bundled models of this family.")
@as_of_option
@output_options
def command(models: tuple[str, ...], family: str, at: datetime | None, form: str | None) -> None:
    """Show the architecture of MODEL, its weights in every format and its KV cache; several stand side by side.

    MODEL is a bundled id, a config.json, a folder with one, a .safetensors or
    .gguf file, or org/name on the Hugging Face Hub (hub:org/name to be sure;
    needs the extra hub). Without MODEL all bundled models are listed.
    """
    from rackrate.app.models import model

    document = model(models, family=family, at=day_of(at))
    if form == "json":
        emit_json(document)
    else:
        from rackrate.cli import model_screen

        listed = not models
        emit(form, model_screen.table(document, listed=listed), model_screen.screen(document, listed=listed))
