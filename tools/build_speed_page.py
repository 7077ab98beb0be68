"""Make ``docs/images/speed.svg`` and the tables of ``docs/speed*.md``: estimates beside published measurements.

``tools/build_docs.py`` writes them from the tables in ``tests/golden``.
"""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

from build_memory_page import BLOCK, FONT, GOLDEN
from scoring import speed, speed_neighbours
from scoring.cells import Row, read_rows
from scoring.memory_rows import NotScored
from scoring.speed import Scored, group_of
from scoring.speed_rows import INFERENCE

from rackrate.facts.book import FactBook

TABLES = ("speed-measured.csv", "speed-measured-2.csv", "speed-measured-3.csv")
HELD_OUT = "speed-held-out.csv"
NUMBERS = Path(__file__).with_name("speed_numbers.csv")

WIDTH, HEIGHT, LEFT, TOP, WIDE, HIGH = 800, 460, 70, 30, 490, 370
SLOWEST, FASTEST = 3.0, 200_000.0
MOST = 4.0
"""The picture ends where an estimate is four times or a quarter of the measurement."""

COLOURS = {"decode": "#0072b2", "decode-eager": "#009e73", "prefill": "#d55e00", "serve": "#cc79a7"}
"""Colours that people with colour blindness can tell apart (Okabe and Ito)."""

NAMES = {
    "decode": "decode, optimised engines", "decode-eager": "decode, eager", "prefill": "prefill", "serve": "serving",
}  # fmt: skip


@cache
def book() -> FactBook:
    """The bundled facts."""
    from score import book_with

    return book_with(None)


@cache
def rows() -> tuple[Row, ...]:
    """The rows of inference."""
    every = (row for table in TABLES for row in read_rows(GOLDEN / table))
    return tuple(row for row in every if row.text("norm_task") in INFERENCE)


@cache
def score_of() -> dict[str, Any]:
    """The score of all rows."""
    return speed.score(rows(), book())


def points() -> list[Scored]:
    """The rows that can be scored, with their estimates."""
    found = []
    for row in rows():
        try:
            found.append(speed.scored(row, book()))
        except NotScored:
            continue
    return found


# ---------------------------------------------------------------- the picture


def speed_picture() -> str:
    """Estimate over measurement against the measurement, both logarithmic."""
    lines = [*axes(), *map(mark, points()), *legend()]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}" font-size="13">'
    )
    title = "<title>Speed of inference: estimates beside published measurements</title>"
    return "\n".join([head, title, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *lines, "</svg>", ""])


def at(measured: float, ratio: float) -> tuple[float, float]:
    """The point of a measurement in tokens a second and the ratio of its estimate to it."""
    along = math.log(measured / SLOWEST) / math.log(FASTEST / SLOWEST)
    up = math.log(min(MOST, max(1 / MOST, ratio))) / math.log(MOST)
    return LEFT + WIDE * min(1.0, max(0.0, along)), TOP + HIGH * (1 - up) / 2


def mark(each: Scored) -> str:
    """One row: a dot."""
    x, y = at(each.measured, each.predicted.likely / each.measured)
    colour = COLOURS[group_of(each.task, each.engine)]
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="2" fill="{colour}" fill-opacity="0.6"/>'


def axes() -> list[str]:
    """Frame, ticks, titles, and lines at equality and 20 % either way."""
    lines = [f'<rect x="{LEFT}" y="{TOP}" width="{WIDE}" height="{HIGH}" fill="none" stroke="#888888"/>']
    for tick in (10, 100, 1000, 10_000, 100_000):
        x, _ = at(tick, 1.0)
        lines.append(f'<path d="M{x:.1f} {TOP}V{TOP + HIGH}" stroke="#e6e6e6"/>')
        lines.append(f'<text x="{x:.1f}" y="{TOP + HIGH + 18}" text-anchor="middle">{tick:,}</text>')
    for ratio in (0.25, 0.5, 1, 2, 4):
        _, y = at(10, ratio)
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for ratio, dash in ((1.0, ""), (1.2, ' stroke-dasharray="4 4"'), (1 / 1.2, ' stroke-dasharray="4 4"')):
        _, y = at(10, ratio)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + WIDE}" stroke="#555555"{dash}/>')
    middle = TOP + HIGH / 2
    words = "measured, tokens a second"
    lines.append(f'<text x="{LEFT + WIDE / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{words}</text>')
    turn = f'transform="rotate(-90 18 {middle:.0f})"'
    lines.append(f'<text x="18" y="{middle:.0f}" text-anchor="middle" {turn}>estimate over measurement</text>')
    return lines


