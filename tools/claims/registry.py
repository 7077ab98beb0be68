"""The registry: for each claim the function that computes its live answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

Value = float | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A live answer: what to run to see it, what it says, and the values that it rests on, by name.

    Sizes among the values are in bytes, money in the currency of their name.
    """

    commands: tuple[str, ...]
    text: str
    values: Mapping[str, Value]

    def number(self, name: str) -> float:
        """A value that is a number."""
        value = self.values[name]
        if isinstance(value, str):
            raise TypeError(f"{name} is the text {value!r}")
        return float(value)


_FUNCTIONS: dict[str, Callable[[], Shown]] = {}


def shows(claim: str) -> Callable[[Callable[[], Shown]], Callable[[], Shown]]:
    """Mark a function as the one that answers ``claim``."""

    def register(function: Callable[[], Shown]) -> Callable[[], Shown]:
        if claim in _FUNCTIONS:
            raise ValueError(f"{claim} is answered twice")
        _FUNCTIONS[claim] = function
        return function

    return register


def known() -> tuple[str, ...]:
    """The claims that can be shown, in the order of their ids."""
    return tuple(sorted(_FUNCTIONS))


@cache
def answer(claim: str) -> Shown:
    """The live answer to one claim, computed once."""
    return _FUNCTIONS[claim]()


def answers() -> dict[str, Shown]:
    """The live answers to all claims that can be shown."""
    return {claim: answer(claim) for claim in known()}
