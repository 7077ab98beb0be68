"""How problems are told: what, where, and the next step, on stderr, with an exit code for scripts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from rackrate.app.refusal import Refused
    from rackrate.app.wire import FindingDoc

EXIT_BAD_INPUT = 2
"""The request could not be understood or read."""
EXIT_NO = 3
"""The answer is no: no plan was found, or it does not fit."""


@contextlib.contextmanager
def told(form: str | None) -> Iterator[None]:
    """Turn refused requests into messages (or a JSON document) and exit code 2."""
    from rackrate.app.refusal import Refused

    try:
        yield
    except Refused as refused:
        _exit(refused, form)


def _exit(refused: Refused, form: str | None) -> NoReturn:
    from rackrate.app.encode import to_json
    from rackrate.app.refusal import problems_document

    document = problems_document(refused)
    if form == "json":
        click.echo(to_json(document))
    for problem in document.problems:
        click.echo(_sentence(problem), err=True)
    sys.exit(EXIT_BAD_INPUT)


def _sentence(problem: FindingDoc) -> str:
    parts = [f"{problem.severity}: {problem.subject}: {problem.code.replace('_', ' ')}"]
    if problem.observed:
        parts.append(f"got {problem.observed}")
    if problem.expected:
        parts.append(f"expected {problem.expected}")
    text = "; ".join(parts)
    return f"{text}\n  next: {problem.action}" if problem.action else text
