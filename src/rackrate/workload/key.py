"""A workload key: one thing that can be said about a workload, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rackrate.values import Value, field

Kind = Literal[
    "whole",
    "number",
    "count",
    "bytes",
    "hours",
    "choice",
    "text",
    "list",
    "whole_list",
    "shares",
    "money",
    "switch",
    "network",
]
Scope = Literal["any", "training", "adapters", "serving", "online", "offline", "job", "images", "pictures"]
"""For which workloads a key has a meaning; a job is training or offline inference."""

SECTIONS = ("training", "serving", "images", "parallel", "use", "limits")


class Key(Value, frozen=True, kw_only=True):
    """One thing that can be said about a workload.

    ``default`` is the constant taken when nothing is said, for the reason
    ``why`` (a code of ``reasons``); ``rule`` says in words how a default that
    is no constant is found. ``spellings`` are other ways to write a choice,
    ``known_as`` the key's names in other tools, ``stands_for`` the training,
    serving and images key that a shorthand sets (empty: none), ``names`` the kind of id it takes.
    """

    path: str
    kind: Kind
    help: str
    flag: str = ""
    flag_aliases: tuple[str, ...] = ()
    unit: str = ""
    low: float = 1
    high: float = 1
    choices: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = "any"
    default: int | float | str | bool | None = None
    why: str = ""
    rule: str = ""
    example: str = ""
    names: str = ""
    known_as: tuple[str, ...] = ()
    stands_for: tuple[str, str, str] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the flag takes no value."""
        return self.kind == "switch"

    @property
    def multiple(self) -> bool:
        """Whether several values can be given: the flag repeated, or commas."""
        return self.kind in {"list", "whole_list"}

    @property
    def metavar(self) -> str:
        """What the flag's value is called in a usage line."""
        if self.names:
            return self.names.upper()
        return {
            "choice": "CHOICE",
            "list": "NAME",
            "whole_list": "COUNT",
            "whole": "N",
            "number": "X",
            "shares": "X,X",
        }.get(self.kind, self.kind.upper())
