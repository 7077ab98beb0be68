"""The command line, run in this process: what it prints, and how it ends."""

import functools
import gc
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from rackrate.cli.main import main

ROOT = Path(__file__).parents[2]
DAY = "2026-11-30"
"""The day that answers are asked for, so that ages and rules do not change under the tests."""


class Ran(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The JSON that it printed; a number that is not finite is an error."""
        return json.loads(self.out, parse_constant=_not_a_number)


def _not_a_number(name):
    raise AssertionError(f"{name} is no JSON")


def run(*args, env=None, stdin=None):
    """Run ``rackrate`` with ``args``; an exception that it lets out is raised here."""
    clean = {"COLUMNS": None, "NO_COLOR": None, "TERM": None, "PYTHONIOENCODING": None}
    try:
        ended = CliRunner(env=clean | (env or {})).invoke(
            main, [str(arg) for arg in args], input=stdin, prog_name="rackrate", catch_exceptions=False
        )
    finally:
        gc.enable()  # a verb switches it off, for a process of its own
    return Ran(ended.exit_code, ended.stdout, ended.stderr)


@functools.cache
def answer(*args):
    """What ``rackrate`` says to ``args`` on ``DAY``; asked once."""
    return run(*args, "--as-of", DAY)


@pytest.fixture(name="run")
def run_fixture(monkeypatch):
    """``rackrate``, run at the root of the repository."""
    monkeypatch.chdir(ROOT)
    return run


@pytest.fixture(name="answer")
def answer_fixture(monkeypatch):
    """What ``rackrate`` says, asked at the root of the repository and only once in a run of the tests."""
    monkeypatch.chdir(ROOT)
    return answer
