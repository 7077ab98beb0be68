"""Models of memory rows: bundled ones, those of a file, and what stands in for one that is in neither."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rackrate.facts.book import FactBook
from rackrate.facts.model import Model
from rackrate.facts.names import base_of_tuned, resolve_model
from rackrate.facts.rows import model
from rackrate.problems import Finding
from rackrate.values import replace
from scoring.cells import Row

WHOLE = (
    "params_total", "params_active", "params_check", "hidden_size", "layers", "attention_heads", "kv_heads", "head_dim",
    "intermediate_size", "vocab_size", "max_context", "attn_layers_full", "attn_layers_windowed", "window",
    "layers_linear_or_ssm", "mla_kv_lora_rank", "mla_qk_rope_head_dim", "mla_q_lora_rank", "mla_v_head_dim", "experts",
    "experts_per_token", "moe_intermediate_size", "shared_experts", "dense_layers_first",
)  # fmt: skip


FLAGS = ("tie_embeddings", "mlp_gated")


MOST = 1e14
"""More than any number of a model."""


BILLION = 1e9


SAME_SIZE = 0.03
"""How far apart two models of one size are at most."""


class NotScored(Exception):
    """Why a row is not scored."""


def model_of(row: Row, book: FactBook) -> str:
    """The model of a row, by its names, else what it was tuned from, else a dense one of the stated size.

    Raises:
        NotScored: none of them is known.
    """
    for name in filter(None, (row.text("model_id"), row.text("model"), row.text("model").partition(" ")[0])):
        found = resolve_model(name, book.model_ids)
        if not isinstance(found, Finding):
            return found
    tuned = base_of_tuned(row.text("model_id"), book.model_ids)
    near = tuned or _of_size(row.number("params_b") or 0.0, book)
    if near is None or row.text("norm_task") == "diffusion":
        raise NotScored("model not known: give its numbers with --models")
    return near


def _of_size(billions: float, book: FactBook) -> str | None:
    """The dense text model whose parameters are nearest to those stated, if they are as many as nearly makes no matter.

    Weights, gradients and states follow from their number; widths and heads may differ.
    """
    models = (book.model(name) for name in book.model_ids)
    apart = {m.id: abs(m.params_total / (billions * BILLION) - 1) for m in models if billions > 0 and _is_plain(m)}
    near = min(apart, key=apart.__getitem__, default=None)
    return near if near is not None and apart[near] <= SAME_SIZE else None


def _is_plain(model: Model) -> bool:
    return bool(model.hidden_size and model.kv_heads and model.modality == "text" and not model.is_moe)


def extra_models(book: FactBook, cells: Mapping[str, Mapping[str, str]]) -> FactBook:
    """The book with models more, from rows in the columns of models.csv; a bundled model of the same id stays."""
    more = {name: complete(row) for name, row in cells.items() if name not in book.model_ids}
    known = book.model
    return replace(
        book,
        model_ids=(*book.model_ids, *more),
        model=lambda name: model(more[name]) if name in more else known(name),
    )


def complete(cells: Mapping[str, str]) -> defaultdict[str, str]:
    """A row of models.csv with what follows from the rest: active parameters, head size, layers that attend in full.

    Cells that are not what their column asks for are left empty.
    """
    row = defaultdict(str, {name: (value or "").strip() for name, value in cells.items()})
    for name, value in list(row.items()):
        if name in WHOLE and value:
            row[name] = _whole(value)
        elif name in FLAGS and value.casefold() not in {"true", "false"}:
            row[name] = ""
        elif name in FLAGS:
            row[name] = value.casefold()
    row["params_total"] = row["params_total"] or row["params_check"] or "0"
    row["params_active"] = row["params_active"] or row["params_total"]
    heads, hidden = int(row["attention_heads"] or 0), int(row["hidden_size"] or 0)
    row["kv_heads"] = row["kv_heads"] or row["attention_heads"]
    row["head_dim"] = row["head_dim"] or (str(hidden // heads) if heads and hidden else "")
    if not row["attn_layers_full"] and row["attention"] in {"", "full", "gqa", "mha", "mqa"}:
        row["attn_layers_full"] = row["layers"]
    row["attn_layers_windowed"] = row["attn_layers_windowed"] or "0"
    return row


def _whole(value: str) -> str:
    """A whole number in digits, or nothing; below nothing and beyond any model is no number."""
    try:
        number = float(value.replace(",", ""))
    except ValueError:
        return ""
    return str(int(number)) if 0 <= number <= MOST else ""
