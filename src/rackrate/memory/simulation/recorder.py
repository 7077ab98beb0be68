"""The recorder: runs a program on a card that is not there, and says what it held."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as every_module
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from rackrate.memory.estimate_types import Phase
from rackrate.memory.simulation.autocast import Autocast
from rackrate.memory.simulation.kernels import Card, like_a_card
from rackrate.memory.simulation.ledger import DEVICE, Ledger, Piece
from rackrate.memory.simulation.records import Held, Kind, Simulation
from rackrate.memory.simulation.trace import Trace

Step = Callable[[], object]
Program = Callable[["Recorder"], Step]
"""Builds what it needs and returns one step of the program; a step is run several times."""

_LARGEST = 12


class Recorder:
    """Follows one program; the program may tell it more than it can see."""

    def __init__(self, watch: Callable[[int, int], None], *, of_user: bool) -> None:
        self.trace = Trace(of_user=of_user)
        self.autocast = Autocast()
        self.ledger = Ledger(self.trace, lambda count: watch(self.trace.step, count))
        self.heads: set[str] = set()
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        self._watched: set[int] = set()
        self._leaving: list[Callable[[], None]] = []

    # ------------------------------------------------------------ what a program may tell

    def adopt(self, model: nn.Module) -> None:
        """Take a model's weights as loaded straight onto the card, whatever making them here took."""
        self.ledger.adopt([*model.parameters(), *model.buffers()], Kind.WEIGHTS)

    def during(self, phase: Phase) -> Any:
        """What runs inside is ``phase``."""
        return self.trace.during(phase)

    # ------------------------------------------------------------ running

    def run(self, program: Program, steps: int) -> Simulation:
        """The peak over ``steps`` steps of ``program``."""
        with self._recording():
            with torch.device(DEVICE):
                step = program(self)
            for number in range(1, steps + 1):
                self.trace.step = number
                self.trace.restart()
                with self.trace.during(Phase.FORWARD):
                    step()
                self._name_weights()
        return self._result(steps)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        trace = self.trace
        with ExitStack() as stack:
            for handle in (
                every_module.register_module_forward_pre_hook(self._enter),
                every_module.register_module_forward_hook(trace.leave, always_call=True),
                register_optimizer_step_pre_hook(self._before_step),
                register_optimizer_step_post_hook(self._after_step),
            ):
                stack.callback(handle.remove)
            stack.callback(self._forget)
            card = Card(trace, self.autocast)
            stack.enter_context(like_a_card(card))
            stack.enter_context(self.autocast.installed())
            stack.enter_context(card)
            stack.enter_context(self.ledger)
            yield

    def _enter(self, module: nn.Module, args: Any) -> None:
        known = len(self.trace.roots)
        self.trace.enter(module, args)
        for root in self.trace.roots[known:]:
            self._watch(root)

    def _watch(self, root: nn.Module) -> None:
        """Name the weights of a module that was called, and its gradients as they come."""
        self.ledger.adopt([*root.parameters(), *root.buffers()], Kind.WEIGHTS)
        for weight in root.parameters():
            if weight.requires_grad and id(weight) not in self._watched:
                self._watched.add(id(weight))
                handle = weight.register_post_accumulate_grad_hook(self._got_gradient)
                self._leaving.append(handle.remove)

    def _got_gradient(self, weight: torch.Tensor) -> None:
        if weight.grad is not None:
            self.ledger.name(weight.grad, Kind.GRADIENTS)

    def _before_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._optimizers[id(optimizer)] = optimizer
        self._in_step = self.trace.during(Phase.STEP)
        self._in_step.__enter__()

    def _after_step(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._in_step.__exit__(None, None, None)
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor) and value.device.type == DEVICE:
                    self.ledger.name(value, Kind.OPTIMIZER_STATES)

    def _name_weights(self) -> None:
        for root in self.trace.roots:
            self.ledger.adopt([*root.parameters(), *root.buffers()], Kind.WEIGHTS)

    def _forget(self) -> None:
        for leave in self._leaving:
            leave()

    # ------------------------------------------------------------ what it says

    def _result(self, steps: int) -> Simulation:
        peak = self.ledger.peak
        if peak is None:
            raise ValueError("nothing was allocated on the card")
        held = [piece for piece in self.ledger.pieces if piece.held_at(peak.born)]
        kinds: Counter[Kind] = Counter()
        for piece in held:
            kinds[self._kind(piece, peak)] += piece.bytes
        return Simulation(
            peak_bytes=self.ledger.peak_bytes,
            peak_phase=peak.place.phase,
            operation=peak.place.operation,
            module=peak.place.module,
            line=self.ledger.peak_line,
            step=peak.place.step,
            steps=steps,
            phases=tuple((phase, self.ledger.peaks[phase]) for phase in Phase if phase in self.ledger.peaks),
            kinds=tuple(kinds.most_common()),
            largest=self._largest(held, peak),
            values_read=tuple(self.trace.values),
            allocations=len(self.ledger.pieces),
        )

    def _kind(self, piece: Piece, peak: Piece) -> Kind:
        """What a piece is for: as it was named, else by where it was made and how long it stayed."""
        place = piece.place
        if piece.kind is not None:
            return piece.kind
        if place.phase is Phase.LOSS or (place.module in self.heads and place.phase is not Phase.BACKWARD):
            return Kind.LOGITS
        if place.phase is Phase.FORWARD or place.again:
            brief = piece.died is not None and piece.died <= peak.born + 1
            return Kind.TEMPORARY if brief else Kind.ACTIVATIONS
        return Kind.OTHER if place.phase is Phase.LOAD else Kind.TEMPORARY

    def _largest(self, held: list[Piece], peak: Piece) -> tuple[Held, ...]:
        """The largest pieces; equal ones of one kind and operation together, with the module of the first."""
        groups: dict[tuple[object, ...], list[Piece]] = {}
        for piece in held:
            key = (self._kind(piece, peak), piece.shape, piece.dtype, piece.place.operation)
            groups.setdefault(key, []).append(piece)
        found = [
            Held(
                kind=self._kind(alike[0], peak),
                bytes=sum(piece.bytes for piece in alike),
                count=len(alike),
                shape=alike[0].shape,
                dtype=alike[0].dtype,
                operation=alike[0].place.operation,
                module=alike[0].place.module,
            )
            for alike in groups.values()
        ]
        return tuple(sorted(found, key=lambda each: -each.bytes)[:_LARGEST])


def step_of(built: object) -> Step:
    """The step in what a user's program built: a function, or a model and a function of it."""
    if callable(built):
        return built
    if isinstance(built, tuple) and len(built) == 2:  # noqa: PLR2004 - a pair
        model, step = built
        if isinstance(model, nn.Module) and callable(step):
            return lambda: step(model)
    raise TypeError(f"the program returned {type(built).__name__}, not a step or a pair of model and step")


def on_meta(model: nn.Module) -> nn.Module:
    """A twin of ``model`` on the meta device; no weight is copied."""
    twins: dict[int, Any] = {}
    for weight in model.parameters():
        twins[id(weight)] = nn.Parameter(torch.empty_like(weight, device=DEVICE), requires_grad=weight.requires_grad)
    for buffer in model.buffers():
        twins[id(buffer)] = torch.empty_like(buffer, device=DEVICE)
    return copy.deepcopy(model, twins)
