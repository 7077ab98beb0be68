"""How problems are told: what, where, and the next step, on stderr, with an exit code for scripts."""

from __future__ import annotations

import contextlib
import errno
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from rackrate.problems import Finding

EXIT_UNWRITABLE = 1
"""The answer could not be written."""
EXIT_BAD_INPUT = 2
"""The request could not be understood or read."""
EXIT_NO = 3
"""The answer is no: no plan was found, or it does not fit."""

_SHOWN_AT_MOST = 60
_CLOSE_AT_MOST = 3


@contextlib.contextmanager
def told(form: str | None) -> Iterator[None]:
    """Turn refused requests into messages (or a JSON document) and exit code 2."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort):
        raise
    except click.UsageError as misuse:
        _refuse([_misused(misuse)], form)
    except OSError as wrong:
        if wrong.errno == errno.EPIPE:  # the reader has seen enough; click ends quietly
            raise
        _unwritable(wrong)
    except Exception as refused:
        from rackrate.problems import Refused

        if not isinstance(refused, Refused):
            raise
        _refuse(refused.findings, form)


def _refuse(findings: Iterable[Finding], form: str | None) -> NoReturn:
    found = list(findings)
    if form == "json":
        from rackrate.app.encode import to_json
        from rackrate.app.refusal import problems_document

        click.echo(to_json(problems_document(found)))
    for problem in found:
        click.echo(_sentence(problem), err=True)
    sys.exit(EXIT_BAD_INPUT)


def _misused(error: click.UsageError) -> Finding:
    """What click says about a command line, as a finding."""
    from rackrate.problems import Code, Finding

    path = error.ctx.command_path if error.ctx else "rackrate"
    code, subject = Code.BAD_SYNTAX, path
    action = f"`{path} --help` lists the flags"
    if isinstance(error, click.NoSuchOption):
        code, subject = Code.UNKNOWN_KEY, error.option_name
        close = " or ".join((error.possibilities or [])[:_CLOSE_AT_MOST])
        action = f"did you mean {close}? {action}" if close else action
    elif isinstance(error, click.BadOptionUsage):
        code, subject = Code.MISSING_VALUE, error.option_name
    elif isinstance(error, click.BadParameter):
        code = Code.MISSING_VALUE if isinstance(error, click.MissingParameter) else Code.BAD_VALUE
        subject = error.param.opts[0] if error.param else path
        if error.param and isinstance(error.param.type, click.Choice):
            action = f"choose one of {', '.join(map(str, error.param.type.choices))}; {action}"
    observed, expected = _seen_and_wanted(error.message)
    if isinstance(error, click.MissingParameter):
        observed = "nothing"
    if isinstance(error, click.NoSuchOption):
        observed, expected = "", f"a flag of {path}"  # the subject is what was seen
    return Finding(code=code, subject=printable(subject), observed=observed, expected=expected, action=action)


def _seen_and_wanted(message: str) -> tuple[str, str]:
    """The halves of messages such as ``'x' is not one of 'a', 'b'.``; the whole when there are none."""
    text = printable(message.rstrip(".").replace("%Y-%m-%d", "YYYY-MM-DD"), at_most=200)
    for between in (" is not ", " does not match "):
        seen, found, wanted = text.partition(between)
        if found:
            return seen, wanted
    return text, ""


def printable(text: str, *, at_most: int = _SHOWN_AT_MOST) -> str:
    """A word of the command line as it may be printed: short, on one line, without control characters."""
    clean = "".join(c if c.isprintable() else "?" for c in text[:at_most])
    return f"{clean}..." if len(text) > at_most else clean or "an empty text"


def _unwritable(wrong: OSError) -> NoReturn:
    """The answer is known but cannot be delivered, or a file of this package cannot be read."""
    where = wrong.filename or "standard output"
    click.echo(f"error: {where}: {wrong.strerror or wrong}", err=True)
    click.echo("  next: make room there, or send the output somewhere else", err=True)
    sys.exit(EXIT_UNWRITABLE)


def _sentence(problem: Finding) -> str:
    parts = [f"{problem.severity}: {problem.subject}: {problem.code.replace('_', ' ')}"]
    if problem.observed:
        parts.append(f"got {problem.observed}")
    if problem.expected:
        parts.append(f"expected {problem.expected}")
    text = "; ".join(parts)
    return f"{text}\n  next: {problem.action}" if problem.action else text
