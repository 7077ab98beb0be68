"""Output options that every verb shares, and the printing of answers in every form."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from datetime import date, datetime

    from rackrate.cli.layout import Part, Table

F = TypeVar("F", bound=Callable[..., Any])
_WIDTH_WHEN_PIPED = 80
_WIDTHS = (40, 120)
"""Narrower than this no table can be read, wider than this no text (unless COLUMNS asks for it)."""

_ASCII = str.maketrans("─█▓▒░·×−", "-@%&:.x-")


def output_options(function: F) -> F:
    """Add --json, --csv and --md (at most one is used; the last one given wins)."""
    for name, text in (("json", "the whole document"), ("csv", "the table as CSV"), ("md", "the table as Markdown")):
        option = click.option(f"--{name}", "form", flag_value=name, help=f"Print {text}.")
        function = option(function)
    return function


def as_of_option(function: F) -> F:
    """Add --as-of: the day to answer for, so that an answer can be repeated."""
    option = click.option(
        "--as-of",
        "at",
        type=click.DateTime(["%Y-%m-%d"]),
        metavar="YYYY-MM-DD",
        help="Answer as of this day (today), on its rules.",
    )
    return option(function)


def day_of(at: datetime | None) -> date | None:
    """The day of a parsed --as-of."""
    return None if at is None else at.date()


def examples(*commands: str) -> str:
    """The end of a --help: commands to try, each on a line of its own."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


def emit_json(document: object) -> None:
    """Print the whole document."""
    from rackrate.app.encode import to_json

    _write(to_json(document) + "\n")


def emit(form: str | None, table: Table, screen: Iterable[Part]) -> None:
    """Print an answer as CSV or Markdown rows, or as the screen for people."""
    if form == "csv":
        _write(as_csv(table))
    elif form == "md":
        _write(as_markdown(table))
    else:
        show(screen)


def _write(text: str) -> None:
    """Write text that another program reads: UTF-8 whatever the terminal speaks."""
    click.echo(text.encode(), nl=False)


def show(parts: Iterable[Part]) -> None:
    """Print a screen: styled on a terminal, plain in a pipe or with NO_COLOR, in the characters that stdout knows."""
    from rackrate.cli.layout import lines_of

    text = "\n".join(lines_of(parts, _width()))
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        click.echo(text, color=False if plain else None)
    except UnicodeEncodeError:
        known = sys.stdout.encoding
        spelled = text.translate(_ASCII).encode(known, "replace").decode(known)
        click.echo(spelled, color=False if plain else None)


def _width() -> int:
    """Columns to fill: what COLUMNS says, the terminal's, or 80 in a pipe."""
    low, high = _WIDTHS
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal():
        return max(int(asked), low)
    try:
        return min(max(os.get_terminal_size(sys.stdout.fileno()).columns, low), high)
    except (OSError, ValueError):
        return _WIDTH_WHEN_PIPED


def as_csv(table: Table) -> str:
    """The table as CSV with its stable keys as header."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.keys)
    writer.writerows(table.rows)
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """The table as a Markdown (GFM) table."""
    rule = ["---:" if i in table.right else "---" for i in range(len(table.titles))]
    lines = [table.titles, rule, *table.rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
