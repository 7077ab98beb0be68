"""Make ``docs/images/speed-training.svg``: estimates of training and images beside published measurements, by task.

``tools/build_docs.py`` writes it from the tables in ``tests/golden``. Each task has a panel of its own, in which
its rows stand from the most underrated to the most overrated, so that the middle of a panel is the median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from build_memory_page import FONT, GOLDEN
from build_speed_page import book
from scoring import speed
from scoring.cells import read_rows
from scoring.memory_rows import NotScored
from scoring.speed import Scored, figures

TABLES = ("speed-training.csv", "speed-diffusion.csv")
TASKS = {
    "pretrain": "pretraining", "full_finetune": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA",
    "diffusion": "images and video",
}  # fmt: skip
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours that people with colour blindness can tell apart (Okabe and Ito); one for each source, the rest grey."""

LEFT, TOP, HIGH, PANEL, GAP = 60, 30, 330, 150, 14
WIDTH, HEIGHT = LEFT + len(TASKS) * (PANEL + GAP) + 10, TOP + HIGH + 75
MOST = 3.0
"""The picture ends where an estimate is three times or a third of the measurement."""

_OTHERS = "#999999"


@cache
def scored() -> tuple[Scored, ...]:
    """The rows that can be scored, with their estimates."""
    found = []
    for table in TABLES:
        for row in read_rows(GOLDEN / table):
            try:
                found.append(speed.scored(row, book()))
            except NotScored:
                continue
    return tuple(found)


def training_picture() -> str:
    """Speed as estimated over speed as measured, a panel for each task."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}" font-size="12">'
    )
    title = "<title>Speed of training and of image models: estimates beside published measurements</title>"
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    panels = [line for place, task in enumerate(TASKS) for line in _panel(place, task)]
    return "\n".join([head, title, ground, *_scale(), *panels, "</svg>", ""])


def ratio(each: Scored) -> float:
    """The estimated speed over the measured one, whichever way the row counts."""
    found = each.predicted.likely / each.measured
    return 1 / found if each.slow else found


def _height(found: float) -> float:
    up = math.log(min(MOST, max(1 / MOST, found))) / math.log(MOST)
    return TOP + HIGH * (1 - up) / 2


def _scale() -> Iterator[str]:
    for tick in (1 / 3, 0.5, 1, 2, 3):
        yield f'<text x="{LEFT - 8}" y="{_height(tick) + 4:.1f}" text-anchor="end">{tick:.2g}</text>'
    middle = TOP + HIGH / 2
    turn = f'transform="rotate(-90 16 {middle:.0f})"'
    yield f'<text x="16" y="{middle:.0f}" text-anchor="middle" {turn}>estimated speed over measured speed</text>'


def _panel(place: int, task: str) -> Iterator[str]:
    """The rows of one task in order, its frame, name and figures."""
    left, rows = LEFT + place * (PANEL + GAP), sorted((s for s in scored() if s.task == task), key=ratio)
    yield f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{HIGH}" fill="none" stroke="#888888"/>'
    for at, dash in ((1.0, ""), (1.2, ' stroke-dasharray="4 4"'), (1 / 1.2, ' stroke-dasharray="4 4"')):
        yield f'<path d="M{left} {_height(at):.1f}h{PANEL}" stroke="#555555"{dash}/>'
    colours = dict(zip(_sources(rows), COLOURS, strict=False))
    for number, each in enumerate(rows):
        x = left + PANEL * (number + 0.5) / len(rows)
        colour = colours.get(each.source, _OTHERS)
        yield f'<circle cx="{x:.1f}" cy="{_height(ratio(each)):.1f}" r="2" fill="{colour}" fill-opacity="0.75"/>'
    found = figures(rows)
    yield f'<text x="{left}" y="{TOP - 10}" font-weight="bold">{TASKS[task]}</text>'
    sources = len({each.source for each in rows})
    counted = f"{found['scored']} rows, {sources} source{'s' if sources > 1 else ''}"
    yield f'<text x="{left}" y="{TOP + HIGH + 20}">{counted}</text>'
    yield f'<text x="{left}" y="{TOP + HIGH + 38}">median error {found["median_abs_error"]:.1%}</text>'
    yield f'<text x="{left}" y="{TOP + HIGH + 56}">90 % within {found["p90_abs_error"]:.0%}</text>'


def _sources(rows: list[Scored]) -> list[str]:
    """The sources of rows, those with the most rows first."""
    names = [each.source for each in rows]
    return sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))


if __name__ == "__main__":
    print(training_picture())
