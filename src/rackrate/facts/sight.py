"""Sight: how the families of vision-language models turn an image into tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rackrate.facts.model import Tower
from rackrate.values import Value, replace


class Look(Value, frozen=True, kw_only=True):
    """One image as a model sees it.

    ``tokens`` join the prompt, marks and separators among them; ``made`` of
    them come from the tower, which works on ``patches``. ``beside`` are
    positions that layers of their own attend to, outside the prompt
    (cross-attention).
    """

    tokens: int
    made: int
    patches: int
    beside: int = 0


class Sight(Value, frozen=True, kw_only=True):
    """How a family sees: the rule of its processor and the shape of its vision tower.

    ``rule`` names a function of sight_rules.py. ``patch``: pixels a side of what
    the tower sees as one; ``merge`` patches a side become one token; ``side``:
    pixels a side of a tile, or the longest side where there are none; ``fixed``:
    tokens of a tile (0: as its patches come to). ``tiles``, ``tiles_a_side`` and
    ``least_tiles`` bound a grid of tiles, ``least_pixels`` and ``most_pixels``
    an area. ``marks`` are tokens around an image, ``frames`` how often the tower
    is fed it. ``width``, ``feed`` (inner width of the feed-forward block),
    ``gated`` and ``layers`` are the tower's; in all but ``full_layers`` of them
    a patch attends to ``window`` patches (0: to its whole tile or image).
    """

    id: str
    names: tuple[str, ...]
    rule: str
    patch: int
    merge: int
    least_pixels: int = 0
    most_pixels: int = 0
    side: int = 0
    fixed: int = 0
    tiles: int = 0
    tiles_a_side: int = 0
    least_tiles: int = 0
    marks: int = 0
    frames: int = 1
    width: int
    feed: int
    gated: bool = False
    layers: int
    window: int = 0
    full_layers: int = 0
    source: str

    def fitted(self, tower: Tower | None) -> Sight:
        """The family with the sizes of one model's own tower, as its configuration says them."""
        if tower is None:
            return self
        own = {name: getattr(tower, name) for name in ("width", "feed", "layers", "patch", "merge")}
        own["side"] = 0 if self.most_pixels else tower.side
        return replace(self, **{name: size for name, size in own.items() if size})

    @property
    def is_tiled(self) -> bool:
        """Whether a patch sees its own tile alone, and not the whole image."""
        return self.rule not in _WHOLE_IMAGE

    @property
    def tile_patches(self) -> int:
        """Patches of a tile (0 without tiles)."""
        return (self.side // self.patch) ** 2 if self.side else 0

    @property
    def tile_tokens(self) -> int:
        """Tokens that the tower makes of a tile."""
        return self.fixed or math.ceil(self.side // self.patch / self.merge) ** 2


_WHOLE_IMAGE = frozenset({"area", "ended_rows", "padded", "pool"})
"""Rules without tiles."""


def sight(row: Mapping[str, str]) -> Sight:
    """One row of image_tokens.csv.

    Raises:
        ValueError: a number cannot be read.
    """

    def number(column: str) -> int:
        return int(row[column] or 0)

    return Sight(
        id=row["id"],
        names=tuple(row["names"].split("|")),
        rule=row["rule"],
        patch=number("patch"),
        merge=number("merge"),
        least_pixels=number("least_pixels"),
        most_pixels=number("most_pixels"),
        side=number("side"),
        fixed=number("tokens"),
        tiles=number("tiles"),
        tiles_a_side=number("tiles_a_side"),
        least_tiles=number("least_tiles"),
        marks=number("marks"),
        frames=number("frames"),
        width=number("width"),
        feed=number("feed"),
        gated=row["gated"] == "true",
        layers=number("layers"),
        window=number("window"),
        full_layers=number("full_layers"),
        source=row["source"],
    )
