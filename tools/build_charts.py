"""Make the charts: plans by time and cost with their frontier, and where two cards cross over by cost per token.

``tools/build_docs.py`` writes them. Axes are logarithmic; no font and no script is fetched.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from build_memory_page import memory_picture
from build_picture import FONT
from build_speed_page import speed_picture
from build_training_page import training_picture
from claims.asking import plan, speed

from rackrate.app.wire.plan import FrontierDoc, PlanDocument

FRONTIER = "rackrate plan examples/lora-7b.toml --top 1000"
CROSSOVER = (
    "RACKRATE_FACTS=examples/two-quotes rackrate plan --model llama-2-13b --task inference --requests 100k "
    "--prompt-tokens 512 --output-tokens 3584 --provider 'first quote,second quote' --currency CNY --concurrency"
)
"""The command of the crossover but for the requests in flight."""
LOAD = (
    "rackrate speed --model llama-3-8b --gpu l4 --gpus 1 --requests-per-s 0.5 --first-token-ms 1000 --percentile 90 "
    "--length-spread 1"
)
_TIMES = (("first token", "first_token_s"), ("each token", "s_per_output_token"))
IN_FLIGHT = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
WIDTH, HEIGHT = 760, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 56, 50
_STEPS = (1, 2, 5)
_LINE = 14
_NAME = 190
_NAMED = "#8e2b20"


class Axis(NamedTuple):
    """A logarithmic axis: values from ``low`` to ``high`` between two places on the picture."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value lies."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> Iterator[float]:
        """1, 2, 5, 10 ... within the axis."""
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            yield from (step * 10.0**power for step in _STEPS if self.low <= step * 10.0**power <= self.high)


def frontier_picture() -> str:
    """The picture as SVG."""
    document = plan(FRONTIER)
    points = [(p.hours.likely, float(p.cost.likely)) for p in document.plans]
    best = sorted(document.frontier, key=lambda f: f.hours)
    hours, costs = zip(*points, *((f.hours, float(f.cost)) for f in best), strict=True)
    across = Axis(min(hours) / 1.2, max(hours) * 1.2, LEFT, WIDTH - RIGHT)
    up = Axis(min(costs) / 1.2, max(costs) * 1.2, HEIGHT - BOTTOM, TOP)
    return "\n".join(_lines(document, points, best, (across, up))) + "\n"


def _lines(
    document: PlanDocument, points: Sequence[tuple[float, float]], best: Sequence[FrontierDoc], axes: tuple[Axis, Axis]
) -> Iterator[str]:
    across, up = axes
    title = f"{len(points)} plans for {document.workload.model}: time against cost, as of {document.as_of}"
    yield from _head(f"$ {FRONTIER}", f"{title}. On the line: none is cheaper and faster.")
    yield from _grid(across, up, "hours until it is done (likely)", document.currency)
    for spent, cost in points:
        yield f'<circle cx="{across.at(spent)}" cy="{up.at(cost)}" r="2.5" fill="#7a8ba0" fill-opacity="0.6"/>'
    places = [(across.at(f.hours), up.at(float(f.cost))) for f in best]
    corners = " ".join(f"{x},{y}" for x, y in _stairs(places))
    yield f'<polyline points="{corners}" fill="none" stroke="#c0392b" stroke-width="1.5"/>'
    free = math.inf
    for (x, y), found in reversed(list(zip(places, best, strict=True))):
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="#c0392b"/>'
        if free - y >= _LINE:
            free = y
            yield _named(x, y, f"{found.gpus} x {found.accelerator.split('|')[0]}, {found.provider}")
    yield "</svg>"


def _head(bold: str, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="{html.escape(FONT)}" font-size="11" fill="#222">'
    )
    yield f"<title>{html.escape(title)}</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    yield _text(LEFT, 20, bold, style='font-weight="bold"')
    yield _text(LEFT, 38, title)


def _grid(across: Axis, up: Axis, below: str, above: str) -> Iterator[str]:
    for tick in across.ticks():
        x = across.at(tick)
        yield f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}" stroke="#e5e5e5"/>'
        yield _text(x, HEIGHT - BOTTOM + 16, f"{tick:g}", anchor="middle")
    for tick in up.ticks():
        y = up.at(tick)
        yield f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#e5e5e5"/>'
        yield _text(LEFT - 6, y + 4, f"{tick:g}", anchor="end")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, below, anchor="middle")
    yield _text(LEFT - 6, TOP - 4, above, anchor="end")


def _named(x: float, y: float, name: str) -> str:
    """The name of a point, over the line that goes on from it or, near the right edge, under it."""
    if x > WIDTH - _NAME:
        return _text(WIDTH - RIGHT, y + 1.3 * _LINE, name, anchor="end", style=f'fill="{_NAMED}"')
    return _text(x + 6, y - 6, name, style=f'fill="{_NAMED}"')


