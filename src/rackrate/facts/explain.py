"""Why a number is what it is: every row that says something of it, which one counts, and by which step of the rule.

The steps are those of ``rows``, ``overlay`` and ``billing``: this module only
tells which one decided. A row that counts is told apart from the best of the
others, a row that does not from the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from rackrate.facts import rows
from rackrate.facts.access import AccessFact
from rackrate.facts.billing import BillingRule, is_in_force, rank_of
from rackrate.facts.hosted import HostedPrice
from rackrate.facts.own_rows import is_own
from rackrate.facts.validate_rows import Row


class Step(StrEnum):
    """What decided between two rows."""

    ONLY = "only"
    CONDITION = "condition"
    OWN = "own"
    KIND = "kind"
    NEWEST = "newest"
    ORDER = "order"
    RECORD = "record"
    RULED = "ruled"
    NOT_IN_FORCE = "not_in_force"
    EFFECTIVE = "effective"
    CONFIDENCE = "confidence"
    DEAREST = "dearest"


class Said(NamedTuple):
    """One source's word on one quantity; ``used`` says whether it counts, ``step`` why or why not."""

    quantity: str
    value: str
    unit: str
    condition: str
    kind: str
    source: str
    seen_at: str
    used: bool
    step: Step
    note: str = ""

    @property
    def own(self) -> bool:
        """Whether it is the user's."""
        return is_own(self.source)


class LayeredRow(NamedTuple):
    """A row of a file and its folder's place in the order; bundled rows lie under all folders."""

    layer: int
    cells: Row


BUNDLED = 1_000_000
"""The layer of bundled rows."""


# ---------------------------------------------------------------- whole records

_NO_NUMBERS = frozenset({"id", "aliases", "source", "seen_at", "notes", "params_check", "resells", "recalled"})
RECALLED = "recalled: no page was seen that says so"


def records(found: Sequence[LayeredRow]) -> Iterator[Said]:
    """The cells of rows that describe one thing as a whole; the row of the first layer counts."""
    ordered = sorted(found, key=lambda row: row.layer)
    for number, row in enumerate(ordered):
        step = Step.ONLY if len(ordered) == 1 else Step.RECORD
        recalled = row.cells.get("recalled", "").split("|")
        for column, cell in row.cells.items():
            if cell and column in recalled:
                yield Said(column, cell, "", "", "assumed", RECALLED, "", not number, step)
            elif cell and column not in _NO_NUMBERS:
                said = (row.cells.get("source", ""), row.cells.get("seen_at", ""), not number, step)
                yield Said(column, cell, "", "", "", *said)


def hosted(prices: Sequence[HostedPrice], match: str, step: Step, *, used: bool) -> Iterator[Said]:
    """What a million tokens cost at an API, in and out, under each length of prompt and at each time."""
    for price in prices:
        hours = "at other hours" if len(prices) > 1 else ""
        if price.hours_utc is not None:
            hours = f"{_clock(price.hours_utc[0])} to {_clock(price.hours_utc[1])} UTC"
        for name, tiers in (("input", price.input_per_million), ("output", price.output_per_million)):
            for above, amount in ((0, tiers.base), *tiers.steps):
                length = f"prompt over {above:,} tokens" if above else ""
                where = ", ".join(filter(None, (f"{price.model} ({match})", price.processing, hours, length)))
                yield Said(
                    quantity=f"hosted {name} at {price.provider}",
                    value=f"{amount.normalize():f}",
                    unit=f"{price.currency}/million tokens",
                    condition=where,
                    kind="",
                    source=price.source,
                    seen_at=price.seen_at.isoformat(),
                    used=used,
                    step=step,
                )


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def document(found: Sequence[tuple[bool, Mapping[str, object]]]) -> Iterator[Said]:
    """The keys of documents that describe one engine, the own one (True) first; each table of keys has its source."""
    for number, (own, content) in enumerate(found):
        step = Step.ONLY if len(found) == 1 else Step.RECORD
        seen_at = str(content.get("seen_at", ""))
        for key, value, source in _flat(content):
            named = f"own: {source}" if own else source
            yield Said(key, value, "", "", "", named, seen_at, not number, step)


