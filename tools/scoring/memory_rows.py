"""Memory rows: a published measurement becomes the workload, layout and card that it was made with.

The workload goes through the same door as a user's: a table of keys, read by
``rackrate.app.asking``. What a row does not say keeps the default.
"""

from __future__ import annotations

import re
from functools import cache

from rackrate.app.asking import read_workload
from rackrate.evidence import Fact, Kind
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook
from rackrate.facts.bundled import load
from rackrate.facts.engine import Engine
from rackrate.facts.names import resolve_engine
from rackrate.problems import Finding, Refused
from rackrate.units import GIB
from rackrate.values import Value
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload
from scoring.cells import Row
from scoring.memory_models import NotScored, model_of
from scoring.memory_words import kin_of, optimizer_of, weight_format

FORMATS = {
    "awq-g128": "awq-int4", "awq": "awq-int4", "int8-bnb": "int8", "gptq-g128": "gptq-int4", "fp16": "fp16",
    "gptq": "gptq-int4", "bnb.nf4": "nf4", "bnb.nf4-dq": "nf4-dq", "bnb.fp4": "nf4", "bnb.int8": "int8", "4bit": "nf4",
    "int4": "awq-int4", "8bit": "int8", "fp8_e4m3": "fp8", "bfloat16": "bf16", "float16": "fp16", "float32": "fp32",
    "w8a8": "int8-w8a8", "w4a16": "gptq-int4", "none": "", "no": "", "na": "", "unknown": "",
}  # fmt: skip
"""Names of formats in the tables, where they differ from the bundled ones."""

TARGETS = {
    "c_attn": ("q", "k", "v"), "c_proj": ("o", "down"), "w1": ("up",), "w2": ("gate",), "mlp": ("gate", "up", "down"),
    "head": ("head",), "all-linear": ("all",), "all": ("all",), "see": ("all",),
    "qkv": ("q", "k", "v"), "query_key_value": ("q", "k", "v"), "qkv_proj": ("q", "k", "v"), "w_pack": ("q", "k", "v"),
    "wqkv": ("q", "k", "v"), "query": ("q",), "key": ("k",), "value": ("v",), "wq": ("q",), "wk": ("k",), "wv": ("v",),
    "wo": ("o",), "out_proj": ("o",), "output_proj": ("o",), "dense": ("o",), "projection": ("o",),
    "gate_up_proj": ("gate", "up"), "w3": ("up",), "fc1": ("up",), "fc2": ("down",), "c_fc": ("up",),
    "dense_h_to_4h": ("up",), "dense_4h_to_h": ("down",), "attention": ("q", "k", "v", "o"),
}  # fmt: skip
TARGET_NAMES = ("q", "k", "v", "o", "gate", "up", "down")

ACCUMULATING = frozenset({"litgpt"})
"""Engines whose recipes accumulate gradients unless told otherwise (litgpt config_hub: global_batch_size)."""

SHORT_TOKENS = 128
"""A length for rows that bound weights and states alone."""

TASK_ENGINES = {"inference": "transformers", "full_finetune": "transformers", "pretrain": "fsdp"}
"""Engines for rows of engines that are not known: the plain ones."""

ADAPTER_ENGINE = "peft-trl"
ADAPTING = frozenset({"lora", "qlora"})

OF_TRANSFORMERS = frozenset({"transformers", "peft-trl", "llama-factory", "own-loop"})
"""Engines whose versions are those of transformers."""

MASTERED = frozenset({"deepspeed", "megatron"})
"""Engines whose optimizers keep FP32 copies of 16-bit weights whatever a table says of the weights' type."""

BEFORE_SDPA = "4.35"
"""The last version of transformers whose attention was eager unless told otherwise."""


QUANTISED = frozenset({"int8-bnb", "int8", "nf4", "nf4-dq", "gptq-int4", "awq-g128"})


