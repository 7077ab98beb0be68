"""Vision towers: the arithmetic of the images in a prompt."""

from __future__ import annotations

from rackrate.facts.sight import Look, Sight
from rackrate.memory.towers import block_params
from rackrate.workload.workload import Workload


def tower_flop(sight: Sight, look: Look) -> float:
    """FLOPs of one image: twice the layers' parameters a patch, and ``4 w s`` a patch and layer for attention.

    ``s`` patches are attended to: those of a tile, of the whole image where there
    are no tiles, or of a window in all but a few layers (Qwen2.5-VL, arXiv
    2502.13923, section 2.1). Attention is in both directions, so nothing is
    halved. Valid without the projection to the text model.
    """
    whole = float(sight.tile_patches or look.patches) if sight.is_tiled else float(look.patches)
    full = sight.full_layers if sight.window else sight.layers
    attended = full * whole + (sight.layers - full) * min(whole, float(sight.window))
    return look.patches * (2 * block_params(sight) + 4 * sight.width * attended)


def image_flop_per_token(workload: Workload) -> float:
    """FLOPs that the tower adds to a prompt token on average (0 without images)."""
    serving = workload.serving
    if serving is None or serving.seen is None or not serving.prompt_tokens:
        return 0.0
    from rackrate.facts import sight_rules  # imported here: a question without images does not need it

    seen = serving.seen
    look = sight_rules.look(seen.sight, seen.width, seen.height)
    return seen.count * tower_flop(seen.sight, look) / serving.prompt_tokens
