"""Vision towers among a model's parameters: how many there are, and what quantisation leaves as it is."""

from __future__ import annotations

from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.sight import Sight

TOWER_BYTES = 2.0
"""Of each parameter of a tower: it stays in 16 bits where the text model is quantised."""

_TEXT_ALONE = ("text tower only", "per-layer embeddings counted")
"""Notes of bundled models whose count leaves the tower out."""


def block_params(sight: Sight) -> float:
    """Parameters of the tower's layers: ``L w (4 w + 2 f)``, and ``3 f`` with a gate (arXiv 2010.11929).

    Patches, positions and the projection to the text model are left out: 5 to 15 % of a tower.
    """
    return float(sight.layers * sight.width * (4 * sight.width + (2 + sight.gated) * sight.feed))


def params_inside(model: Model, sight: Sight | None) -> float:
    """Parameters of a tower that are among the model's own, and that no token of text passes through.

    Exact where the model was counted from its configuration, else the tower's layers.
    """
    counted = dict(model.params_by_group).get("vision", 0)
    if counted:
        return float(counted)
    apart = model.tower_params or any(note in model.notes for note in _TEXT_ALONE)
    return 0.0 if sight is None or apart else min(block_params(sight), model.params_active / 2)


def left_wide_bytes(model: Model, sight: Sight | None, form: WeightFormat) -> float:
    """What a tower takes beyond the format of the text model, which leaves it in 16 bits.

    Quantised checkpoints say so in ``modules_to_not_convert`` or ``ignore``
    (Qwen/Qwen2-VL-7B-Instruct-AWQ: visual). Nothing where files say what they hold.
    """
    if model.stored is not None and model.stored.format == form.id:
        return 0.0
    return max(0.0, TOWER_BYTES - form.bytes_per_weight) * params_inside(model, sight)
