"""Memory rows as their publishers wrote them: normalised columns that are empty are read from the others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rackrate.units import GB, GIB, MIB
from scoring.cells import Row
from scoring.memory_words import divided, length_of, rank_of, task_of

DTYPES = {
    "bf16": "bf16", "bfloat16": "bf16", "bf16-true": "bf16", "bf16-mixed": "bf16", "fp16": "fp16", "float16": "fp16",
    "half": "fp16", "16-true": "fp16", "fp32": "fp32", "float32": "fp32", "32-true": "fp32", "tf32": "fp32",
    "bf16-amp": "bf16", "fp16-amp": "fp16", "fp16-mixed": "fp16", "16-mixed": "fp16", "float": "fp32", "full": "fp32",
    "fp16/bf16": "bf16", "bf16/fp16": "bf16", "pure_bf16": "bf16", "pure-bf16": "bf16", "16": "fp16", "32": "fp32",
}  # fmt: skip
UNITS = {
    "gb": GB,
    "g": GB,
    "gib": GIB,
    "gb_as_gib": GIB,
    "mib": MIB,
    "mb": 1e6,
    "mb_as_mib": MIB,
    "bytes": 1.0,
    "b": 1.0,
}
METRICS = (
    ("reserved", "reserved"), ("nvml", "nvml"), ("nvidia", "nvml"), ("driver", "nvml"), ("process", "nvml"),
    ("alloc", "allocated"), ("active", "allocated"),
)  # fmt: skip
"""Words of a metric and what they mean, the first that is there."""


def filled(row: Row) -> Row:
    """The row with normalised columns filled where they are empty and another column says enough.

    Rows of components state what was measured in their own words: the size alone is read.
    """
    if row.text("score") == "component":
        return row if row.text("measured_bytes") else Row({**row.cells, "measured_bytes": _measured(row)})
    more = {name: value for name, value in _read(row).items() if value and not row.text(name)}
    return Row({**row.cells, **more}) if more else row


def _read(row: Row) -> dict[str, str]:
    precision = row.text("precision").casefold()
    said = f"{row.text('task')} {row.text('notes')}"
    return {
        "model_id": row.text("model"),
        "norm_task": task_of(row.text("task")),
        "norm_engine": re.split(r"[\s(=<>]", row.text("framework"))[0],
        "weight_format": row.text("quant").casefold() or DTYPES.get(re.split(r"[\s/]", precision)[0], ""),
        "compute_dtype": DTYPES.get(re.split(r"[\s/]", precision)[0], ""),
        "optimizer_id": row.text("optimizer").casefold(),
        "norm_batch": length_of(row.text("batch_micro")),
        "norm_seq_len": length_of(row.text("seq_len")),
        "lora_rank": rank_of(said) if "lora" in said.casefold() else "",
        **_divided(row),
        "metric_id": next((known for word, known in METRICS if word in row.text("metric").casefold()), ""),
        "gpu_id": row.text("gpu"),
        "measured_bytes": _measured(row),
        "score": "yes",
    }


def _divided(row: Row) -> Mapping[str, str]:
    """How the work is divided, where no column of it is filled."""
    if any(row.text(name) for name in ("dp", "tp", "pp", "zero_stage")):
        return {}
    return divided(row.text("parallelism"), row.whole("n_gpus", 1))


def _measured(row: Row) -> str:
    gibibytes, said = row.number("measured_gib"), row.number("source_value")
    if gibibytes is not None:
        return str(gibibytes * GIB)
    unit = UNITS.get(row.text("source_unit").casefold())
    return str(said * unit) if said is not None and unit else ""
