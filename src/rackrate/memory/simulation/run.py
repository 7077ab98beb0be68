"""The door: simulate a job of a transformers model, or a user's own program.

Imports torch, and transformers for a job; both come with the extra ``measure``.
"""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from rackrate.memory.simulation.records import Job, Simulation

Watch = Callable[[int, int], None]
"""Is told the step that runs and how many storages were allocated so far."""

STEPS = 2
"""An optimizer makes its states in the first step, so that the second starts with them."""

OPTIMIZERS = ("adamw", "adam", "adafactor", "sgd", "sgd-momentum")
"""Optimizers of a job that can be simulated: those of PyTorch."""

BLIND = (
    "what the caching allocator holds beyond the tensors (fragmentation, blocks larger than asked)",
    "the CUDA context and loaded kernels",
    "workspaces of cuBLAS, cuDNN and other kernels, and what they pad",
    "buffers of NCCL: one card is simulated",
    "kernels of bitsandbytes and other extensions, and what torch.compile fuses",
    "values: a step whose shapes depend on the data takes another course",
)
"""What a simulation cannot see."""


class ProgramFailedError(Exception):
    """The program raised; ``line`` is the innermost line of the user's own, as ``file:line``."""

    def __init__(self, wrong: BaseException, line: str) -> None:
        super().__init__(f"{type(wrong).__name__}: {wrong}")
        self.line = line
        self.needs_values = _needs_values(wrong)


def simulate_job(job: Job, watch: Watch) -> Simulation:
    """The peak of two training steps, or of prefill and decode, of a transformers model.

    Raises:
        ImportError: torch or transformers is not installed.
        ProgramFailedError: transformers cannot make or run the model.
    """
    with _quiet():
        from rackrate.memory.simulation.language_model import program_of
        from rackrate.memory.simulation.recorder import Recorder

        with _failing(of_user=False):
            return Recorder(watch, of_user=False).run(program_of(job), STEPS if job.trains else 1)


def simulate_program(build: Callable[[], object], watch: Watch) -> Simulation:
    """The peak of two steps of a user's program.

    ``build`` makes what the program needs and returns its step, a function
    without arguments, or a pair of a model and a function of the model.

    Raises:
        ImportError: torch is not installed.
        ProgramFailedError: the program raised.
    """
    with _quiet():
        from rackrate.memory.simulation.recorder import Recorder, step_of

        with _failing(of_user=True):
            return Recorder(watch, of_user=True).run(lambda _: step_of(build()), STEPS)


@contextmanager
def _quiet() -> Iterator[None]:
    """Libraries keep their remarks about a model without weights to themselves."""
    logger = logging.getLogger("transformers")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            logger.setLevel(logging.ERROR)
            yield
        finally:
            logger.setLevel(level)


@contextmanager
def _failing(*, of_user: bool) -> Iterator[None]:
    """What a program raises, with the line that it was on."""
    try:
        yield
    except (Exception, SystemExit) as wrong:
        raise ProgramFailedError(wrong, _line_of(wrong) if of_user else "") from wrong


def _line_of(wrong: BaseException) -> str:
    """The innermost line of an error that is in no library."""
    python = f"/python{sys.version_info.major}.{sys.version_info.minor}/"
    libraries = ("/site-packages/", "/dist-packages/", python, "/torch/", "/rackrate/", "<")
    lines = [
        f"{PurePath(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(wrong.__traceback__)
        if not any(part in frame.filename for part in libraries)
    ]
    return lines[-1] if lines else ""


_SIGNS = ("meta tensor", "Meta tensor", "register_meta", "fake impl or Meta kernel", "data-dependent", "aten::nonzero")


def _needs_values(wrong: BaseException) -> bool:
    """Whether an operation needed numbers, which tensors of a simulation do not have."""
    return isinstance(wrong, (NotImplementedError, RuntimeError)) and any(sign in str(wrong) for sign in _SIGNS)
