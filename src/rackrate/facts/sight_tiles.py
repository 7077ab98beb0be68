"""Rules of image processors that cut an image into tiles, each of which the tower sees alone.

Each function is one public processor's arithmetic, for one image alone and with
the processor's own settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rackrate.facts.sight import Look, Sight
from rackrate.values import replace

Grid = tuple[int, int]
"""Columns and rows."""


def one(sight: Sight, _width: int, _height: int) -> Look:
    """One square, whatever the image (LLaVA 1.5, Gemma 3 and 3n, PaliGemma)."""
    return _tiled(sight, 1)


def ratio(sight: Sight, width: int, height: int) -> Look:
    """Tiles in the grid of the nearest aspect ratio, and the whole image in one more if they are several (InternVL).

    Of grids with the same ratio the larger one, while its tiles cover at most
    twice the image (huggingface/transformers image_processing_got_ocr2.py,
    get_optimal_tiled_canvas).
    """
    columns, lines = nearest_ratio(sight, width, height)
    tiles = columns * lines
    return _tiled(sight, tiles + (tiles > 1))


def nearest_ratio(sight: Sight, width: int, height: int) -> Grid:
    """The grid whose aspect ratio is nearest to that of the image."""
    best, least = (1, 1), math.inf
    for columns, lines in sorted(grids(sight), key=lambda grid: grid[0] * grid[1]):
        off = abs(width / height - columns / lines)
        covers = width * height > 0.5 * sight.side**2 * columns * lines
        if off < least or (off == least and covers):
            best, least = (columns, lines), off
    return best


def canvas(sight: Sight, width: int, height: int) -> Look:
    """Tiles of the canvas that fits best, one more for the whole image, and a separator behind each (Llama 4).

    huggingface/transformers image_processing_llama4.py and
    processing_llama4.py: between tiles and behind rows, so one a tile.
    """
    columns, lines = best_canvas(sight, width, height)
    tiles = columns * lines
    several = tiles > 1
    look = _tiled(sight, tiles + several)
    return Look(tokens=look.tokens + several * tiles, made=look.made, patches=look.patches)


def cross(sight: Sight, width: int, height: int) -> Look:
    """One token in the prompt; every patch of every tile, and one more a tile, beside it (Llama 3.2 Vision).

    huggingface/transformers image_processing_mllama.py,
    get_optimal_tiled_canvas, and modeling_mllama.py: 1,601 positions a tile,
    of four tiles always, as the missing ones are filled up and masked.
    """
    columns, lines = best_canvas(sight, width, height)
    each = sight.tile_patches + 1
    tiles = columns * lines
    return Look(tokens=sight.marks, made=0, patches=each * tiles, beside=each * sight.tiles)


def best_canvas(sight: Sight, width: int, height: int) -> Grid:
    """The grid that enlarges an image least, or if all shrink it, shrinks it least; of several, the smallest."""
    scale = {grid: min(grid[0] * sight.side / width, grid[1] * sight.side / height) for grid in grids(sight)}
    larger = [each for each in scale.values() if each >= 1]
    chosen = min(larger) if larger else max(scale.values())
    return min((grid for grid, each in scale.items() if each == chosen), key=lambda grid: grid[0] * grid[1])


def any_grid(sight: Sight, width: int, height: int) -> Look:
    """Any resolution: the whole image in a tile, then a grid without its padding, a mark behind each row (LLaVA-NeXT).

    huggingface/transformers processing_llava_next.py, _get_number_of_features.
    """
    columns, lines = best_resolution(sight, width, height)
    across, down = _unpadded(sight, width, height, (columns, lines))
    made = sight.tile_tokens + across * down
    return Look(tokens=made + down + sight.marks, made=made, patches=(columns * lines + 1) * sight.tile_patches)


def any_grid_shrunk(sight: Sight, width: int, height: int) -> Look:
    """The same, with a grid of more tokens than nine tiles brought down to that (LLaVA-OneVision, anyres_max_9).

    huggingface/transformers processing_llava_onevision.py; an image alone in
    its request.
    """
    columns, lines = best_resolution(sight, width, height)
    across, down = _unpadded(sight, width, height, (columns, lines))
    over = math.sqrt(across * down / (_SHRUNK_TILES * sight.tile_tokens))
    if over > _SHRUNK_FROM:
        across, down = int(across // over), int(down // over)
    made = sight.tile_tokens + across * down
    return Look(tokens=made + down + sight.marks, made=made, patches=(columns * lines + 1) * sight.tile_patches)


_SHRUNK_TILES, _SHRUNK_FROM = 9, 1.1


def any_grid_padded(sight: Sight, width: int, height: int) -> Look:
    """The same grid with its padding, a mark behind each row, also of the whole image, and one between (DeepSeek-VL2).

    deepseek-ai/DeepSeek-VL2 processing_deepseek_vl_v2.py; candidates: every
    grid of up to nine tiles (arXiv 2412.10302, section 2).
    """
    columns, lines = best_resolution(sight, width, height)
    edge = math.isqrt(sight.tile_tokens)
    breaks = edge + 1 + lines * edge
    look = _tiled(sight, columns * lines + 1)
    return Look(tokens=look.tokens + breaks, made=look.made, patches=look.patches)


def best_resolution(sight: Sight, width: int, height: int) -> Grid:
    """The grid that keeps most of an image's pixels, and of those the one that wastes least.

    huggingface/transformers image_processing_utils.py, select_best_resolution.
    """
    best, most, least = (1, 1), 0, math.inf
    for columns, lines in sorted(grids(sight), key=lambda grid: (grid[1], grid[0])):
        across, down = columns * sight.side, lines * sight.side
        scale = min(across / width, down / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        waste = across * down - kept
        if kept > most or (kept == most and waste < least):
            best, most, least = (columns, lines), kept, waste
    return best


def _unpadded(sight: Sight, width: int, height: int, grid: Grid) -> Grid:
    """Tokens across and down a grid once what pads the image is cut off."""
    edge = math.isqrt(sight.tile_tokens)
    across, down = grid[0] * edge, grid[1] * edge
    if width / height > across / down:
        down -= (down - int(round(height * (across / width), 7))) // 2 * 2
    else:
        across -= (across - int(round(width * (down / height), 7))) // 2 * 2
    return across, down


def split(sight: Sight, width: int, height: int) -> Look:
    """The longer side to ``tiles_a_side`` tiles, both cut in tiles, and the whole in one more (Idefics3, SmolVLM).

    Two marks a tile and a line break a row, which after the last is one token
    with the one that follows (huggingface/transformers
    image_processing_idefics3.py and processing_idefics3.py).
    """
    longest = min(sight.tiles_a_side * sight.side, _SPLIT_MOST)
    shape = width / height
    if width >= height:
        across, down = longest, int(longest / shape)
        down += down % 2
    else:
        across, down = int(longest * shape), longest
        across += across % 2
    columns, lines = (-(-max(1, length) // sight.side) for length in (across, down))
    tiles = columns * lines if columns * lines > 1 else 0
    breaks = lines if tiles else 0
    look = _tiled(sight, tiles + 1)
    return Look(tokens=look.tokens + 2 * tiles + breaks, made=look.made, patches=look.patches)


_SPLIT_MOST = 4096


def hd(sight: Sight, width: int, height: int) -> Look:
    """As many tiles along the longer side as fit, with a mark behind each row of tokens (Phi-3-vision, Phi-3.5-vision).

    microsoft/Phi-3-vision-128k-instruct image_processing_phi3_v.py, as read in
    vllm-project/vllm model_executor/models/phi3v.py.
    """
    long, short = max(width, height), min(width, height)
    shape = long / short
    scale = 1
    while (scale + 1) * math.ceil((scale + 1) / shape) <= sight.tiles:
        scale += 1
    other = -(-int(scale * sight.side / shape) // sight.side)
    lines = other if width >= height else scale
    look = _tiled(sight, scale * other + 1)
    edge = math.isqrt(sight.tile_tokens)
    return Look(tokens=look.tokens + 1 + (lines + 1) * edge, made=look.made, patches=look.patches)


def hd_unpadded(sight: Sight, width: int, height: int) -> Look:
    """Tiles that cover an image at its own size, without what pads it, a mark behind each row (Phi-4-multimodal).

    Beyond ``tiles`` the grid of the nearest aspect ratio
    (huggingface/transformers image_processing_phi4_multimodal.py).
    """
    columns, lines = -(-width // sight.side), -(-height // sight.side)
    if columns * lines > sight.tiles:
        columns, lines = nearest_ratio(sight, width, height)
    scale = (columns * sight.side / width, lines * sight.side / height)
    edge = sight.side // sight.patch
    across, down = columns * edge, lines * edge
    if scale[0] < scale[1]:
        down -= (lines * sight.side - int(height * scale[0])) // sight.patch
    else:
        across -= (columns * sight.side - int(width * scale[1])) // sight.patch
    across, down = -(-across // sight.merge), -(-down // sight.merge)
    made = sight.tile_tokens + across * down
    breaks = math.isqrt(sight.tile_tokens) + 1 + down
    return Look(tokens=made + breaks + sight.marks, made=made, patches=(columns * lines + 1) * sight.tile_patches)


def overlapped(sight: Sight, width: int, height: int) -> Look:
    """Tiles that overlap by four patches on each side, and the whole image; a mark behind each row (Molmo).

    allenai/Molmo-7B-D-0924 preprocessing_molmo.py, as read in vllm-project/vllm
    model_executor/models/molmo.py.
    """
    margin = 2 * _OVERLAP
    window = sight.side // sight.patch - margin
    inner = replace(sight, side=window * sight.patch)
    columns, lines = _least_enlarging(inner, width - margin * sight.patch, height - margin * sight.patch)
    across, down = (-(-(n * window + margin) // sight.merge) for n in (columns, lines))
    edge = math.isqrt(sight.tile_tokens)
    made = sight.tile_tokens + across * down
    return Look(tokens=made + edge + down + sight.marks, made=made, patches=(columns * lines + 1) * sight.tile_patches)


_OVERLAP = 4


def _least_enlarging(sight: Sight, width: int, height: int) -> Grid:
    """The first grid, from small to large, that enlarges least, or shrinks least where all shrink."""
    ordered = sorted(grids(sight), key=lambda grid: (grid[0] * grid[1], grid[1]))
    scale = {grid: min(grid[0] * sight.side / width, grid[1] * sight.side / height) for grid in ordered}
    if all(each < 1 for each in scale.values()):
        return max(ordered, key=lambda grid: scale[grid])
    return min(ordered, key=lambda grid: scale[grid] if scale[grid] >= 1 else math.inf)


def slices(sight: Sight, width: int, height: int) -> Look:
    """The whole image, and slices in the grid of the nearest shape where it is larger than one (MiniCPM-V).

    A resampler makes ``fixed`` tokens of each; two marks each and a line break
    between rows (openbmb/MiniCPM-V-2_6 image_processing_minicpmv.py; the grid
    and the sizes as in huggingface/transformers image_processing_minicpmv4_6.py).
    """
    grid = slice_grid(sight, width, height)
    whole = _slice_patches(sight, width, height, enlarge=grid is None)
    parts, breaks, each = 0, 0, 0
    if grid is not None:
        columns, lines = grid
        inner = (_divided(width, columns) / columns, _divided(height, lines) / lines)
        parts, breaks = columns * lines, lines - 1
        each = _slice_patches(sight, *inner, enlarge=True)
    made = (1 + parts) * sight.fixed
    return Look(tokens=made + 2 * (1 + parts) + breaks + sight.marks, made=made, patches=whole + parts * each)


def slice_grid(sight: Sight, width: int, height: int) -> Grid | None:
    """The grid of slices; None where one is enough."""
    wanted = min(math.ceil(width * height / sight.side**2), sight.tiles)
    if wanted <= 1:
        return None
    best, least = (1, 1), math.inf
    for count in (wanted - 1, wanted, wanted + 1):
        if count == 1 or count > sight.tiles:
            continue
        for lines in (n for n in range(1, count + 1) if count % n == 0):
            off = abs(math.log(width / height) - math.log(count // lines / lines))
            if off < least or (off == least and lines > best[1]):
                best, least = (count // lines, lines), off
    return best


def _slice_patches(sight: Sight, width: float, height: float, *, enlarge: bool) -> int:
    """Patches of a slice that is brought to about ``side`` x ``side`` pixels in its own shape."""
    if width * height > sight.side**2 or enlarge:
        shape = width / height
        height = int(sight.side / math.sqrt(shape))
        width = int(height * shape)
    return _divided(width, sight.patch) * _divided(height, sight.patch) // sight.patch**2


def _divided(length: float, by: int) -> int:
    return max(round(length / by) * by, by)


def _tiled(sight: Sight, tiles: int) -> Look:
    made = tiles * sight.tile_tokens
    return Look(tokens=made + sight.marks, made=made, patches=tiles * sight.tile_patches)


def grids(sight: Sight) -> Iterable[Grid]:
    """Every grid of tiles that a family allows."""
    most, side = sight.tiles, sight.tiles_a_side or sight.tiles
    return (
        (columns, lines)
        for columns in range(1, side + 1)
        for lines in range(1, side + 1)
        if max(1, sight.least_tiles) <= columns * lines <= most
    )
