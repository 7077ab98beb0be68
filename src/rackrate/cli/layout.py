"""Text in columns for a terminal of a given width: wrapped text, pairs of name and text, tables.

Rich could draw these too, but importing and running its console costs a
seventh of the whole start; its measure of wide characters is what we take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import click
from rich.cells import cell_len

Part = str | Callable[[int], Iterable[str]]
"""Something on a screen: text to wrap, or a function from the width in columns to lines."""

BOLD: Mapping[str, Any] = MappingProxyType({"bold": True})
PLAIN: Mapping[str, Any] = MappingProxyType({})
ALERT: Mapping[str, Any] = MappingProxyType({"bold": True, "fg": "yellow"})

_GAP = "  "
_NARROWEST = 6
_UNITS = re.compile(r"(%|h|s|min|days|[KMGT]?i?B|[A-Z]{3}(/\w+)?|tokens)[.,;:)]*")
_BREAK_AFTER = "/-_|:,.+"


class Table(NamedTuple):
    """Rows of text under named columns: the same rows are printed as a table, CSV and Markdown.

    ``keys`` are stable names for machines, ``titles`` the words for people;
    ``right`` the indices of columns set flush right, ``whole`` of those that are pictures and never folded.
    """

    keys: tuple[str, ...]
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: a Chinese character takes two."""
    return len(text) if text.isascii() else cell_len(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text with spaces up to a width in columns."""
    gap = " " * (width - cells(text))
    return gap + text if right else text + gap


def lines_of(parts: Iterable[Part], width: int) -> Iterator[str]:
    """All parts as lines; no-break spaces have done their work by then."""
    for part in parts:
        for line in wrapped(part, width) if isinstance(part, str) else part(width):
            yield line.rstrip().replace("\xa0", " ")


# ---------------------------------------------------------------- text


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most ``width`` columns: broken at spaces, never between a number and its unit."""
    if cells(text) <= width:
        return [text]
    lines, line, taken = list[str](), "", 0
    for word in _broken(_words(text), width):
        size = cells(word)
        if line and taken + 1 + size > width:
            lines.append(line)
            line, taken = word, size
        else:
            line, taken = (f"{line} {word}", taken + 1 + size) if line else (word, size)
    return [*lines, line]


def _words(text: str) -> list[str]:
    """Words, numbers together with their units."""
    words: list[str] = []
    for word in text.split(" "):
        if words and words[-1][-1:].isdigit() and _UNITS.fullmatch(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _broken(words: Iterable[str], width: int) -> Iterator[str]:
    """Words, those wider than a line in pieces: after punctuation if possible."""
    for word in words:
        rest = word
        while cells(rest) > width:
            end = _fitting(rest, width)
            yield rest[:end]
            rest = rest[end:]
        yield rest


def _fitting(word: str, width: int) -> int:
    """How many characters of a word to put on a line."""
    end = next(n for n in range(len(word), 0, -1) if n == 1 or cells(word[:n]) <= width)
    mark = max(word.rfind(mark, 0, end) for mark in _BREAK_AFTER) + 1
    return mark if mark > end // 2 else end


# ---------------------------------------------------------------- pairs and tables


def pairs(rows: Sequence[tuple[str, str]], *, style: Mapping[str, Any] = BOLD) -> Part:
    """Names in a style and texts in two columns, the texts wrapped."""

    def draw(width: int) -> Iterator[str]:
        names = max((cells(name) for name, _ in rows), default=0)
        for name, text in rows:
            head = click.style(padded(name, names), **style) if style else padded(name, names)
            for number, line in enumerate(wrapped(text, max(width - names - len(_GAP), _NARROWEST))):
                yield f"{' ' * names if number else head}{_GAP}{line}".rstrip()

    return draw


def drawn(table: Table) -> Part:
    """A table with its titles over a rule; columns of text are folded when it is too wide."""

    def draw(width: int) -> Iterator[str]:
        natural = [max(map(cells, column)) for column in zip(table.titles, *table.rows, strict=True)]
        gap = _GAP if sum(natural) + len(_GAP) * (len(natural) - 1) <= width else " "
        sizes = _narrowed(natural, table.right | table.whole, width - len(gap) * (len(natural) - 1))
        flush = [index in table.right for index in range(len(sizes))]
        for line in _row(table.titles, sizes, flush, gap):
            yield click.style(line, **BOLD)
        yield "─" * min(sum(sizes) + len(gap) * (len(sizes) - 1), width)
        for row in table.rows:
            yield from _row(row, sizes, flush, gap)

    return draw


def _narrowed(sizes: list[int], kept: frozenset[int], room: int) -> list[int]:
    """Widths of columns that fit into ``room``: the widest columns of words give way, the first one last."""
    sizes, over = list(sizes), sum(sizes) - room
    for columns in ([index for index in range(1, len(sizes)) if index not in kept], [0]):
        while over > 0 and columns and max(sizes[index] for index in columns) > _NARROWEST:
            sizes[max(columns, key=sizes.__getitem__)] -= 1
            over -= 1
    return sizes


def _row(texts: Sequence[str], sizes: Sequence[int], flush: Sequence[bool], gap: str) -> Iterator[str]:
    """A row as lines: numbers whole, words folded."""
    folded = [[text] if right else wrapped(text, size) for text, size, right in zip(texts, sizes, flush, strict=True)]
    for number in range(max(map(len, folded))):
        line = [lines[number] if number < len(lines) else "" for lines in folded]
        row = zip(line, sizes, flush, strict=True)
        yield gap.join(padded(text, size, right=right) for text, size, right in row).rstrip()
