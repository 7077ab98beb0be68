"""Faults that every fact file can have: columns, sources, duplicates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rackrate.problems import Code, Finding

Row = Mapping[str, str]


class Fault(NamedTuple):
    """What is wrong with one cell."""

    code: Code
    column: str
    observed: str
    expected: str
    action: str


# What makes two rows the same row, and the columns that a file must have beside those.
KEYS: Mapping[str, tuple[str, ...]] = {
    "accelerators.csv": ("id",),
    "accelerator_facts.csv": ("accelerator", "quantity", "condition", "source"),
    "baselines.csv": ("label", "quantity", "gpus", "value", "kind", "condition", "source"),
    "memory_rules.csv": ("id",),
    "mig_profiles.csv": ("label", "profile"),
    "models.csv": ("id",),
    "denoisers.csv": ("id",),
    "render_scores.csv": ("accelerator", "benchmark", "version", "backend", "source"),
    "pipelines.csv": ("id",),
    "image_tokens.csv": ("id",),
    "formats.csv": ("id",),
    "billing_rules.csv": ("provider", "rule_key", "value", "state", "effective_from", "source"),
    "providers.csv": ("id",),
    "exchange_rates.csv": ("currency",),
    "access.csv": ("provider", "key", "value", "condition"),
    "hosted_prices.csv": ("provider", "model", "processing", "effective_from", "hours_utc"),
    "claims.csv": ("id",),
}
SOURCES: Mapping[str, str] = {"claims.csv": "condition_or_source", "memory_rules.csv": "note"}
_PRIVATE = re.compile(r"(?:^|[^\w/-])(?:\.\./)*(?:shared|research)/")


def is_private(text: str) -> bool:
    """Whether a text names a folder that only its writer has: a source is a public place."""
    return _PRIVATE.search(text) is not None


def findings(name: str, table: Sequence[Row] | None, check: Callable[[Row], Iterator[Fault]]) -> Iterator[Finding]:
    """The faults of one file: those of every file, then those that ``check`` sees in a row."""
    if not table:
        yield Finding(code=Code.MISSING_VALUE, subject=name, expected="a table with rows", action="restore the file")
        return
    seen: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(table, start=2):
        for fault in (*_every_row(name, row), *_repeated(name, row, line, seen), *_checked(row, check)):
            yield Finding(
                code=fault.code,
                subject=f"{name}:{line} {fault.column}",
                observed=fault.observed,
                expected=fault.expected,
                action=fault.action,
            )


def _checked(row: Row, check: Callable[[Row], Iterator[Fault]]) -> Iterator[Fault]:
    try:
        yield from check(row)
    except KeyError as missing:
        column = str(missing.args[0])
        yield Fault(Code.UNKNOWN_KEY, column, ", ".join(row), f"a column {column}", "restore the header line")


def _every_row(name: str, row: Row) -> Iterator[Fault]:
    column = SOURCES.get(name, "source")
    if not (row.get(column) or "").strip():
        yield Fault(Code.NO_SOURCE, column, "", "a public source", "name the page, paper or repository file")
    for key, cell in row.items():
        if is_private(cell or ""):
            yield Fault(Code.NO_SOURCE, key, cell, "a public source", "name where the public can read it")


def _repeated(name: str, row: Row, line: int, seen: dict[tuple[str, ...], int]) -> Iterator[Fault]:
    key = tuple(row.get(column) or "" for column in KEYS[name])
    first = seen.setdefault(key, line)
    if first != line:
        yield Fault(Code.DUPLICATE, KEYS[name][0], ", ".join(key), f"a row unlike line {first}", "remove one of them")
