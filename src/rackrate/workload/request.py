"""Requests: what was said about a workload, as raw values with the place where each was said."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.values import Value
from rackrate.workload.keys import KEYS, SECTIONS

_NO_LINES: Mapping[str, int] = {}


class Request(Value, frozen=True, kw_only=True):
    """Raw values by key path, and for each path its origin: ``file:line``, ``file``, a flag, or nothing.

    Paths that are no keys are kept: parsing names them.
    """

    values: Mapping[str, object]
    origins: Mapping[str, str]

    def origin(self, path: str) -> str:
        """Where ``path`` was said; empty when nowhere in particular."""
        return self.origins.get(path, "")

    def by_flag(self, path: str) -> bool:
        """Whether ``path`` was said by a flag, which outranks a file."""
        return self.origin(path).startswith("--")

    def over(self, other: Request) -> Request:
        """Both requests as one, in which this one wins."""
        return Request(values={**other.values, **self.values}, origins={**other.origins, **self.origins})


def request_from_table(
    table: Mapping[str, object], *, source: str = "", lines: Mapping[str, int] = _NO_LINES
) -> Request:
    """The request that a parsed TOML or JSON document makes.

    ``lines`` gives the line of a path where known. A value of null counts as
    not said. A table whose name is no section stays a value under that name,
    as does a dotted name: both are then named as unknown keys.
    """
    values: dict[str, object] = {}
    for name, value in table.items():
        if name in SECTIONS and isinstance(value, Mapping):
            values |= {f"{name}.{inner}": v for inner, v in value.items() if v is not None}
        elif value is not None:
            values[f'"{name}"' if "." in name else name] = value
    return Request(values=values, origins={path: _place(source, lines, path) for path in values})


def _place(source: str, lines: Mapping[str, int], path: str) -> str:
    line = lines.get(path, lines.get(path.partition(".")[0]))
    return f"{source}:{line}" if source and line else source


def request_from_flags(flags: Mapping[str, object]) -> Request:
    """The request that flags make, by key path; None and empty lists are flags that were not given."""
    values = {path: value for path, value in flags.items() if value is not None and value not in ((), [])}
    return Request(values=values, origins={path: _flag(path) for path in values})


def _flag(path: str) -> str:
    return (KEYS[path].flag or f"--{path}") if path in KEYS else f"--{path}"
