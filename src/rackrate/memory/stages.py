"""Stages: the part of a model that one card holds when its layers are split over cards."""

from __future__ import annotations

from bisect import bisect_right

from rackrate.values import Value
from rackrate.workload.layout import Layout


class Stage(Value, frozen=True, kw_only=True):
    """A run of ``layers`` out of ``of`` layers, with the input embedding (``first``) or the output head (``last``).

    ``in_flight`` micro-batches have passed forward through it and wait for
    their backward pass.
    """

    layers: int
    of: int
    first: bool
    last: bool
    in_flight: float = 1

    @property
    def fraction(self) -> float:
        """This stage's part of the layers."""
        return self.layers / self.of

    def share_of(self, layers: int) -> int:
        """How many of ``layers`` layers of one kind fall on this stage at most, spread evenly."""
        return -(-layers * self.layers // self.of)


def stages(layers: int, layout: Layout, micro_batches: int = 1) -> tuple[Stage, ...]:
    """The stages that can be the fullest: all of the model, or the first and the last of a pipeline.

    Layers that do not divide evenly count ceil(layers / stages) on each. With
    one-forward-one-backward scheduling stage i of p keeps p - i micro-batches
    (PipeDream-Flush, arXiv 2006.09503 section 3.2), so no stage between the
    first and the last holds more than the first. Interleaved chunks of layers
    make the first hold 1 + (p - 1) / (p x chunks) times as much (Megatron-LM,
    arXiv 2205.05198 section 4.2.3).
    """
    if layout.split:
        return _split_stages(layers, layout.split)
    count = min(layout.pipeline, layers)
    if count <= 1:
        return (Stage(layers=layers, of=layers, first=True, last=True),)
    part = -(-layers // count)
    waiting: float = max(1, min(count, micro_batches))
    if layout.chunks > 1:
        waiting *= 1 + (count - 1) / (count * layout.chunks)
    return (
        Stage(layers=part, of=layers, first=True, last=False, in_flight=waiting),
        Stage(layers=part, of=layers, first=False, last=True),
    )


def _split_stages(layers: int, shares: tuple[float, ...]) -> tuple[Stage, ...]:
    """The stages of a layer split by ``shares``: those that nothing falls on are left out.

    Layers and the output head are places 0 to n; place i goes to the first card
    whose shares and those before it are more than i / (n + 1) of all
    (ggml-org/llama.cpp src/llama-model.cpp load_tensors, splits and
    get_layer_buft_list). Cards are taken to be alike.
    """
    whole, ends, before = sum(shares), [], 0.0
    for share in shares:
        before += share / whole
        ends.append(before)
    cards = [min(bisect_right(ends, place / (layers + 1)), len(shares) - 1) for place in range(layers + 1)]
    found = []
    for card in sorted(set(cards)):
        held = cards[:layers].count(card)
        found.append(Stage(layers=held, of=layers, first=card == cards[0], last=card == cards[-1]))
    return tuple(found)