class Case(Value, frozen=True, kw_only=True):
    """What to estimate for one row; ``card`` is hypothetical where the row names none."""

    workload: Workload
    layout: Layout
    engine: Engine
    card: Accelerator


def case_of(row: Row, book: FactBook) -> Case:
    """The workload of a row.

    Raises:
        NotScored: the row cannot be understood; the text says why.
    """
    task = row.text("norm_task")
    if not task:
        raise NotScored("a method that is not among the tasks")
    if task == "lora" and row.text("weight_format") in QUANTISED:
        task = "qlora"
    engine = engine_name(row, task, book)
    row = Row({**row.cells, "model_id": model_of(row, book)})
    try:
        workload = read_workload(asked(row, task, engine), {}, book).workload
    except Refused as refused:
        raise NotScored(_why(refused)) from refused
    return Case(
        workload=workload,
        layout=layout_of(row, workload.engine_id),
        engine=book.engine(workload.engine_id),
        card=card_of(row, book),
    )


def _why(refused: Refused) -> str:
    first = refused.findings[0]
    about = first.subject if first.subject not in {"model", "--model"} else "model"
    return f"{about}: {first.code}"


def format_of(row: Row) -> str:
    """The bundled name of the row's weight format; nothing where weights are as wide as the arithmetic."""
    name = row.text("weight_format").casefold()
    if name in FORMATS:
        return FORMATS[name]
    if not name or name in known_formats() or "fp8 matmul" in name:  # products in FP8 leave the weights as they are
        return name if name in known_formats() else ""
    return weight_format(name, known_formats())


@cache
def known_formats() -> frozenset[str]:
    """The bundled formats."""
    return frozenset(load().formats)


def engine_name(row: Row, task: str, book: FactBook) -> str:
    """The engine of a row with its version if stated, or its nearest kin, or the plain one that does the task."""
    name = row.text("norm_engine")
    found = resolve_engine(name, book.engine_ids)
    kin = kin_of(name) if isinstance(found, Finding) else found
    old = row.text("attention_impl") == "eager"
    if not kin or not _does(book.engine(kin), row, task):
        kin = ADAPTER_ENGINE if task in ADAPTING else TASK_ENGINES.get(task, "")
        if not kin:
            raise NotScored(f"engine {name or 'not stated'} for {task}")
        return f"{kin}=={BEFORE_SDPA}" if old and kin == "transformers" else kin
    version = _of_that_time(row) or _version(row.text("framework"), kin, kin=isinstance(found, Finding))
    if version:
        return f"{kin}=={version}"
    return f"{kin}=={BEFORE_SDPA}" if old and kin == "transformers" else kin


def _version(text: str, engine: str, *, kin: bool) -> str:
    """The version that counts for an engine: of transformers where that is whose code runs, else the first one."""
    if engine in OF_TRANSFORMERS:
        said = re.search(r"transformers\D{0,3}(\d+\.\d+(?:\.\d+)?)", text)
    else:
        said = None if kin else re.search(r"(\d+\.\d+(?:\.\d+)?)", text)
    return said.group(1) if said else ""


TITAN = (
    ("2025-10", "0.2.0"),
    ("2025-08", "0.1.1"),
    ("2025-04", "0.1.0"),
    ("2024-12", "0.0.2"),
    ("2024-10", "0.0.1.1"),
    ("2024-07", "0.0.1"),
)
"""Months from which torchtitan's code was that of a version (assets/version.txt and its history), newest first."""

BEFORE_TITAN = "0.0.0"


def _of_that_time(row: Row) -> str:
    """The version of torchtitan by the month that the row names, which says more than the number that code had."""
    if row.text("norm_engine") != "torchtitan":
        return ""
    for text in (row.text("framework"), row.text("source"), row.text("notes")):
        said = re.search(r"(20\d\d)-?(0[1-9]|1[0-2])(?!\d)", text)
        if said:
            month = f"{said[1]}-{said[2]}"
            return next((version for since, version in TITAN if month >= since), BEFORE_TITAN)
    return ""


