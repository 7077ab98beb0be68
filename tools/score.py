"""Score estimates against published measurements: ``python tools/score.py memory|speed FILE.csv [--json]``.

``--models extra.csv`` adds models in the columns of the bundled models.csv,
``--gpus extra.csv`` cards in the columns of a wide table (README of the scores
in docs/speed.md). The estimates are made from the bundled facts alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scoring import memory, speed
from scoring.cells import Row, Unreadable, read_cells, read_rows, require
from scoring.memory_models import extra_models
from scoring.printing import printed
from scoring.speed_facts import with_cards

from rackrate.facts.book import FactBook
from rackrate.facts.bundled import load

SUBJECTS: dict[str, Callable[[Iterable[Row], FactBook], dict[str, Any]]] = {
    "memory": memory.score,
    "speed": speed.score,
}
"""What can be scored: the function that turns rows into a document."""

LISTED = ("by_task", "by_engine", "by_source")
COLUMNS = ("scored", "median_abs_error", "p90_abs_error", "bias", "share_above_high", "share_under_10", "width_p50")


def book_with(models: Path | None) -> FactBook:
    """The bundled facts, with the models of a file."""
    book = load()
    if models is None:
        return book
    return extra_models(book, {row["id"].strip(): row for row in read_cells(models) if row.get("id", "").strip()})


def shown(found: dict[str, Any]) -> str:
    """A score for people: per cent, one line a group."""
    lines = [f"{found['scored']} of {found['rows']} rows scored exactly"]
    lines += [f"  {name}: {count} rows" for name, count in found["skipped"].items()]
    lines += ["", _head(), _line("all", found)]
    for group in LISTED:
        lines += ["", f"{group.replace('_', ' ')}:"]
        lines += [_line(name, each) for name, each in found[group].items()]
    lines += ["", *(f"{name}: {found[name]}" for name in ("share_wrong_fit", "width_p90"))]
    lines += ["", f"bounds: {found['bounds']}", "components:"]
    lines += [f"  {name}: {each['errors']}" for name, each in found["components"].items()]
    lines += ["", "worst:"]
    lines += [f"  {w['id']:>8} {w['error']:+7.1%}  {w['measured_gib']:>9} GiB, estimate {w['predicted_gib']}"
              for w in found["worst"]]  # fmt: skip
    return "\n".join(lines)


SPEED_LISTED = ("by_group", "by_task", "by_engine", "by_gpu", "by_source")
SPEED_COLUMNS = (
    "scored", "median_abs_error", "p90_abs_error", "bias", "median_of_sources", "coverage_80", "interval_score",
    "pair_order",
)  # fmt: skip


def shown_speed(found: dict[str, Any]) -> str:
    """A score of speeds for people."""
    lines = [f"{found['scored']} of {found['score_yes']} rows with score=yes scored, of {found['rows']}"]
    lines += [f"  {name}: {count} rows" for name, count in found["skipped"].items()]
    lines += ["", _head(SPEED_COLUMNS), _line("all", found, SPEED_COLUMNS)]
    for group in SPEED_LISTED:
        lines += ["", f"{group.replace('_', ' ')}:"]
        lines += [_line(name, each, SPEED_COLUMNS) for name, each in found[group].items()]
    lines += ["", "suspect (measured over estimate):"]
    lines += [f"  {s['id']:>9} {s['not_estimated'] or s['measured_over_estimate']}  {s['reason']}"
              for s in found["suspect"]]  # fmt: skip
    lines += ["", "worst:"]
    lines += [f"  {w['id']:>9} {w['error']:+7.1%}  {w['measured']:>9} measured, estimate {w['predicted']}  "
              f"{w['task']} {w['engine']} {w['gpu']}" for w in found["worst"]]  # fmt: skip
    return "\n".join(lines)


def _head(columns: tuple[str, ...] = COLUMNS) -> str:
    return f"{'':<44}" + "".join(f"{name.removesuffix('_error').removeprefix('share_'):>14}" for name in columns)


def _line(name: str, each: dict[str, Any], columns: tuple[str, ...] = COLUMNS) -> str:
    cells = [each[column] for column in columns]
    return f"{name[:43]:<44}" + f"{cells[0]:>14}" + "".join(
        f"{'' if cell is None else format(cell, '.1%'):>14}" for cell in cells[1:]
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Print the score of a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", choices=sorted(SUBJECTS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--models", type=Path, help="more models, in the columns of models.csv")
    parser.add_argument("--gpus", type=Path, help="more cards, in the columns of a wide table of cards")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    said = parser.parse_args(arguments)
    words = shown if said.subject == "memory" else shown_speed
    try:
        rows = read_rows(said.file)
        require(said.file, rows, speed.COLUMNS if said.subject == "speed" else ())
        found = SUBJECTS[said.subject](rows, with_cards(book_with(said.models), said.gpus))
    except Unreadable as why:
        print(why, file=sys.stderr)
        return 2
    return printed(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) if said.json else words(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
