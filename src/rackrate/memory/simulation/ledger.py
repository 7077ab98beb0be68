"""The ledger: every storage that a program allocates on the card, from its birth to its death.

Tensors live on PyTorch's meta device, where they have shapes and no values, so that a model of any size
takes no memory. A dispatch mode sees each operation below autograd; a storage that it has not seen before
is an allocation, and a weak reference tells when it is freed.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rackrate.memory.estimate_types import Phase
from rackrate.memory.simulation.records import Kind
from rackrate.memory.simulation.trace import Place, Trace, in_backward

DEVICE = "meta"

ROUND_BYTES = 512
"""The allocator hands out multiples of this (pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)."""

_ADD = torch.ops.aten.add.Tensor
_READ = torch.ops.aten._local_scalar_dense.default
_WRAPPERS = ("ledger.py", "torch/_dynamo/eval_frame.py", "torch/_compile.py")
_ENGINE = "torch/autograd/graph.py"
_OWN_REFERENCES = 2
"""References to a storage that nothing else uses: the engine's tensor, and the handle that asks."""


class Piece:
    """One storage: where it was made, and the numbers of the allocations before which it came and went."""

    __slots__ = ("born", "bytes", "died", "dtype", "kind", "place", "shape", "watch")

    def __init__(self, size: int, tensor: torch.Tensor, place: Place, born: int) -> None:
        self.bytes = size
        self.shape = tuple(tensor.shape)
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self.place = place
        self.born = born
        self.died: int | None = None
        self.kind: Kind | None = None
        self.watch: object = None

    def held_at(self, event: int) -> bool:
        """Whether the storage was there just after allocation ``event``."""
        return self.born <= event and (self.died is None or self.died > event)


class Ledger(TorchDispatchMode):
    """Counts what is held, and remembers the highest point of each phase and of all."""

    def __init__(self, trace: Trace, tick: Callable[[int], None]) -> None:
        super().__init__()
        self.trace = trace
        self.pieces: list[Piece] = []
        self.peaks: dict[Phase, int] = {}
        self.peak_bytes = 0
        self.peak: Piece | None = None
        self.peak_line = ""
        self._live: dict[int, Piece] = {}
        self._bytes = 0
        self._tick = tick

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run one operation, and enter the storages that it made."""
        if func is _ADD and not kwargs and _accumulates_in_place(args):
            return args[0].add_(args[1])
        if func.overloadpacket.__name__.startswith("_fused_"):
            return None  # fused optimizers work in place, with nothing beside
        if func is _READ and args[0].device.type == DEVICE:
            return self._no_value(args[0])
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == DEVICE:
                self._enter(leaf, func)
        return out

    def adopt(self, tensors: Iterable[torch.Tensor], kind: Kind) -> None:
        """Enter tensors that were made unseen, and say what they are for; seen ones are only named."""
        for tensor in tensors:
            if tensor.device.type == DEVICE:
                self._enter(tensor, None)
                self.name(tensor, kind)

    def name(self, tensor: torch.Tensor, kind: Kind) -> None:
        """Say what a tensor that is held is for."""
        piece = self._live.get(tensor.untyped_storage()._cdata)
        if piece is not None:
            piece.kind = kind

    def _enter(self, tensor: torch.Tensor, func: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._live:
            return
        operation = "load" if func is None else str(func.overloadpacket.__name__)
        size = -(-storage.nbytes() // ROUND_BYTES) * ROUND_BYTES
        piece = Piece(size, tensor, self.trace.place(operation), len(self.pieces))
        piece.watch = weakref.ref(storage, lambda _: self._free(key))
        self._live[key] = piece
        self.pieces.append(piece)
        self._bytes += size
        phase = piece.place.phase
        self.peaks[phase] = max(self.peaks.get(phase, 0), self._bytes)
        if self._bytes > self.peak_bytes:
            self.peak_bytes, self.peak, self.peak_line = self._bytes, piece, self.trace.line()
        self._tick(len(self.pieces))

    def _free(self, key: int) -> None:
        piece = self._live.pop(key, None)
        if piece is not None:
            piece.died = len(self.pieces)
            self._bytes -= piece.bytes

    def _no_value(self, tensor: torch.Tensor) -> float | int | bool | complex:
        """Zero in place of a value that is read off the card, which a simulation does not have."""
        self.trace.value_read()
        return torch.zeros((), dtype=tensor.dtype, device="cpu").item()


def _accumulates_in_place(args: Sequence[Any]) -> bool:
    """Whether this is the engine adding one gradient to another that nothing else uses.

    It then adds in place, but not under a dispatch mode (pytorch/pytorch
    torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace), so that the
    ledger does it instead. The engine calls from no Python line of its own.
    """
    if not in_backward() or torch.is_grad_enabled():
        return False
    first, second = args
    if not isinstance(second, torch.Tensor) or first.shape != second.shape or first.dtype != second.dtype:
        return False
    storage = first.untyped_storage()
    return _called_by_engine() and torch._C._storage_Use_Count(storage._cdata) <= _OWN_REFERENCES


def _called_by_engine() -> bool:
    """Whether the nearest Python line is the one that started autograd's engine."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_WRAPPERS):
        frame = frame.f_back
    return frame.f_code.co_filename.endswith(_ENGINE)
