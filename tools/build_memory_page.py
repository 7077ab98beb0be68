"""Make ``docs/images/memory.svg`` and the tables of ``docs/memory*.md``: estimates beside published measurements.

``tools/build_docs.py`` writes them from the tables in ``tests/golden``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from scoring import memory
from scoring.cells import Row, read_rows
from scoring.memory import Scored
from scoring.memory_models import NotScored

from rackrate.facts.book import FactBook
from rackrate.units import GIB

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
TABLES = ("memory-measured.csv", "memory-held-out.csv")
UNSEEN = "memory-held-out-2.csv"
"""Rows of engines, loops and layouts that nothing was derived from."""

SHARDED = "memory-held-out-3.csv"
"""Sharded pretraining, gathered before what it shows was derived."""

NUMBERS = Path(__file__).with_name("memory_numbers.csv")
FONT = "ui-sans-serif, system-ui, sans-serif"

WIDTH, HEIGHT, LEFT, TOP, SIDE = 760, 560, 70, 30, 470
LOWEST, HIGHEST = 0.4, 100.0
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
COLOURS = {
    "inference": "#0072b2", "lora": "#009e73", "qlora": "#56b4e9", "full_finetune": "#d55e00", "pretrain": "#cc79a7",
}  # fmt: skip
"""Colours that people with colour blindness can tell apart (Okabe and Ito)."""

_BEGINS, _ENDS = r"<!-- table of (?P<name>[a-z-]+) begins -->\n", r"<!-- table of (?P=name) ends -->"
BLOCK = re.compile(f"({_BEGINS})(?P<text>.*?)({_ENDS})", re.DOTALL)


@cache
def book() -> FactBook:
    """The bundled facts with the models of the tables."""
    from score import book_with

    return book_with(GOLDEN / "memory-models.csv")


@cache
def score_of(table: str) -> dict[str, Any]:
    """The score of one table."""
    return memory.score(read_rows(GOLDEN / table), book())


def points(table: str) -> Iterator[Scored]:
    """The exact rows of a table with their estimates."""
    for row in read_rows(GOLDEN / table):
        if row.text("score") == "yes":
            try:
                yield memory.scored(row, book())
            except NotScored:
                continue


# ---------------------------------------------------------------- the picture


def memory_picture() -> str:
    """Estimates over measurements, both axes logarithmic; rings were held out."""
    marks = [mark(each, held=table == TABLES[1]) for table in TABLES for each in points(table)]
    lines = [*axes(), *band(), *marks, *legend()]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}" font-size="13">'
    )
    title = "<title>Memory: estimates beside published measurements</title>"
    return "\n".join([head, title, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *lines, "</svg>", ""])


def place(gib: float) -> float:
    """A size as a part of the axis."""
    return math.log(gib / LOWEST) / math.log(HIGHEST / LOWEST)


def at(measured: float, estimate: float) -> tuple[float, float]:
    """The point of a measurement and its estimate, in GiB."""
    return LEFT + SIDE * place(measured), TOP + SIDE * (1 - place(estimate))


def mark(each: Scored, *, held: bool) -> str:
    """One row: a dot, or a ring where it was held out."""
    x, y = at(each.measured / GIB, each.predicted.likely / GIB)
    colour = COLOURS.get(each.task, "#000000")
    fill = f'fill="none" stroke="{colour}"' if held else f'fill="{colour}" fill-opacity="0.75"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {fill}/>'


def axes() -> list[str]:
    """Frame, ticks and titles."""
    lines = [f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888888"/>']
    for tick in TICKS:
        x, y = at(tick, tick)
        lines.append(f'<path d="M{x:.1f} {TOP}V{TOP + SIDE}M{LEFT} {y:.1f}H{LEFT + SIDE}" stroke="#e6e6e6"/>')
        lines.append(f'<text x="{x:.1f}" y="{TOP + SIDE + 18}" text-anchor="middle">{tick:g}</text>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = TOP + SIDE / 2
    lines.append(f'<text x="{LEFT + SIDE / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">measured, GiB</text>')
    turn = f'transform="rotate(-90 18 {middle:.0f})"'
    lines.append(f'<text x="18" y="{middle:.0f}" text-anchor="middle" {turn}>estimated, GiB</text>')
    return lines


def band() -> list[str]:
    """The line of equality and ten per cent on both sides."""
    lines = []
    for factor, dash in ((1.0, ""), (1.1, ' stroke-dasharray="4 4"'), (1 / 1.1, ' stroke-dasharray="4 4"')):
        low, high = max(LOWEST, LOWEST / factor), min(HIGHEST, HIGHEST / factor)
        (x1, y1), (x2, y2) = at(low, low * factor), at(high, high * factor)
        lines.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#555555"{dash}/>')
    return lines


def legend() -> list[str]:
    """Colours, shapes and the figures of both tables."""
    x, y = LEFT + SIDE + 24, TOP + 10
    lines = []
    for task, colour in COLOURS.items():
        lines.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{colour}"/>')
        lines.append(f'<text x="{x + 14}" y="{y}">{task.replace("_", " ")}</text>')
        y += 22
    y += 10
    for table, text in zip(TABLES, ("dots: at hand", "rings: held out"), strict=True):
        found = score_of(table)
        lines.append(f'<text x="{x}" y="{y}" font-weight="bold">{text}</text>')
        for name in (
            f"{found['scored']} measurements",
            f"median error {found['median_abs_error']:.1%}",
            f"90 % within {found['p90_abs_error']:.1%}",
        ):
            y += 20
            lines.append(f'<text x="{x}" y="{y}">{name}</text>')
        y += 34
    lines.append(f'<text x="{x}" y="{y}">dashed: 10 % off</text>')
    return lines


# ---------------------------------------------------------------- the tables


def memory_page(text: str) -> str:
    """The text of a hand-written page with its tables made again."""
    made = {
        "scores": _scores, "numbers": _numbers, "worst": _worst, "unseen": _unseen, "missed": _missed,
        "sharded": _sharded,
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{made[match['name']]()}\n{match[4]}"

    return BLOCK.sub(fill, text)


def _scores() -> str:
    head = "| rows | how many | median error | 90 % within | bias | above the range |\n|---|--:|--:|--:|--:|--:|"
    lines = [head]
    for table, title in zip(TABLES, ("all at hand", "all held out"), strict=True):
        found = score_of(table)
        lines.append(_line(title, found))
        lines += [_line(f"{title[4:]}: {task.replace('_', ' ')}", each) for task, each in found["by_task"].items()]
    return "\n".join(lines)


def _unseen() -> str:
    head = "| rows | how many | median error | 90 % within | bias | above the range |\n|---|--:|--:|--:|--:|--:|"
    found = score_of(UNSEEN)
    lines = [head, _line("all", found)]
    for group in ("by_task", "by_engine"):
        lines += [_line(name.replace("_", " "), each) for name, each in found[group].items()]
    return "\n".join(lines)


def _sharded() -> str:
    head = "| row | layout | measured, GiB | estimated, GiB | high end, GiB | error |\n|---|---|--:|--:|--:|--:|"
    rows = {row.text("id"): row for row in read_rows(GOLDEN / SHARDED)}
    lines = [_sharded_line(each, rows[each.id]) for each in points(SHARDED)]
    found = score_of(SHARDED)
    said = {
        "median": "median_abs_error", "90 % within": "p90_abs_error", "bias": "bias",
        "above the range": "share_above_high", "too low by over 10 %": "share_under_10",
    }  # fmt: skip
    last = "\n" + ", ".join(f"{name} {found[key]:.1%}" for name, key in said.items()).capitalize() + "."
    return "\n".join([head, *lines, last])


def _sharded_line(each: Scored, row: Row) -> str:
    sizes = (each.measured, each.predicted.likely, each.predicted.high)
    shown = " | ".join(f"{size / GIB:.2f}" for size in sizes)
    kept = {"none": "nothing recomputed", "full": "full recomputation", "selective": "selective"}[row.text("grad_ckpt")]
    how = "compiled" if "torch.compile" in row.text("notes") else "eager"
    tokens = f"{row.text('norm_batch')} x {row.text('norm_seq_len')}"
    layout = f"{row.text('model')}, {row.text('parallelism')[:-8].strip()}, {tokens}, {kept}, {how}"
    return (
        f"| {each.id} | {row.text('framework').partition('(')[2].strip(')')}: {layout} | {shown} | {each.error:+.1%} |"
    )


MISSED = 0.10


def _missed() -> str:
    """Rows whose estimate is too low by more than this, with what the range says."""
    head = (
        "| row | source | engine | measured, GiB | estimated, GiB | high end, GiB | error |\n"
        "|---|---|---|--:|--:|--:|--:|"
    )
    low = [each for each in points(UNSEEN) if each.error < -MISSED]
    return "\n".join([head, *(_missed_line(each) for each in sorted(low, key=lambda each: each.id))])


def _missed_line(each: Scored) -> str:
    sizes = (each.measured, each.predicted.likely, each.predicted.high)
    shown = " | ".join(f"{size / GIB:.2f}" for size in sizes)
    return f"| {each.id} | {each.source.partition('@')[0]} | {each.engine} | {shown} | {each.error:+.1%} |"


def _line(title: str, each: dict[str, Any]) -> str:
    cells = [f"{each[key]:.1%}" for key in ("median_abs_error", "p90_abs_error", "bias", "share_above_high")]
    return f"| {title} | {each['scored']} | {' | '.join(cells)} |"


def _numbers() -> str:
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        rows = [f"| `{r['id']}` | {r['value']} | {r['mechanism']} | {r['evidence']} |" for r in csv.DictReader(lines)]
    return "\n".join(["| number | value | what it stands for | evidence |", "|---|--:|---|---|", *rows])


def _worst() -> str:
    rows = [
        f"| {each['id']} | {each['task'].replace('_', ' ')} | {each['engine']} | {each['measured_gib']:.2f} | "
        f"{each['predicted_gib'][1]:.2f} | {each['error']:+.1%} |"
        for each in score_of(TABLES[0])["worst"][:10]
    ]
    head = "| row | task | engine | measured, GiB | estimated, GiB | error |\n|---|---|---|--:|--:|--:|"
    return "\n".join([head, *rows])


if __name__ == "__main__":
    print(memory_picture())
