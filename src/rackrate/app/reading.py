"""Reading workload files: the one place where a user's TOML or JSON is opened; what is wrong is a finding."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rackrate.problems import Code, Finding, nearest
from rackrate.workload.keys import SECTIONS
from rackrate.workload.request import Request, request_from_flags, request_from_table
from rackrate.workload.values import shown

STDIN = "-"
_BYTES_AT_MOST = 2**20
_PATH_AT_MOST = 300
_Found = str | Finding
_HEADER = r"\s*\[\s*([A-Za-z0-9_-]+)\s*\]\s*(?:#.*)?"
_ASSIGNMENT = r"\s*([A-Za-z0-9_.-]+)\s*="
_JSON_KEY = r'"([A-Za-z0-9_-]+)"\s*:'
_TOML_PLACE = r"\(at (?:line (\d+), column (\d+)|end of document)\)"


def read_request(source: str | None, flags: Mapping[str, object]) -> Request | tuple[Finding, ...]:
    """What a workload file and flags say together; flags win.

    ``source`` is a path, ``-`` for standard input, or None for flags alone.
    ``flags`` maps key paths to values; None is a flag that was not given.
    """
    said = request_from_flags(flags)
    if source is None:
        return said
    file = read_file(source)
    return said.over(file) if isinstance(file, Request) else file


def read_file(source: str) -> Request | tuple[Finding, ...]:
    """What a workload file says, or why it cannot be read."""
    name = "standard input" if source == STDIN else _printable(source)
    text = _text(source, name)
    return (text,) if isinstance(text, Finding) else parse_text(text, name, json=_is_json(source, text))


def parse_text(text: str, name: str, *, json: bool) -> Request | tuple[Finding, ...]:
    """The request that a document makes; ``name`` is what to call it in findings."""
    table = _json_table(text, name) if json else _toml_table(text, name)
    if isinstance(table, Finding):
        return (table,)
    lines = _json_lines(text) if json else _toml_lines(text.splitlines())
    return request_from_table(table, source=name, lines=lines)


# ---------------------------------------------------------------- bytes to text


def _text(source: str, name: str) -> _Found:
    """The text of the file, at most 1 MiB of it."""
    try:
        if source == STDIN:
            raw = sys.stdin.buffer.read(_BYTES_AT_MOST + 1) if sys.stdin else b""  # None when the caller closed it
        else:
            with Path(source).open("rb") as file:
                raw = file.read(_BYTES_AT_MOST + 1)
    except (OSError, ValueError) as wrong:  # ValueError: a path with a NUL in it
        return _unreadable(name, _cause(wrong), _next_step(source))
    if len(raw) > _BYTES_AT_MOST:
        return _unreadable(name, "more than 1 MiB", "name a workload file: they are a few lines long")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        return _unreadable(name, f"byte {wrong.start} is not UTF-8", "save it as UTF-8 text, in TOML or JSON")
    if "\0" in text:
        return _unreadable(name, "a binary file", "name a text file, in TOML or JSON")
    return text


def _printable(path: str) -> str:
    """A path as it may be printed; an endless one by its end."""
    return "".join(c if c.isprintable() else "?" for c in path[-_PATH_AT_MOST:]) or "an empty path"


def _unreadable(name: str, observed: str, action: str) -> Finding:
    expected = "a workload file in TOML or JSON"
    return Finding(code=Code.FILE_UNREADABLE, subject=name, observed=observed, expected=expected, action=action)


def _cause(wrong: OSError | ValueError) -> str:
    return (wrong.strerror or "cannot be read") if isinstance(wrong, OSError) else "not a path"


def _next_step(source: str) -> str:
    """The nearest names beside a path that cannot be opened."""
    try:
        path = Path(source)
        beside = [entry.name for entry in path.parent.iterdir()] if not path.exists() else []
        close = [_printable(str(path.parent / name)) for name in nearest(path.name, beside)]
    except (OSError, ValueError):
        close = []
    return f"did you mean {' or '.join(close)}?" if close else "check the path, or describe the workload by flags"


def _is_json(source: str, text: str) -> bool:
    ending = Path(source).suffix.lower()
    return ending == ".json" or (ending != ".toml" and text.lstrip().startswith(("{", '"')))


# ---------------------------------------------------------------- text to a table


def _toml_table(text: str, name: str) -> Mapping[str, object] | Finding:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        place = re.search(_TOML_PLACE, str(wrong))
        where = f":{place[1]}:{place[2]}" if place and place[1] else ""
        return _bad_syntax(f"{name}{where}", re.sub(_TOML_PLACE, "", str(wrong)).strip(), "TOML")
    except (ValueError, RecursionError) as wrong:
        return _bad_syntax(name, _too_much(wrong), "TOML")


def _json_table(text: str, name: str) -> Mapping[str, object] | Finding:
    import json

    try:
        table = json.loads(text, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as wrong:
        return _bad_syntax(f"{name}:{wrong.lineno}:{wrong.colno}", wrong.msg, "JSON")
    except _DuplicateKeyError as wrong:
        return Finding(
            code=Code.DUPLICATE,
            subject=f"{name} {shown(str(wrong))}",
            observed="the key twice in one object",
            expected="each key once",
            action="leave one of them out",
        )
    except (ValueError, RecursionError) as wrong:
        return _bad_syntax(name, _too_much(wrong), "JSON")
    if isinstance(table, dict):
        return table
    return Finding(
        code=Code.BAD_VALUE,
        subject=name,
        observed=shown(table),
        expected="a table of keys",
        action='write an object: {"model": "...", "task": "..."}',
    )


class _DuplicateKeyError(Exception):
    """A JSON object names a key twice; Python's parser would silently keep the last."""


def _without_duplicates(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for name, value in pairs:
        if name in table:
            raise _DuplicateKeyError(name)
        table[name] = value
    return table


def _bad_syntax(subject: str, observed: str, language: str) -> Finding:
    return Finding(
        code=Code.BAD_SYNTAX,
        subject=subject,
        observed=shown(observed),
        expected=f"{language}, as in examples/",
        action=f"correct the {language} there; see docs/workload.md for the keys",
    )


def _too_much(wrong: ValueError | RecursionError) -> str:
    return "nested too deeply" if isinstance(wrong, RecursionError) else "a number with too many digits"


# ---------------------------------------------------------------- where a key stands


def _toml_lines(lines: Iterable[str]) -> dict[str, int]:
    """The line of each key path, as far as it is plain: a path met twice (inside a long text) is left out."""
    section, found, twice = "", dict[str, int](), set[str]()
    for number, line in enumerate(lines, start=1):
        if header := re.fullmatch(_HEADER, line):
            section = header[1]
            path = section
        elif assignment := re.match(_ASSIGNMENT, line):
            path = f"{section}.{assignment[1]}" if section else assignment[1]
        else:
            continue
        if path in found:
            twice.add(path)
        found[path] = number
    return {path: number for path, number in found.items() if path not in twice}


def _json_lines(text: str) -> dict[str, int]:
    """The line of each key whose name occurs once, under every path that it can have."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for name in re.findall(_JSON_KEY, line):
            found.setdefault(name, []).append(number)
    once = {name: numbers[0] for name, numbers in found.items() if len(numbers) == 1}
    return once | {f"{section}.{name}": n for section in SECTIONS for name, n in once.items()}
