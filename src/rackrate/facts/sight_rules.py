"""Rules of image processors: from the size of an image to tiles, patches and tokens.

Each function is one public processor's arithmetic, for one image alone and with
the processor's own settings; tests/facts/image_tokens_counted.csv holds what
the processors themselves count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from rackrate.facts.sight import Look, Sight
from rackrate.facts.sight_tiles import (
    any_grid,
    any_grid_padded,
    any_grid_shrunk,
    canvas,
    cross,
    grids,
    hd,
    hd_unpadded,
    one,
    overlapped,
    ratio,
    slices,
    split,
)


def area(sight: Sight, width: int, height: int) -> Look:
    """Both sides to the nearest multiple of patch x merge; an area out of bounds scales both (Qwen-VL, GLM-4V).

    huggingface/transformers image_processing_qwen2_vl.py, smart_resize: 8,204 x
    1,092 pixels are 11,427 tokens in Qwen2-VL (arXiv 2409.12191, figure 2).
    Valid for sides up to 200 times each other. The bounds of GLM-4V count two
    frames; they are halved in the data.
    """
    unit = sight.patch * sight.merge
    pixels = width * height
    columns, lines = round(width / unit), round(height / unit)
    covered = columns * lines * unit * unit
    if covered > sight.most_pixels:
        scale = math.sqrt(pixels / sight.most_pixels)
        columns, lines = math.floor(width / scale / unit), math.floor(height / scale / unit)
    elif covered < sight.least_pixels:
        scale = math.sqrt(sight.least_pixels / pixels)
        columns, lines = math.ceil(width * scale / unit), math.ceil(height * scale / unit)
    return _whole(sight, max(1, columns), max(1, lines))


def pool(sight: Sight, width: int, height: int) -> Look:
    """Scaled, up too, to the largest multiples of patch x merge within ``fixed`` tokens (Gemma 4).

    huggingface/transformers image_processing_gemma4.py,
    get_aspect_ratio_preserving_size.
    """
    unit, most = sight.patch * sight.merge, sight.fixed
    scale = math.sqrt(most * unit * unit / (width * height))
    columns, lines = math.floor(scale * width / unit), math.floor(scale * height / unit)
    if not lines:
        columns, lines = min(width // height, most), 1
    elif not columns:
        columns, lines = 1, min(height // width, most)
    return _whole(sight, columns, lines)


def padded(sight: Sight, width: int, height: int) -> Look:
    """Never enlarged; within ``most_pixels`` and ``side``, then filled up to whole multiples (Kimi K2.5).

    huggingface/transformers image_processing_kimi_k25.py, navit_resize: the
    bounds count whole patches.
    """
    most = sight.most_pixels / sight.patch**2
    patches = max(1, width // sight.patch) * max(1, height // sight.patch)
    scale = min(1.0, math.sqrt(most / patches), sight.side / height, sight.side / width)
    columns, lines = (
        -(-min(max(1, int(length * scale)), sight.side) // (sight.patch * sight.merge)) for length in (width, height)
    )
    return _whole(sight, columns, lines)


def ended_rows(sight: Sight, width: int, height: int) -> Look:
    """The longer side within ``side``, never enlarged, then filled up; a mark ends each row (Pixtral, Mistral Small 3).

    huggingface/transformers image_processing_pixtral.py and
    processing_pixtral.py: the last row's mark is the end of the image.
    """
    ratio = max(height / sight.side, width / sight.side, 1.0)
    unit = sight.patch * sight.merge
    columns, lines = (-(-(math.floor(length / ratio) if ratio > 1 else length) // unit) for length in (width, height))
    look = _whole(sight, columns, lines)
    return Look(tokens=look.made + lines, made=look.made, patches=look.patches)


def _whole(sight: Sight, columns: int, lines: int) -> Look:
    made = columns * lines
    return Look(tokens=made + sight.marks, made=made, patches=made * sight.merge**2)


RULES: dict[str, Callable[[Sight, int, int], Look]] = {
    "any_grid": any_grid,
    "any_grid_padded": any_grid_padded,
    "any_grid_shrunk": any_grid_shrunk,
    "area": area,
    "canvas": canvas,
    "cross": cross,
    "ended_rows": ended_rows,
    "hd": hd,
    "hd_unpadded": hd_unpadded,
    "one": one,
    "overlapped": overlapped,
    "padded": padded,
    "pool": pool,
    "ratio": ratio,
    "slices": slices,
    "split": split,
}
"""Every rule that a family can have."""


def look(sight: Sight, width: int, height: int) -> Look:
    """An image of ``width`` x ``height`` pixels as this family sees it."""
    return RULES[sight.rule](sight, width, height)


def image_tokens(sight: Sight, width: int, height: int) -> int:
    """Tokens that one image adds to a prompt, its marks among them."""
    return look(sight, width, height).tokens


@lru_cache(maxsize=64)
def largest(sight: Sight) -> Look:
    """The image of which the tower makes most, as engines try it at their start.

    As the area allows, else among squares and grids filled with tiles.
    What fills up its edges (Kimi K2.5) can make a few tokens more in odd shapes.
    """
    if sight.rule == "area":
        return _whole(sight, sight.most_pixels // (sight.patch * sight.merge) ** 2, 1)
    edge = math.isqrt(sight.most_pixels) if sight.most_pixels else sight.side
    sizes = {(edge, edge), *((c * sight.side, r * sight.side) for c, r in grids(sight))}
    if sight.rule == "pool":
        unit = sight.patch * sight.merge
        sizes = {(unit * c, unit * (sight.fixed // c)) for c in range(1, sight.fixed + 1) if not sight.fixed % c}
    return max((look(sight, *size) for size in sorted(sizes)), key=lambda seen: (seen.made, seen.patches))
