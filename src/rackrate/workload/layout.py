"""Layouts: how one model is spread over the cards of one machine."""

from __future__ import annotations

from rackrate.values import Value


class Layout(Value, frozen=True, kw_only=True):
    """A division of the work over ``gpus`` = tensor x pipeline x data cards.

    ``zero_stage`` 1 to 3 shards optimizer states, gradients and weights over
    the data-parallel group (FSDP is stage 3). ``layer_split`` is llama.cpp's
    serial split: pipeline without overlap.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    zero_stage: int = 0
    layer_split: bool = False

    @property
    def gpus(self) -> int:
        """Cards in use."""
        return self.tensor * self.pipeline * self.data

    @property
    def label(self) -> str:
        """A short name, e.g. ``"tp2 dp4 zero3"``; ``"single"`` for one card."""
        parts = [f"{n}{v}" for n, v in (("tp", self.tensor), ("pp", self.pipeline), ("dp", self.data)) if v > 1]
        if self.layer_split:
            parts = [f"split{self.pipeline}", *(p for p in parts if p.startswith("dp"))]
        if self.zero_stage:
            parts.append(f"zero{self.zero_stage}")
        return " ".join(parts) or "single"
