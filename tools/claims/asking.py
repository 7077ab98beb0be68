"""Asking rackrate: commands as a reader types them, answered as the JSON documents that they print."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
from functools import cache
from pathlib import Path

import msgspec
from click.testing import CliRunner

from rackrate.app.context import facts
from rackrate.app.wire.every import DOCUMENTS
from rackrate.app.wire.fit import FitDocument
from rackrate.app.wire.gpus import GpuDoc, GpuDocument
from rackrate.app.wire.parts import Document
from rackrate.app.wire.plan import PlanDocument
from rackrate.app.wire.speed import SpeedDocument
from rackrate.cli.main import main
from rackrate.units import GB, GIB

os.environ["RACKRATE_FACTS"] = ""  # whoever builds the pages may have facts and prices of their own

AS_OF = facts().seen_at
"""The day of the bundled facts: a fixed day makes the answers repeatable."""

ROOT = Path(__file__).parents[2]
_ANSWERED = (0, 3)  # 3: the answer is no, which is an answer
WIDTH = 80


def printed(command: str, *more: str, color: bool = False) -> str:
    """What ``command`` prints on stdout at 80 columns, as of the day of the facts.

    Settings such as ``RACKRATE_FACTS=folder`` may stand before it; without one
    no facts of the reader's own are laid over the bundled ones.

    Raises:
        RuntimeError: rackrate refused the command.
    """
    said = shlex.split(command)
    settings = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, said))
    program, *words = said[len(settings) :]
    if program != "rackrate":
        raise ValueError(f"not a rackrate command: {command}")
    dated = () if "--help" in words or "--as-of" in words else ("--as-of", AS_OF.isoformat())
    usual = {"COLUMNS": str(WIDTH), "NO_COLOR": "", "TERM": "xterm", "RACKRATE_FACTS": ""}
    runner = CliRunner(env=usual | settings)
    with contextlib.chdir(ROOT):
        result = runner.invoke(main, [*words, *dated, *more], prog_name="rackrate", terminal_width=WIDTH, color=color)
    if result.exit_code not in _ANSWERED:
        raise RuntimeError(f"{command}: exit code {result.exit_code}: {result.output}") from result.exception
    return result.stdout


@cache
def _document(command: str) -> Document:
    words = shlex.split(command)
    verb = words[words.index("rackrate") + 1]
    return msgspec.json.decode(printed(command, "--json"), type=DOCUMENTS[verb])


def fit(command: str) -> FitDocument:
    """The answer to a ``rackrate fit`` command."""
    document = _document(command)
    assert isinstance(document, FitDocument)
    return document


def plan(command: str) -> PlanDocument:
    """The answer to a ``rackrate plan`` command."""
    document = _document(command)
    assert isinstance(document, PlanDocument)
    return document


def speed(command: str) -> SpeedDocument:
    """The answer to a ``rackrate speed`` command."""
    document = _document(command)
    assert isinstance(document, SpeedDocument)
    return document


def gpus(command: str) -> dict[str, GpuDoc]:
    """The cards of a ``rackrate gpu`` command by id."""
    document = _document(command)
    assert isinstance(document, GpuDocument)
    return {card.id: card for card in document.gpus}


def fact(card: GpuDoc, quantity: str) -> float:
    """One number of a card, in base units."""
    return next(f.value for f in card.facts if f.quantity == quantity)


def part(document: FitDocument, name: str) -> float:
    """The likely bytes of a component (0 where it has none)."""
    return sum(c.bytes.likely for c in document.components if c.name == name)


def gb(size: float, digits: int = 1) -> str:
    """Bytes in GB, 10^9."""
    return f"{size / GB:,.{digits}f} GB"


def gib(size: float, digits: int = 1) -> str:
    """Bytes in GiB, 2^30."""
    return f"{size / GIB:,.{digits}f} GiB"


def percent(share: float, sign: str = "") -> str:
    """A share as a percentage; ``sign`` ``+`` shows it as a change."""
    return f"{share:{sign}.0%}".replace("%", " %")


def words(code: str) -> str:
    """A code as words."""
    return code.replace("_", " ")