def _does(engine: Engine, row: Row, task: str) -> bool:
    form = format_of(row)
    return task in engine.tasks and (not form or form in engine.weight_formats)


def stands_in(row: Row, book: FactBook) -> bool:
    """Whether an engine that is not bundled is read as its kin, or as the plain one."""
    return isinstance(resolve_engine(row.text("norm_engine"), book.engine_ids), Finding)


def asked(row: Row, task: str, engine: str) -> dict[str, object]:
    """The table of keys that a user would write for this row."""
    keys: dict[str, object] = {"model": row.text("model_id"), "task": task, "engine": engine}
    form = format_of(row)
    if form:
        keys["quantization"] = form
    if row.text("compute_dtype") in {"bf16", "fp16", "fp32"}:
        keys["precision"] = row.text("compute_dtype")
    if task == "inference":
        keys["serving"] = _serving(row)
    elif task == "diffusion":
        keys["images"] = _images(row)
    else:
        keys["training"] = _training(row, task, engine)
    return keys


def _serving(row: Row) -> dict[str, object]:
    prompt, new = row.whole("prompt_tokens"), row.whole("new_tokens")
    total = row.whole("norm_seq_len") or prompt + new
    if not total and not new:
        raise NotScored("no tokens stated")
    prompt = prompt or max(1, total - new)
    return {
        "prompt_tokens": prompt,
        "output_tokens": max(1, new),
        "context_tokens": max(total, prompt + max(1, new)),
        "concurrency": max(1, row.whole("norm_batch", 1)),
    }


OFFLOADS = {"model cpu offload": "model", "sequential cpu offload": "sequential"}


def _images(row: Row) -> dict[str, object]:
    if row.text("task") != "inference":
        raise NotScored("training of a diffusion model")
    sides = re.search(r"(\d{2,4})\s*x\s*(\d{2,4})", row.text("notes"))
    keys: dict[str, object] = {"at_once": max(1, row.whole("norm_batch", 1))}
    keys["pipeline_offload"] = OFFLOADS.get(row.text("parallelism"), "none")
    if sides:
        keys |= {"width": int(sides[1]), "height": int(sides[2])}
    return keys


def _training(row: Row, task: str, engine: str) -> dict[str, object]:
    batch, tokens = row.whole("norm_batch"), row.whole("norm_seq_len")
    if row.text("score_reason").startswith("static"):
        batch, tokens = batch or 1, tokens or SHORT_TOKENS
    if not batch or not tokens:
        raise NotScored("no batch or no sequence length stated")
    keys: dict[str, object] = {
        "sequence_tokens": tokens,
        "micro_batch": batch,
        "checkpointing": checkpointing(row),
        "packed": "longest" not in row.text("notes"),
        "compiled": compiled(row),
        "step_in_backward": row.flag("optimizer_in_backward"),
        "offload": offload(row),
    }
    if row.text("norm_engine") not in ACCUMULATING:
        keys["global_batch"] = batch * max(1, row.whole("dp", 1)) * accumulation(row)
    if row.text("loss_impl") in {"full", "chunked", "fused"}:
        keys["loss"] = row.text("loss_impl")
    if row.text("attention_impl") in {"flash", "sdpa", "eager"}:
        keys["attention"] = row.text("attention_impl")
    optimizer = optimizer_of(row.text("optimizer_id"))
    if optimizer:
        keys["optimizer"] = optimizer
    if task in {"lora", "qlora"}:
        keys |= _adapters(row)
    elif row.text("compute_dtype") != "fp32" and engine.partition("==")[0] not in MASTERED:
        keys["pure_16bit"] = row.text("param_dtype_trainable") in {"bf16", "fp16"}
    return keys


SAVED = {"emb": "embedding", "head": "head"}
"""Modules trained whole beside adapters, by the part of a task that says so (``lora+emb+head``)."""


