"""A mapping whose values are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

R = TypeVar("R")
V = TypeVar("V")


class LazyMapping(Mapping[str, V], Generic[R, V]):
    """``make(raw[key])`` for each key, made once; reading a fact book must not build what nobody asks for."""

    __slots__ = ("_made", "_make", "_raw")

    def __init__(self, raw: Mapping[str, R], make: Callable[[R], V]) -> None:
        self._raw = raw
        self._make = make
        self._made: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        if key not in self._made:
            self._made[key] = self._make(self._raw[key])
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)