def _flat(content: Mapping[str, object], inherited: str = "", prefix: str = "") -> Iterator[tuple[str, str, str]]:
    source = str(content.get("source", inherited))
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, source, f"{prefix}{key}.")
        elif key not in _NO_NUMBERS:
            yield f"{prefix}{key}", _text(value), source


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


# ---------------------------------------------------------------- numbers of a card

_FACT_STEPS = (Step.CONDITION, Step.OWN, Step.KIND, Step.NEWEST, Step.ORDER)


def numbers(found: Sequence[LayeredRow], ruled: Sequence[str] | None) -> Iterator[Said]:
    """All rows of accelerator_facts.csv on one card; ``ruled`` is the memory total where no driver's is known."""
    by_quantity: dict[str, list[Ranked]] = {}
    for order, (layer, cells) in enumerate(found):
        condition, kind, newest = rows.rank([cells[column] for column in rows.FACT_COLUMNS])
        rank = (condition, layer, kind, newest, order)
        by_quantity.setdefault(rows.QUANTITIES[cells["quantity"]][1], []).append((rank, cells))
    for group in by_quantity.values():
        group.sort(key=lambda pair: pair[0])
        for number, step in enumerate(_steps([rank for rank, _ in group], _FACT_STEPS)):
            yield _number(group[number][1], step, used=not number)
    if ruled is not None:
        cells = dict(zip(rows.FACT_COLUMNS, ruled, strict=True))
        yield _number(cells, Step.RULED, used=True)


def _number(cells: Row, step: Step, *, used: bool) -> Said:
    return Said(
        quantity=cells["quantity"],
        value=cells["value"],
        unit=cells["unit"],
        condition=cells["condition"],
        kind=cells["kind"],
        source=cells["source"],
        seen_at=cells["seen_at"],
        used=used,
        step=step,
        note=cells["note"],
    )


Rank = tuple[object, ...]
Ranked = tuple[Rank, Row]


def _steps(ranks: Sequence[Rank], steps: Sequence[Step]) -> Iterator[Step]:
    """For each rank, the best first, the step at which it and the best (for the best: and the second) part."""
    if len(ranks) == 1:
        yield Step.ONLY
        return
    for number, rank in enumerate(ranks):
        other = ranks[0] if number else ranks[1]
        yield next(step for step, mine, its in zip(steps, rank, other, strict=True) if mine != its)


# ---------------------------------------------------------------- billing rules

_RULE_STEPS = (Step.OWN, Step.EFFECTIVE, Step.CONFIDENCE, Step.DEAREST, Step.ORDER)


def rules(found: Iterable[BillingRule], at: date) -> Iterator[Said]:
    """All rules of one provider by key and state; of those in force at ``at`` one counts."""
    groups: dict[tuple[str, str], list[BillingRule]] = {}
    for rule in found:
        groups.setdefault((rule.key, rule.state), []).append(rule)
    for group in groups.values():
        in_force = [rule for rule in group if is_in_force(rule, at)]
        ranked = [((*rank_of(rule), -order), rule) for order, rule in enumerate(in_force)]
        ranked.sort(key=lambda pair: pair[0], reverse=True)
        for number, step in enumerate(_steps([rank for rank, _ in ranked], _RULE_STEPS)) if ranked else ():
            yield _rule(ranked[number][1], step, used=not number)
        yield from (_rule(rule, Step.NOT_IN_FORCE, used=False) for rule in group if rule not in in_force)


def access(found: Iterable[AccessFact]) -> Iterator[Said]:
    """What a provider asks of a renter: each fact holds under its own condition."""
    for fact in found:
        said = (fact.condition, f"{fact.confidence} confidence", fact.source, fact.seen_at.isoformat())
        yield Said(fact.key, fact.value, fact.unit, *said, used=True, step=Step.ONLY)


def _rule(rule: BillingRule, step: Step, *, used: bool) -> Said:
    since = f"from {rule.effective_from}" if rule.effective_from else ""
    return Said(
        quantity=rule.key,
        value=rule.value,
        unit=rule.unit,
        condition=", ".join(filter(None, (rule.state, since))),
        kind=f"{rule.confidence} confidence",
        source=rule.source,
        seen_at=rule.seen_at.isoformat(),
        used=used,
        step=step,
    )