def _adapters(row: Row) -> dict[str, object]:
    keys: dict[str, object] = {}
    if row.whole("lora_rank"):
        keys["lora_rank"] = row.whole("lora_rank")
    targets = targets_of(row.text("lora_targets"))
    if targets:
        keys["lora_targets"] = list(targets)
    saved = [name for part, name in SAVED.items() if part in row.text("task").split("+")]
    if saved:
        keys["modules_to_save"] = saved
    return keys


def targets_of(text: str) -> tuple[str, ...]:
    """The linear layers that a row names; what has no adapter here is left out."""
    found: dict[str, None] = {}
    for word in filter(None, (part.strip().casefold() for part in re.split(r"[,;|+ ]", text))):
        for name in TARGETS.get(word, (word.removesuffix("_proj"),)):
            if name in TARGET_NAMES or name == "all":
                found[name] = None
    return tuple(found)


def compiled(row: Row) -> bool:
    """Whether layers are compiled; in torchtune's table of steps that add up, chunks come after compiling."""
    notes = row.text("notes").casefold()
    later = "cumulative" in notes and row.text("loss_impl") == "chunked"
    without = re.search(r"\b(?:no|not|without)(?: an?)?(?: \w+)? compile", notes)
    return later or ("compile" in notes and "eager" not in notes and not without)


def offload(row: Row) -> str:
    """What waits in the host's memory."""
    if "offload" in row.text("grad_ckpt"):
        return "activations"
    said = row.text("offload")
    return {"optimizer": "optimizer", "params+optimizer": "parameters"}.get(said, "none")


def accumulation(row: Row) -> int:
    """Micro-batches of one step, as the notes say (``grad accum 4``)."""
    said = re.search(r"accum\w*\D{0,4}(\d+)", row.text("notes"))
    return int(said.group(1)) if said else 1


def checkpointing(row: Row) -> str:
    """Which activations are recomputed: the flag and the words of the row."""
    said = row.text("grad_ckpt").casefold()
    if said.startswith("selective"):
        return "selective"
    if said.startswith(("full", "yes")) or (row.flag("grad_checkpointing") and not said.startswith("no")):
        return "full"
    return "none"


def layout_of(row: Row, engine: str) -> Layout:
    """How the model is spread; a naive split of layers counts as a pipeline.

    torchtitan divides norms and residuals wherever it divides layers
    (models/llama3/parallelize.py apply_tp: SequenceParallel).
    """
    pipeline = max(1, row.whole("pp", 1))
    return Layout(
        tensor=max(1, row.whole("tp", 1)),
        pipeline=pipeline,
        data=max(1, row.whole("dp", 1)),
        context=max(1, row.whole("cp", 1)),
        zero_stage=row.whole("zero_stage"),
        layer_split=pipeline > 1 and row.text("norm_task") == "inference",
        sequence=max(1, row.whole("tp", 1)) > 1
        and (engine.startswith("fsdp") or "sequence" in row.text("parallelism")),
    )


def card_of(row: Row, book: FactBook) -> Accelerator:
    """The card of the row, or one with memory for anything (only its CUDA context matters)."""
    found = book.accelerators.get(row.text("gpu_id"))
    return found if found is not None else hypothetical(1024.0)


def hypothetical(gigabytes: float, capability: tuple[int, int] = (8, 0)) -> Accelerator:
    """A card whose driver reports this many GiB."""
    total = Fact(value=gigabytes * GIB, unit="bytes", kind=Kind.ASSUMED, source="a hypothetical card")
    return Accelerator(
        id=f"hypothetical-{gigabytes:g}",
        vendor="NVIDIA",
        product=f"hypothetical card of {gigabytes:g} GB",
        architecture="",
        form_factor="",
        memory_type="HBM2e",
        memory_sold_gb=gigabytes,
        compute_capability=capability,
        launch_year=2020,
        facts={"memory_total_bytes": total},
    )
