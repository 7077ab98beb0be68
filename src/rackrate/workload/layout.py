"""Layouts: how one model is spread over the cards of one machine, or of several."""

from __future__ import annotations

from rackrate.values import Value
from rackrate.workload.network import Network


class Layout(Value, frozen=True, kw_only=True):
    """A division of the work over ``gpus`` = tensor x pipeline x data x context cards.

    ``zero_stage`` 1 to 3 shards optimizer states, gradients and weights over
    the data-parallel group (FSDP is stage 3). ``layer_split`` is llama.cpp's
    serial split: pipeline without overlap.

    Finer divisions of training: ``context`` cards share one sequence (they
    count among ``gpus``, and ZeRO shards over them too); ``expert`` of the
    data-parallel cards share the experts of a layer; ``sequence``: norms and
    residuals are divided over the tensor-parallel cards as well; ``chunks`` of
    layers a pipeline stage has, interleaved. ``split``: the shares of the layers
    that the cards of a layer split get (empty: even). The cards are those of ``nodes`` machines together.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    zero_stage: int = 0
    layer_split: bool = False
    context: int = 1
    expert: int = 1
    sequence: bool = False
    chunks: int = 1
    split: tuple[float, ...] = ()
    nodes: int = 1

    @property
    def gpus(self) -> int:
        """Cards in use."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def shards(self) -> int:
        """Cards over which ZeRO divides states: replicas, and those that share a sequence."""
        return self.data * self.context

    @property
    def label(self) -> str:
        """A short name, e.g. ``"tp2 dp4 zero3"``; ``"single"`` for one card."""
        rows = ("tp", self.tensor), ("pp", self.pipeline), ("dp", self.data), ("cp", self.context), ("ep", self.expert)
        parts = [f"{n}{v}" for n, v in rows if v > 1]
        if self.layer_split:
            shares = f"({','.join(f'{share:g}' for share in self.split)})" if self.split else ""
            parts = [f"split{self.pipeline}{shares}", *(p for p in parts if p.startswith("dp"))]
        if self.chunks > 1:
            parts.append(f"vpp{self.chunks}")
        if self.sequence:
            parts.append("sp")
        if self.zero_stage:
            parts.append(f"zero{self.zero_stage}")
        if self.nodes > 1:
            parts.append(f"{self.nodes} nodes")
        return " ".join(parts) or "single"


class Parallel(Value, frozen=True, kw_only=True):
    """A division of the work that the user asked for.

    What was not said is 1, but for ``data`` (0: as many replicas as fill the
    machine) and ``zero_stage`` (None: the engine's usual ones are tried).
    The cards are those of ``nodes`` machines, joined by ``network`` (None: the
    usual one of such a machine). ``free``: nothing but these was said, so that
    the best division is searched.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 0
    context: int = 1
    expert: int = 1
    sequence: bool = False
    virtual_stages: int = 1
    zero_stage: int | None = None
    tensor_split: tuple[float, ...] = ()
    nodes: int = 1
    network: Network | None = None
    free: bool = False

    @property
    def replica(self) -> int:
        """Cards of one replica."""
        return self.tensor * self.pipeline * self.context

    @property
    def gpus(self) -> int:
        """The fewest cards that it needs, over all machines."""
        return max(self.nodes, self.replica * max(1, self.data))

    @property
    def machine_gpus(self) -> int:
        """The fewest cards that it needs in each machine."""
        return -(-self.gpus // self.nodes)
