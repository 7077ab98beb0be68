"""What tuning would change: the part of the screen of ``speed`` that gives advice in numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli.layout import Part, Table, drawn
from rackrate.cli.numbers import money
from rackrate.units import format_bytes, format_hours

if TYPE_CHECKING:
    from rackrate.app.wire.speed import AdviceDoc, CardSpeedDoc

_WHOLE_FROM = 100


def advice(card: CardSpeedDoc) -> Iterator[Part]:
    """A row for each setting that helps on the machine told above, the fastest first."""
    if not card.advice:
        return
    ends = card.advice[0].hours is not None
    titles = ("tuning", "per s", "times", *(("hours",) if ends else ()), "peak", *_cost_title(card.advice))
    rows = tuple(_row(each, ends=ends, priced=len(titles) > 4 + ends) for each in card.advice)
    yield drawn(Table(keys=titles, titles=titles, rows=rows, right=frozenset(range(1, len(titles)))))
    yield _legend(card.advice)
    yield ""


def _cost_title(found: tuple[AdviceDoc, ...]) -> tuple[str, ...]:
    currency = next((each.currency for each in found if each.currency), None)
    return () if currency is None else (f"cost {currency}",)


def _row(each: AdviceDoc, *, ends: bool, priced: bool) -> tuple[str, ...]:
    settings = ", ".join(f"{change.knob.rpartition('.')[2]} {change.after}" for change in each.changes)
    mark = " *" if each.changes_results else ""
    pace = each.pace.likely
    cells = [f"{each.mechanism.replace('_', ' ')}: {settings}{mark}"]
    cells += [f"{pace:,.0f}" if pace >= _WHOLE_FROM else f"{pace:.3g}", f"{each.speedup:.2f}"]
    if ends:
        cells.append(format_hours(each.hours.likely) if each.hours else "-")
    cells.append(format_bytes(each.peak_bytes.likely))
    if priced:
        cells.append(money(each.cost_after) if each.cost_after else "-")
    return tuple(cells)


def _legend(found: tuple[AdviceDoc, ...]) -> str:
    before = next((each for each in found if each.cost_before), None)
    text = "Each is the estimate made again with it; times: over the machine above; peak: of the fullest card."
    if before is not None and before.cost_before is not None:
        what = "the whole job" if before.hours else "a million tokens"
        text += f" Cost: {what} at the cheapest price on demand, now {money(before.cost_before)} {before.currency}."
    if any(each.changes_results for each in found):
        text += " *: may change results."
    return text
