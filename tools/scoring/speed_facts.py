"""Facts that a table of measurements brings along: models by their dimensions, cards by their published rates."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook
from rackrate.facts.model import Model
from rackrate.facts.rows import accelerator, memory_rule, model, ruled_memory
from rackrate.values import replace
from scoring.cells import Row, read_cells
from scoring.memory_rows import NotScored

RATES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4")
_PLAIN = {
    "bandwidth": ("bandwidth_gb_s", "GB/s"),
    "power_limit": ("tdp_w", "W"),
    "pcie_gen": ("pcie_gen", "generation"),
    "nvlink_total_bidir": ("nvlink_gb_s_total_bidir", "GB/s"),
    "peak_fp16_acc16": ("fp16_acc16_dense_tflops", "TFLOPS"),
}


def model_of_row(row: Row) -> Model | None:
    """The model that ``arch_json`` describes (it wins over the id), or None.

    Raises:
        NotScored: it describes none.
    """
    text = row.text("arch_json")
    if not text:
        return None
    try:
        return _described(row, json.loads(text))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as why:
        raise NotScored("arch_json describes no decoder") from why


def _described(row: Row, said: Mapping[str, int | bool]) -> Model:
    cells = defaultdict(str, {key: _cell(value) for key, value in said.items()})
    cells["id"] = f"row/{row.text('model') or row.text('id')}"
    cells["mlp_gated"] = _cell(said.get("gated", True))
    cells["tie_embeddings"] = _cell(said.get("tie_embeddings", False))
    heads = int(said["attention_heads"])
    cells["head_dim"] = _cell(said.get("head_dim", int(said["hidden_size"]) // heads))
    cells["attention"] = "full"
    cells["attn_layers_full"], cells["attn_layers_windowed"] = cells["layers"], "0"
    cells["layers_linear_or_ssm"] = "0"
    params = dense_params(said, int(cells["head_dim"]))
    cells["params_total"] = cells["params_active"] = cells["params_check"] = str(params)
    cells["modality"], cells["native_dtype"] = "text", "float16"
    return model(cells)


def _cell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def dense_params(said: Mapping[str, int | bool], head_dim: int) -> int:
    """Parameters of a dense decoder with these dimensions (norms and biases left out)."""
    hidden, layers = int(said["hidden_size"]), int(said["layers"])
    attention = 2 * hidden * head_dim * (int(said["attention_heads"]) + int(said["kv_heads"]))
    mlp = (3 if said.get("gated", True) else 2) * hidden * int(said["intermediate_size"])
    tables = 1 if said.get("tie_embeddings", False) else 2
    return layers * (attention + mlp) + tables * hidden * int(said["vocab_size"])


def with_cards(book: FactBook, path: Path | None) -> FactBook:
    """The book with cards more, from rows in the columns of a table of cards; a bundled card stays."""
    if path is None:
        return book
    rows = [row for row in read_cells(path) if row.get("id") and row["id"] not in book.accelerators]
    return replace(book, accelerators={**book.accelerators, **{row["id"]: card_of_cells(row, book) for row in rows}})


def card_of_cells(row: Mapping[str, str], book: FactBook) -> Accelerator:
    """One card from one wide row: published rates as they stand there."""
    from rackrate.facts import bundled

    cells = defaultdict(str, row)
    cells["memory_sold_gb"] = row["memory_gb"]
    cells["modified"] = "false"
    if row["compute_capability"].startswith("gfx"):
        cells["isa"], cells["compute_capability"] = row["compute_capability"], ""
    cells["ecc_default"] = "on" if row.get("ecc") == "true" and row["memory_type"].startswith("HBM") else ""
    cells["nvswitch"] = row.get("nvswitch") or "false"
    found: dict[str, tuple[str, ...]] = {}
    for quantity, (column, unit) in {**_PLAIN, **{f"peak_{p}": (_peak(p), "TFLOPS") for p in RATES}}.items():
        if row.get(column) and float(row[column]) > 0:
            place = (
                row["id"],
                quantity,
                row[column],
                unit,
                "",
                "published",
                row.get("source", ""),
                f"{book.seen_at}",
                "",
            )
            found[_loaded(quantity)] = place
    rules = bundled.table("memory_rules.csv")
    assert memory_rule(cells, rules)
    found["memory_total_bytes"] = ruled_memory(cells, rules, f"{book.seen_at}")
    return accelerator(cells, found)


def _peak(precision: str) -> str:
    kind = "tops" if precision.startswith("int") else "tflops"
    return f"{precision}_{kind}" if precision in {"fp64", "fp32"} else f"{precision}_dense_{kind}"


def _loaded(quantity: str) -> str:
    from rackrate.facts.rows import QUANTITIES

    return QUANTITIES[quantity][1]
