"""Memory rows as their publishers wrote them: normalised columns that are empty are read from the others."""

from __future__ import annotations

import re

from rackrate.units import GB, GIB, MIB
from scoring.cells import Row

TASKS = {
    "full_ft": "full_finetune", "full": "full_finetune", "sft": "full_finetune", "finetune": "full_finetune",
    "fft": "full_finetune", "full_finetune": "full_finetune", "lora": "lora", "dora": "lora", "qlora": "qlora",
    "pretrain": "pretrain", "pretraining": "pretrain", "inference": "inference", "generate": "inference",
    "serving": "inference", "diffusion": "diffusion",
}  # fmt: skip
DTYPES = {
    "bf16": "bf16", "bfloat16": "bf16", "bf16-true": "bf16", "bf16-mixed": "bf16", "fp16": "fp16", "float16": "fp16",
    "half": "fp16", "16-true": "fp16", "fp32": "fp32", "float32": "fp32", "32-true": "fp32", "tf32": "fp32",
}  # fmt: skip
UNITS = {"gb": GB, "gib": GIB, "gb_as_gib": GIB, "mib": MIB, "mb": 1e6, "bytes": 1.0, "b": 1.0}
METRICS = (("reserved", "reserved"), ("nvml", "nvml"), ("nvidia", "nvml"), ("driver", "nvml"), ("alloc", "allocated"))
"""Words of a metric and what they mean, the first that is there."""


def filled(row: Row) -> Row:
    """The row with normalised columns filled where they are empty and another column says enough.

    Rows of components state what was measured in their own words and stay as they are.
    """
    if row.text("score") == "component":
        return row
    more = {name: value for name, value in _read(row).items() if value and not row.text(name)}
    return Row({**row.cells, **more}) if more else row


def _read(row: Row) -> dict[str, str]:
    words = re.split(r"[:+\s]", row.text("task").casefold())
    precision = row.text("precision").casefold()
    return {
        "model_id": row.text("model"),
        "norm_task": TASKS.get(words[0], ""),
        "norm_engine": re.split(r"[\s(=<>]", row.text("framework"))[0],
        "weight_format": row.text("quant").casefold() or DTYPES.get(re.split(r"[\s/]", precision)[0], ""),
        "compute_dtype": DTYPES.get(re.split(r"[\s/]", precision)[0], ""),
        "optimizer_id": row.text("optimizer").casefold(),
        "norm_batch": row.text("batch_micro"),
        "norm_seq_len": row.text("seq_len"),
        "metric_id": next((known for word, known in METRICS if word in row.text("metric").casefold()), ""),
        "gpu_id": row.text("gpu"),
        "measured_bytes": _measured(row),
        "score": "yes",
    }


def _measured(row: Row) -> str:
    gibibytes, said = row.number("measured_gib"), row.number("source_value")
    if gibibytes is not None:
        return str(gibibytes * GIB)
    unit = UNITS.get(row.text("source_unit").casefold())
    return str(said * unit) if said is not None and unit else ""
