"""Output options that every verb shares, and the printing of tables in every form."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from datetime import date, datetime

    from rich.console import Console, RenderableType

F = TypeVar("F", bound=Callable[..., Any])
WIDTH_WHEN_PIPED = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under named columns: the same rows are printed as a table, CSV and Markdown.

    ``keys`` are stable names for machines, ``titles`` the words for people;
    ``right`` the indices of columns set flush right.
    """

    keys: tuple[str, ...]
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


def output_options(function: F) -> F:
    """Add --json, --csv and --md (at most one is used; the last one given wins)."""
    for name, text in (("json", "the whole document"), ("csv", "the table as CSV"), ("md", "the table as Markdown")):
        option = click.option(f"--{name}", "form", flag_value=name, help=f"Print {text}.")
        function = option(function)
    return function


def as_of_option(function: F) -> F:
    """Add --as-of: the day to answer for, so that an answer can be repeated."""
    option = click.option(
        "--as-of", "at", type=click.DateTime(["%Y-%m-%d"]), help="Answer as of this day (today), on its rules."
    )
    return option(function)


def day_of(at: datetime | None) -> date | None:
    """The day of a parsed --as-of."""
    return None if at is None else at.date()


def console(*, stderr: bool = False) -> Console:
    """A console for results (stdout) or talk (stderr): 80 columns in a pipe, no colour with NO_COLOR."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH_WHEN_PIPED
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def show(*parts: RenderableType) -> None:
    """Print renderables to stdout."""
    out = console()
    for part in parts:
        out.print(part)


def rich_table(table: Table, *, title: str = "") -> RenderableType:
    """The table for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    drawn = RichTable(box=SIMPLE_HEAD, title=title or None, title_justify="left", padding=(0, 1, 0, 0), show_edge=False)
    for index, name in enumerate(table.titles):
        drawn.add_column(
            name, justify="right" if index in table.right else "left", overflow="fold", no_wrap=index == 0
        )
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def as_csv(table: Table) -> str:
    """The table as CSV with its stable keys as header."""
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
    return text.replace("|", "\\|").replace("\n", " ")


def write(text: str) -> None:
    """Write text to stdout as it is."""
    click.echo(text, nl=not text.endswith("\n"))


def emit(
    form: str | None, document: object, table: Callable[[], Table], screen: Callable[[], Iterable[RenderableType]]
) -> None:
    """Print ``document`` in the form asked for: JSON, CSV or Markdown rows, or the screen for people."""
    if form == "json":
        from rackrate.app.encode import to_json

        write(to_json(document))
    elif form == "csv":
        write(as_csv(table()))
    elif form == "md":
        write(as_markdown(table()))
    else:
        show(*screen())
