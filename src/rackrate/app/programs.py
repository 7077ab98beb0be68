"""A program of the user's own, named as ``path/to/file.py:function``."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from rackrate.problems import Code, Finding, Refused, nearest

_PLACE = re.compile(r"(.+\.py)(?::([A-Za-z_]\w*))?")
_EXPECTED = "path/to/file.py:function"


def is_program(text: str) -> bool:
    """Whether ``text`` names a Python file, with or without a function of it."""
    return _PLACE.fullmatch(text.strip()) is not None


def program_at(text: str) -> Callable[[], object]:
    """A function that runs the file and then the function in it that ``text`` names.

    Raises:
        Refused: there is no such file, or no function is named.
    """
    match = _PLACE.fullmatch(text.strip())
    if match is None or not match[2]:
        action = "name the function that builds your training step, as in train.py:build"
        raise Refused([_wrong(Code.BAD_VALUE, text, _EXPECTED, action)])
    path = Path(match[1])
    if not path.is_file():
        raise Refused([_wrong(Code.FILE_UNREADABLE, match[1], "a Python file", "check the path")])
    name = match[2]

    def run() -> object:
        return _function(_loaded(path), name, path)()

    return run


@contextmanager
def beside(text: str) -> Iterator[None]:
    """What the program at ``text`` imports from its own folder is found."""
    folder = str(Path(text.strip().rpartition(".py")[0] + ".py").resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _loaded(path: Path) -> ModuleType:
    """The file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise Refused([_wrong(Code.FILE_UNREADABLE, str(path), "a Python file", "check the path")])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, name: str, path: Path) -> Callable[[], object]:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    known = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
    close = nearest(name, known)
    action = f"did you mean {' or '.join(close)}?" if close else "check the name of the function"
    raise Refused([_wrong(Code.UNKNOWN_NAME, f"{path.name}:{name}", "a function of that file", action)])


def _wrong(code: Code, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=code, subject="--simulate", observed=observed, expected=expected, action=action)
