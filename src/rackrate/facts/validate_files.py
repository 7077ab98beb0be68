"""Faults that no row has by itself: rows that must agree with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rackrate.facts.validate_rows import Row
from rackrate.problems import Code, Finding


def faults(tables: Mapping[str, Sequence[Row]], engines: Mapping[str, Mapping[str, object]]) -> Iterator[Finding]:
    """What is wrong between the rows of one file, and between engine files."""
    yield from _one_day(tables.get("exchange_rates.csv", ()))
    yield from _last_fits_all(tables.get("memory_rules.csv", ()))
    yield from same_ids([(name, document.get("id")) for name, document in engines.items()])


def _one_day(rates: Sequence[Row]) -> Iterator[Finding]:
    """Bundled rates are of one day and one base, or a conversion would mix them."""
    for line, row in enumerate(rates, start=2):
        for column in ("base", "on"):
            first = rates[0].get(column, "")
            if row.get(column, "") != first:
                place = f"exchange_rates.csv:{line} {column}"
                expected = f"{first}, as in the first row"
                yield _conflict(place, row.get(column, ""), expected, "take all rates from one publication")


def _last_fits_all(rules: Sequence[Row]) -> Iterator[Finding]:
    limits = ("vendor", "memory_type", "ecc_default", "architectures")
    if rules and any(rules[-1].get(column) for column in limits):
        place = f"memory_rules.csv:{len(rules) + 1} vendor"
        expected = f"no limit in {', '.join(limits)}"
        yield _conflict(place, rules[-1].get("id", ""), expected, "let the last rule fit every card")


def same_ids(found: Sequence[tuple[str, object]]) -> Iterator[Finding]:
    """Engine files, by name and id, that say the id of an earlier one."""
    first: dict[object, str] = {}
    for name, said in found:
        if said is not None and first.setdefault(str(said), name) != name:
            yield Finding(
                code=Code.DUPLICATE,
                subject=f"{name} id",
                observed=str(said),
                expected=f"another id than that of {first[str(said)]}",
                action="give each engine an id of its own",
            )


def _conflict(subject: str, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=Code.CONFLICT, subject=subject, observed=observed, expected=expected, action=action)
