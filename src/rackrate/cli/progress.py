"""A bar for long work: on stderr, and only where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def reading(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show how much of ``what`` is read while the caller tells it (bytes done, bytes in all); None: nobody watches."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("".join(c if c.isprintable() else "?" for c in what[-40:]).replace("[", "\\["), total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield told


_EVERY = 64
"""Allocations between two changes of the line."""


@contextlib.contextmanager
def simulating() -> Iterator[Callable[[int, int], None]]:
    """A line that says which step of a simulation runs; nothing where stderr is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nothing
        return
    from rich.console import Console

    with Console(stderr=True).status("Loading PyTorch") as status:

        def watch(step: int, count: int) -> None:
            if count % _EVERY == 0:
                what = f"step {step}" if step else "building the model"
                status.update(f"Simulating, {what}: {count:,} tensors allocated")

        yield watch


def _nothing(_step: int, _count: int) -> None:
    """Nobody looks."""
