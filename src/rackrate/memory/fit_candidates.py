"""What fit may try beyond sizes: formats, engines and optimizers that the caller knows of."""

from __future__ import annotations

from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.values import Value


class Candidates(Value, frozen=True, kw_only=True):
    """What may be tried beyond sizes: weight formats, optimizers and engines that the caller knows of.

    ``follows``: nobody named the engine, so that a format with an engine of its
    own brings that one along.
    """

    formats: tuple[WeightFormat, ...] = ()
    engines: tuple[Engine, ...] = ()
    optimizers: tuple[str, ...] = ("adamw-8bit", "paged-adamw-8bit")
    follows: bool = False


NO_CANDIDATES = Candidates()
