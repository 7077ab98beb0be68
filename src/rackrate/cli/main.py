"""The command line: one verb per question, each imported only when it is asked for."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys

import click

from rackrate.cli.refusals import printable, told

_FORM = "rackrate.form"

VERBS = {
    "plan": "What should I rent for this?",
    "fit": "Does it fit, and what would make it fit?",
    "speed": "How fast, what limits it, and are more cards faster?",
    "gpu": "What is this card? Several ids compare side by side.",
    "offers": "What is on offer? A price list to filter and sort.",
    "model": "What is this model: size, weights by format, KV cache?",
    "facts": "What is known, from where, and what of it is your own?",
    "completion": "Print the completion script of your shell.",
}


class Verbs(click.Group):
    """A group that knows its verbs by name and imports a verb's module only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all verbs, in the order of the journey."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, imported now."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"rackrate.cli.{cmd_name}").command
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        """Like click's; what is wrong with the flags before the verb is told as every problem is."""
        form = "json" if "--json" in args else None
        with told(form):
            if sys.stdout is None:  # closed before the start, as `>&-` does
                raise OSError(errno.EBADF, "it is closed", "standard output")
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[_FORM] = form
        return ctx

    def invoke(self, ctx: click.Context) -> object:
        """Like click's; what is wrong with the verb or its flags is told as every problem is."""
        with told(ctx.meta[_FORM]):
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with the nearest verb named when there is none."""
        if args and args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise _unknown_verb(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs for --help, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _unknown_verb(word: str) -> Exception:
    from rackrate.problems import Code, Finding, Refused, nearest

    close = nearest(word, VERBS)
    action = f"did you mean {close[0]}? " if close else ""
    finding = Finding(
        code=Code.UNKNOWN_NAME,
        subject="verb",
        observed=printable(word),
        expected=", ".join(VERBS),
        action=f"{action}`rackrate --help` says what each verb answers",
    )
    return Refused([finding])


def _start_lean() -> None:
    """Spare what a short process does not need: a pool of linear algebra threads, and garbage collection.

    Measured on two cores: numpy loads a third faster without the pool; no
    answer makes enough garbage to be worth collecting, and the collection
    that Python makes when it ends takes as long as the whole screen.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()
    atexit.register(gc.freeze)


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from rackrate.app.version import VERSION

        click.echo(f"rackrate {VERSION}")
        ctx.exit()


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nStart with:\n  rackrate plan --model meta-llama/Llama-2-7b-hf --task lora --tokens 30M",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Rent GPUs knowingly: what to rent, and what it will really cost."""
    _start_lean()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


if __name__ == "__main__":
    main()
