"""Verbs with actions: the nearest one is named where there is none of that name."""

from __future__ import annotations

from collections.abc import Iterable

import click

from rackrate.cli.refusals import printable


class Actions(click.Group):
    """A group that names the nearest action when there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but told as every problem is."""
        if args and args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise _unknown_action(f"{self.name}", args[0], self.commands)
        return super().resolve_command(ctx, args)


_OTHERWISE = {
    "facts": "`rackrate facts show {word}` if that is an id; `rackrate facts --help` says more",
    "offers": "`rackrate offers --gpu {word}` if that is a card; `rackrate offers --help` says more",
}


def _unknown_action(verb: str, word: str, known: Iterable[str]) -> Exception:
    from rackrate.problems import Code, Finding, Refused, nearest

    close = nearest(word, known)
    action = f"did you mean {close[0]}? " if close else ""
    finding = Finding(
        code=Code.UNKNOWN_NAME,
        subject=verb,
        observed=printable(word),
        expected=", ".join(known),
        action=f"{action}{_OTHERWISE[verb].format(word=printable(word))}",
    )
    return Refused([finding])