def legend() -> list[str]:
    """Colours and figures of each group."""
    x, y = LEFT + WIDE + 20, TOP + 10
    lines = []
    for group, colour in COLOURS.items():
        found = score_of()["by_group"][group]
        lines.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{colour}"/>')
        lines.append(f'<text x="{x + 12}" y="{y}" font-weight="bold">{NAMES[group]}</text>')
        for text in (f"{found['scored']} rows", f"median error {found['median_abs_error']:.1%}"):
            y += 19
            lines.append(f'<text x="{x + 12}" y="{y}">{text}</text>')
        y += 32
    lines.append(f'<text x="{x}" y="{y}">dashed: 20 % off</text>')
    return lines


# ---------------------------------------------------------------- the tables


def speed_page(text: str) -> str:
    """The text of a hand-written page with its tables made again."""
    made = {
        "scores": _scores, "held": _held_out, "numbers": _numbers, "worst": _worst, "cards": _cards,
        "neighbours": _neighbours,
    }  # fmt: skip

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{made[match['name']]()}\n{match[4]}"

    return BLOCK.sub(fill, text)


_COLUMNS = ("", "rows", "median error", "90 % within", "median of sources", "in the 80 % range", "cards in order")
_HEAD = f"| {' | '.join(_COLUMNS)} |\n|---|{'--:|' * 6}"
_KEYS = ("median_abs_error", "p90_abs_error", "median_of_sources", "coverage_80", "pair_order")


def _line(title: str, each: dict[str, Any]) -> str:
    cells = ["" if each[key] is None else f"{each[key]:.1%}" for key in _KEYS]
    return f"| {title} | {each['scored']} | {' | '.join(cells)} |"


def _scores() -> str:
    found = score_of()
    return "\n".join(
        [_HEAD, *(_line(NAMES[name], each) for name, each in found["by_group"].items()), _line("all", found)]
    )


def _held_out() -> str:
    found = speed.score(read_rows(GOLDEN / HELD_OUT), book())
    sources = sorted(found["by_source"].items(), key=lambda pair: -pair[1]["scored"])  # type: ignore[attr-defined]
    lines = [_line(name, each) for name, each in sources if each["scored"] >= 3]  # noqa: PLR2004
    return "\n".join([_HEAD, *lines, _line("all", found)])


def _cards() -> str:
    found = score_of()["by_gpu"]
    return "\n".join([_HEAD, *(_line(f"`{name}`", each) for name, each in found.items() if each["scored"] >= 5)])  # noqa: PLR2004


def _numbers() -> str:
    with NUMBERS.open(encoding="utf-8", newline="") as lines:
        found = [_number(row) for row in csv.DictReader(lines)]
    head = "| number | value | what it stands for | rows | sources | median error left |\n|---|--:|---|--:|--:|--:|"
    return "\n".join([head, *found])


def _number(row: dict[str, str]) -> str:
    left = f"{float(row['residual']):.0%}" if row["residual"] not in {"", "None"} else ""
    return f"| `{row['id']}` | {row['value']} | {row['mechanism']} | {row['rows']} | {row['sources']} | {left} |"


def _worst() -> str:
    found = [
        f"| {each['id']} | {each['task']} | {each['engine']} | {each['gpu']} | {each['measured']:.4g} | "
        f"{each['predicted'][1]:.4g} | {each['error']:+.0%} |"
        for each in score_of()["worst"][:10]
    ]
    head = "| row | task | engine | card | measured | estimated | error |\n|---|---|---|---|--:|--:|--:|"
    return "\n".join([head, *found])


def _neighbours() -> str:
    """What one measurement is worth, for the same model and for others."""
    tables = sorted(GOLDEN.glob("speed-*.csv"))
    found = speed_neighbours.placed((row for table in tables for row in read_rows(table)), book())
    told = [("the same model", speed_neighbours.near(found)), ("others", speed_neighbours.elsewhere(found))]
    lines = [
        f"| {NAMES.get(each.group, each.group)}: {whose} | {each.rows} | "
        f"{' | '.join(f'{value:.1%}' for value in (*each.before, *each.after))} |"
        for whose, some in told
        for each in some
        if each.group != "diffusion"
    ]
    titles = ("", "rows", "median error", "80 % within", "90 % within", "median, corrected", "80 %", "90 %")
    return "\n".join([f"| {' | '.join(titles)} |", f"|---|{'--:|' * 7}", *lines])


if __name__ == "__main__":
    print(speed_picture())
