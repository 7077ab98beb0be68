"""Where a program is: its phase, and the module whose forward or backward pass runs."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from rackrate.memory.estimate_types import Phase

_TORCH = ("/torch/", "/rackrate/memory/simulation/", "/rackrate/app/", "/importlib/", "/contextlib.py")
_PYTHON = f"/python{sys.version_info.major}.{sys.version_info.minor}/"
_LIBRARIES = (*_TORCH, "/site-packages/", "/dist-packages/", _PYTHON)


class Place(NamedTuple):
    """Where an operation ran; ``again``: in a forward pass that is repeated for the backward pass."""

    phase: Phase
    operation: str
    module: str
    step: int
    again: bool


class _Mark(NamedTuple):
    """From this number of autograd nodes on, a module's forward pass runs."""

    module: str
    phase: Phase


def in_backward() -> bool:
    """Whether autograd's engine runs."""
    return bool(torch._C._current_graph_task_id() != -1)


class Trace:
    """Follows modules and phases through forward, backward and step.

    Autograd numbers its nodes in the order in which they are made, so the
    number of the node that runs backward says which module made it.
    """

    def __init__(self, *, of_user: bool) -> None:
        self.step = 0
        self.roots: list[nn.Module] = []
        self.values: dict[str, None] = {}
        self._of_user = of_user
        self._phase = Phase.LOAD
        self._stack: list[str] = []
        self._names: dict[int, str] = {}
        self._numbers: list[int] = [0]
        self._marks: list[_Mark] = [_Mark("", Phase.FORWARD)]

    # ------------------------------------------------------------ what others ask

    def place(self, operation: str) -> Place:
        """Where the program is now."""
        module, phase, again = self._stack[-1] if self._stack else "", self._phase, False
        if in_backward():
            again = torch.is_grad_enabled()
            phase = Phase.BACKWARD
            if not again:
                mark = self._mark_of_node()
                module = mark.module
                phase = Phase.LOSS if mark.phase is Phase.LOSS else Phase.BACKWARD
        return Place(phase, operation, module, self.step, again)

    def line(self) -> str:
        """The line of the user's program that runs, as ``file:line``; empty without one."""
        return _line_outside(_LIBRARIES, sys._getframe(1)) if self._of_user else ""

    def value_read(self) -> None:
        """Note that the line which runs read a value off the card."""
        here = sys._getframe(1)
        own = _line_outside(_LIBRARIES, here) if self._of_user else ""
        self.values.setdefault(own or _line_outside(_TORCH, here))

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """What runs inside is ``phase``."""
        before, self._phase = self._phase, phase
        self._mark()
        try:
            yield
        finally:
            self._phase = before
            self._mark()

    # ------------------------------------------------------------ what modules tell

    def enter(self, module: nn.Module, _args: Any) -> None:
        """A module's forward pass begins."""
        if id(module) not in self._names:
            self._learn(module)
        self._stack.append(self._names[id(module)])
        self._mark()

    def leave(self, module: nn.Module, _args: Any, _out: Any) -> None:
        """A module's forward pass ends, however it does."""
        name = self._names.get(id(module))
        while self._stack and self._stack.pop() != name:
            pass
        self._mark()

    def restart(self) -> None:
        """A new step begins: what was left open by an early end is closed, and old nodes are forgotten."""
        self._stack.clear()
        self._numbers, self._marks = [0], [_Mark("", Phase.FORWARD)]
        self._mark()

    def _learn(self, module: nn.Module) -> None:
        """Names for a module and all within it, which are its paths from the outermost one that was called."""
        if not self._stack:
            self.roots.append(module)
        outer = f"{self._stack[-1]}." if self._stack and self._stack[-1] else ""
        own = "" if not self._stack else f"{outer}{type(module).__name__}"
        for name, part in module.named_modules():
            self._names.setdefault(id(part), ".".join(filter(None, (own, name))))

    def _mark(self) -> None:
        number = torch._C._autograd._get_sequence_nr()
        mark = _Mark(self._stack[-1] if self._stack else "", self._phase)
        if self._numbers[-1] == number:
            self._marks[-1] = mark
        else:
            self._numbers.append(number)
            self._marks.append(mark)

    def _mark_of_node(self) -> _Mark:
        node = torch._C._current_autograd_node()
        if node is None:
            return self._marks[-1]
        return self._marks[bisect_right(self._numbers, node._sequence_nr()) - 1]


def _line_outside(folders: tuple[str, ...], frame: FrameType | None) -> str:
    """The innermost line of a file that is in none of these folders, as ``file:line``."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<") and not any(folder in name for folder in folders):
            return f"{PurePath(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
