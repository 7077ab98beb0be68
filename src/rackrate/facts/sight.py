"""Sight: how the families of vision-language models turn an image into tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rackrate.values import Value


class Sight(Value, frozen=True, kw_only=True):
    """How a family sees: its processor and the shape of its vision tower.

    ``resizes``: the number of tokens follows the image, whose area is kept
    within ``least_pixels`` and ``most_pixels``; else every image is brought to
    ``side`` pixels and makes ``tokens``. ``patch``: pixels a side of what the
    tower sees as one; ``merge`` patches a side become one token; ``marks`` are
    tokens around an image, ``frames`` how often the tower is fed it. ``width``
    and ``feed`` are the tower's hidden size and feed-forward values of a patch
    (gate and up together), of the family's largest. ``tower_params``: of the
    tower alone, where bundled counts leave it out.
    """

    id: str
    names: tuple[str, ...]
    resizes: bool
    patch: int
    merge: int
    least_pixels: int
    most_pixels: int
    side: int
    tokens: int
    marks: int
    frames: int
    width: int
    feed: int
    tower_params: int
    source: str

    def merged_tokens(self, width: int, height: int) -> int:
        """Tokens that the tower makes of an image of ``width`` x ``height`` pixels, without the marks.

        Both sides go to the nearest multiple of patch x merge; an area out of
        bounds scales both (huggingface/transformers image_processing_qwen2_vl.py,
        smart_resize): 8,204 x 1,092 pixels are 11,427 tokens in Qwen2-VL (arXiv
        2409.12191, figure 2). Valid for images, one frame each, with the
        processor's own limits; sides up to 200 times each other.
        """
        if not self.resizes:
            return self.tokens
        unit = self.patch * self.merge
        columns, rows = round(width / unit), round(height / unit)
        area = columns * rows * unit * unit
        if area > self.most_pixels:
            scale = math.sqrt(self.most_pixels / (width * height))
            columns, rows = math.floor(width * scale / unit), math.floor(height * scale / unit)
        elif area < self.least_pixels:
            scale = math.sqrt(self.least_pixels / (width * height))
            columns, rows = math.ceil(width * scale / unit), math.ceil(height * scale / unit)
        return max(1, columns) * max(1, rows)

    def image_tokens(self, width: int, height: int) -> int:
        """Tokens that one image adds to a prompt, its marks among them."""
        return self.merged_tokens(width, height) + self.marks

    @property
    def most_tokens(self) -> int:
        """Tokens of the largest image, without the marks."""
        return self.most_pixels // (self.patch * self.merge) ** 2 if self.resizes else self.tokens

    @property
    def patches_per_token(self) -> float:
        """Patches that the tower works on for each token that it makes."""
        if self.resizes:
            return float(self.merge**2)
        return (self.side // self.patch) ** 2 / self.tokens


def sight(row: Mapping[str, str]) -> Sight:
    """One row of image_tokens.csv.

    Raises:
        ValueError: a number cannot be read.
    """
    return Sight(
        id=row["id"],
        names=tuple(row["names"].split("|")),
        resizes=row["resizes"] == "true",
        patch=int(row["patch"]),
        merge=int(row["merge"]),
        least_pixels=int(row["least_pixels"] or 0),
        most_pixels=int(row["most_pixels"] or 0),
        side=int(row["side"] or 0),
        tokens=int(row["tokens"] or 0),
        marks=int(row["marks"]),
        frames=int(row["frames"]),
        width=int(row["width"]),
        feed=int(row["feed"]),
        tower_params=int(row["tower_params"] or 0),
        source=row["source"],
    )
