"""The workload flags, as faces see them: made from the one table of workload keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rackrate.workload.keys import Key, flag_keys


class Flag(NamedTuple):
    """One flag: its names, the parameter it fills, how it reads, and what completes it."""

    names: tuple[str, ...]
    parameter: str
    is_switch: bool
    multiple: bool
    metavar: str
    help: str
    completes: str
    choices: tuple[str, ...]


def flags() -> tuple[Flag, ...]:
    """All workload flags in the order of the key table."""
    return tuple(flag_of(key) for key in flag_keys())


def by_path(parameters: Mapping[str, object]) -> dict[str, object]:
    """Parameters of a command line by the path of the workload key that each stands for."""
    return {name.replace("__", "."): value for name, value in parameters.items()}


def flag_of(key: Key) -> Flag:
    """The flag of one key."""
    return Flag(
        names=(key.flag, *key.flag_aliases),
        parameter=key.path.replace(".", "__"),
        is_switch=key.is_switch,
        multiple=key.multiple,
        metavar=key.metavar,
        help=key.help,
        completes=key.names,
        choices=key.choices,
    )