def _stairs(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The places joined as stairs: between two of them the dearer one is still the best for the time."""
    last = None
    for x, y in places:
        if last is not None:
            yield x, last
        yield x, y
        last = y


def _text(x: float, y: float, text: str, *, anchor: str = "start", style: str = 'fill="#222"') -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" {style}>{html.escape(text)}</text>'


# ---------------------------------------------------------------- crossover


def crossover_picture() -> str:
    """Cost of a million output tokens on two cards at two quotes, over the requests in flight, as SVG."""
    title, lines = _per_million()
    costs = [cost for points in lines.values() for _, cost in points]
    across = Axis(min(IN_FLIGHT) / 1.1, max(IN_FLIGHT) * 1.6, LEFT, WIDTH - RIGHT)
    up = Axis(min(costs) / 1.2, max(costs) * 1.2, HEIGHT - BOTTOM, TOP)
    return "\n".join(_curves(title, lines, (across, up))) + "\n"


def _per_million() -> tuple[str, dict[str, list[tuple[int, float]]]]:
    """What is compared, in words; requests in flight and cost per million tokens, by card."""
    lines: dict[str, list[tuple[int, float]]] = {}
    answers = {count: plan(f"{CROSSOVER} {count}") for count in IN_FLIGHT}
    for count, answer in answers.items():
        for found in answer.plans:
            cost = found.cost.per_million_tokens
            assert cost is not None
            lines.setdefault(found.accelerator, []).append((count, float(Decimal(cost))))
    first = answers[IN_FLIGHT[0]]
    work = first.workload
    quotes = (f"{p.product} at {Decimal(p.price_per_hour):g}" for p in first.plans)
    title = f"{work.model.rpartition('/')[2]}, {work.prompt_tokens} tokens in and {work.output_tokens} out: "
    return f"{title}{first.currency} a million output tokens, {' and '.join(quotes)} an hour", lines


def _curves(title: str, lines: dict[str, list[tuple[int, float]]], axes: tuple[Axis, Axis]) -> Iterator[str]:
    across, up = axes
    yield from _head("One stream or a full cache?", title)
    yield from _grid(across, up, "requests in flight", "cost")
    for (card, points), color in zip(sorted(lines.items()), ("#1f5fa8", _NAMED), strict=True):
        places = [(across.at(count), up.at(cost)) for count, cost in points]
        corners = " ".join(f"{x},{y}" for x, y in places)
        yield f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in places)
        yield _text(places[-1][0] + 8, places[-1][1] + 4, card, style=f'fill="{color}"')
    yield "</svg>"


# ---------------------------------------------------------------- latency over load


def load_picture() -> str:
    """Time to first token and per token of 50, 90 and 99 of 100 requests over the load, as SVG."""
    machine = speed(LOAD).cards[0].machines[0]
    found = machine.highest_load
    assert found is not None
    points = [point for point in found.curve if point.offered_requests_per_s]
    rates = [point.offered_requests_per_s or 0.0 for point in points]
    lines = {
        f"{name}, {share[1:]} of 100": [getattr(getattr(point, key), share).likely for point in points]
        for name, key in _TIMES
        for share in ("p50", "p90", "p99")
    }
    times = [value for line in lines.values() for value in line]
    across = Axis(min(rates) / 1.2, max(rates) * 4.2, LEFT, WIDTH - RIGHT)
    up = Axis(min(times) / 1.3, max(times) * 1.3, HEIGHT - BOTTOM, TOP)
    return "\n".join(_latencies(rates, lines, (across, up), found.max_first_token_s)) + "\n"


def _latencies(
    rates: Sequence[float], lines: dict[str, list[float]], axes: tuple[Axis, Axis], target: float | None
) -> Iterator[str]:
    across, up = axes
    yield from _head(f"$ {LOAD}", "Simulated: what 50, 90 and 99 of 100 requests take at most. Dashed: the target.")
    yield from _grid(across, up, "requests a second", "seconds")
    if target is not None:
        y, end = up.at(target), across.at(max(rates))
        yield f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#555" stroke-dasharray="5 4"/>'
    beside = _apart({name: up.at(values[-1]) for name, values in lines.items()})
    for place, (name, values) in enumerate(lines.items()):
        color = ("#1f5fa8", _NAMED)[place // 3]
        places = [(across.at(rate), up.at(value)) for rate, value in zip(rates, values, strict=True)]
        corners = " ".join(f"{x},{y}" for x, y in places)
        yield f'<polyline points="{corners}" fill="none" stroke="{color}" stroke-width="{1 + place % 3 / 2:g}"/>'
        yield _text(places[-1][0] + 8, beside[name] + 4, name, style=f'fill="{color}"')
    yield "</svg>"


def _apart(heights: dict[str, float]) -> dict[str, float]:
    """Heights at which names can be read: each at least a line below the one above it."""
    found: dict[str, float] = {}
    for name, y in sorted(heights.items(), key=lambda each: each[1]):
        found[name] = max([y, *(above + _LINE for above in list(found.values())[-1:])])
    return found


CHARTS: dict[str, Callable[[], str]] = {
    "docs/images/memory.svg": memory_picture,
    "docs/images/speed.svg": speed_picture,
    "docs/images/speed-training.svg": training_picture,
    "docs/images/frontier.svg": frontier_picture,
    "docs/images/crossover.svg": crossover_picture,
    "docs/images/load.svg": load_picture,
}
