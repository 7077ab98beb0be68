"""One table of an engine's TOML document, with typed reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from rackrate.evidence import Range


class Section:
    """One table of a document: typed reads that name the key when it is missing or of another type."""

    def __init__(self, values: Mapping[str, object], where: str, known: Iterable[str]) -> None:
        self._values = values
        self.where = where
        for key in values:
            if key not in known:
                raise ValueError(f"{where}.{key}: unknown key; known: {', '.join(sorted(known))}")

    def _of(self, key: str, *types: type) -> object:
        value = self._values.get(key)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            wanted = " or ".join(t.__name__ for t in types)
            raise ValueError(f"{self.where}.{key}: {value!r} is not {wanted}")
        return value

    def text(self, key: str) -> str:
        """A string, or a date as its text."""
        return str(self._of(key, str, date))

    def whole(self, key: str) -> int:
        """A whole number."""
        return int(str(self._of(key, int)))

    def number(self, key: str) -> float:
        """A number."""
        return float(str(self._of(key, int, float)))

    def flag(self, key: str) -> bool:
        """A boolean."""
        return self._of(key, bool) is True

    def names(self, key: str) -> frozenset[str]:
        """A list of strings."""
        return frozenset(str(name) for name in self.items(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings in its order, empty where it is not said."""
        return tuple(str(name) for name in self.items(key)) if self.has(key) else ()

    def names_or_none(self, key: str) -> frozenset[str]:
        """A list of strings, empty where it is not said."""
        return self.names(key) if self.has(key) else frozenset()

    def span(self, key: str) -> Range:
        """A list of low, likely and high."""
        found = self.items(key)
        try:
            low, likely, high = (float(str(value)) for value in found)
            return Range(low, likely, high)
        except ValueError:
            raise ValueError(f"{self.where}.{key}: {found} is not three rising numbers") from None

    def span_or(self, key: str, default: Range) -> Range:
        """A list of low, likely and high, or ``default`` where it is not said."""
        return self.span(key) if self.has(key) else default

    def items(self, key: str) -> list[object]:
        """A list of anything."""
        value = self._of(key, list)
        return list(value) if isinstance(value, list) else []

    def wholes(self, key: str) -> list[int]:
        """A list of whole numbers."""
        found = self.items(key)
        if any(type(value) is not int for value in found):
            raise ValueError(f"{self.where}.{key}: {found} is not a list of whole numbers")
        return [int(str(value)) for value in found]

    def text_or(self, key: str, default: str) -> str:
        """A string, or ``default`` where it is not said."""
        return self.text(key) if self.has(key) else default

    def number_or(self, key: str, default: float) -> float:
        """A number, or ``default`` where it is not said."""
        return self.number(key) if self.has(key) else default

    def flag_or(self, key: str, *, default: bool = False) -> bool:
        """A boolean, or ``default`` where it is not said."""
        return self.flag(key) if self.has(key) else default

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._values

    def table(self, key: str) -> dict[str, object]:
        """A table as it reads."""
        value = self._of(key, dict)
        return value if isinstance(value, dict) else {}

    def sections(self, key: str, known: Iterable[str]) -> list[Section]:
        """A list of tables; empty where it is not said."""
        found = self.items(key) if self.has(key) else []
        parts = [value if isinstance(value, dict) else {} for value in found]
        return [Section(values, f"{self.where}.{key}[{number}]", known) for number, values in enumerate(parts)]

    def section(self, key: str, known: Iterable[str]) -> Section:
        """A table below this one."""
        return Section(self.table(key), f"{self.where}.{key}", known)
