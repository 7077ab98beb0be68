"""Speed rows: a published measurement becomes the workload, layout, engine and card that it was made with.

The workload goes through the same door as a user's: a table of keys, read by
``rackrate.app.asking``. What a row does not say keeps the default.
"""

from __future__ import annotations

import re

from rackrate.app.asking import read_workload
from rackrate.evidence import Fact, Kind
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook, with_model
from rackrate.facts.engine import Engine
from rackrate.facts.names import base_of_tuned, resolve_engine, resolve_model
from rackrate.problems import Finding, Refused
from rackrate.speed.training import padding
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload
from scoring.cells import Row
from scoring.memory_rows import NotScored
from scoring.speed_facts import model_of_row

FORMATS = {
    "bf16/fp16": "bf16", "awq-g128": "awq-int4", "int8-decomp": "int8", "int8wo": "gptq-int8", "int4-g32": "int4-g32",
    "exl2-4.00": "exl2-4", "exl2-3.00": "exl2-3", "exl2-5.00": "exl2-5", "exl2-2.50": "exl2-2.5",
    "int4-group": "gptq-int4", "gguf-f16": "fp16",
}  # fmt: skip
"""Names of formats in the tables, where they differ from the bundled ones."""

KIN = {
    "autoawq-gemm": "autoawq", "autoawq-gemv": "autoawq", "tinychat": "autoawq", "autogptq": "transformers",
    "transformers-bnb": "transformers", "flexgen": "transformers", "deepspeed": "gpt-fast",
    "llm-foundry": "fsdp", "deeplearningexamples": "transformers", "peft": "peft-trl",
    "diffusers-eager": "diffusers", "diffusers-compile": "diffusers", "xdit-eager": "diffusers",
    "xdit-compile": "diffusers", "a1111": "diffusers", "sdnext": "diffusers", "stable-fast": "diffusers",
    "tensorrt": "diffusers", "ollama": "llama.cpp", "llamafile": "llama.cpp", "koboldcpp": "llama.cpp",
    "lmstudio": "llama.cpp", "ik-llama.cpp": "llama.cpp", "llama-cpp-python": "llama.cpp", "exllama": "exllamav2",
    "exllamav3": "exllamav2", "tabbyapi": "exllamav2", "mlc": "gpt-fast", "mlc-llm": "gpt-fast", "torchao": "gpt-fast",
    "torch-compile": "gpt-fast", "lmdeploy": "vllm", "turbomind": "vllm", "tgi": "vllm",
    "text-generation-inference": "vllm", "lightllm": "vllm", "aphrodite": "vllm", "dynamo": "vllm",
    "nim": "tensorrt-llm", "triton-trtllm": "tensorrt-llm", "ctranslate2": "fastertransformer",
    "hqq": "transformers", "optimum": "transformers", "accelerate": "transformers",
}  # fmt: skip
"""Engines of the tables that are no engine of their own here: the bundled one that works as they do."""

STRANGERS = frozenset({
    "exllama", "exllamav3", "tabbyapi", "mlc", "mlc-llm", "torchao", "torch-compile", "lmdeploy", "turbomind", "tgi",
    "text-generation-inference", "lightllm", "ctranslate2", "hqq", "deepspeed",
})  # fmt: skip
"""Those of them with kernels of their own: their ranges are as wide as on cards never measured."""


TRAINS_ALIKE = {"lora": "peft-trl", "qlora": "peft-trl", "full_finetune": "fsdp", "pretrain": "fsdp"}
"""The plain engine of a training task, for engines that do not do it here."""

NARROW = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
"""Arithmetic of training by the format that the table names; weights stay in 16 bits."""

STORES_SCORES = frozenset({"deeplearningexamples"})
"""Training engines of the tables from before flash attention."""

ADAPTED = {"huggingface/peft": ("q", "v"), "NVIDIA-NeMo/Megatron-Bridge": ("q", "k", "v")}
"""Linear layers with adapters in the recipes of a source (their count of trained parameters; target_modules)."""
BLOCK_SCALED = ("Qwen/Qwen3", "deepseek-ai/", "MiniMaxAI/")
"""Whose FP8 checkpoints carry a scale for each block of 128 x 128 weights."""

DATED = {
    "vllm": {"2023": "0.2", "2024": "0.5", "2025": "0.9", "2026": "0.22"},
    "llama.cpp": {"2023": "1500", "2024": "2900", "2024-06": "3200", "2025": "5000", "2026": "8000"},
}
"""Versions in use from a date on, for rows that state a date in place of a version."""

INFERENCE = frozenset({"decode", "prefill", "serve"})
LONE_PROMPT, LONE_OUTPUT = 100, 400
"""Tokens of a batch-1 row that states none (a few per cent at most)."""

ALL_AT_ONCE = 65536
"""Concurrency of rows in which all requests come at once: the engine fills its batch."""


class Case(Value, frozen=True, kw_only=True):
    """What to estimate for one row.

    ``through_server``: timed by a client of the engine's HTTP server. ``held``:
    requests that the cache of one replica holds.
    """

    workload: Workload
    layout: Layout
    engine: Engine
    card: Accelerator
    concurrency: int
    through_server: bool = False
    held: int = 0


def case_of(row: Row, book: FactBook) -> Case:
    """The workload of a row.

    Raises:
        NotScored: the row cannot be understood; the text says why.
    """
    task = row.text("norm_task")
    own = model_of_row(row)
    known = book if own is None else with_model(book, own)
    name = (row.text("model_id") or row.text("model")) if own is None else own.id
    if isinstance(resolve_model(name, known.model_ids), Finding):
        tuned = base_of_tuned(name, known.model_ids)
        if tuned is None:
            raise NotScored("model not known: give its numbers with --models")
        name = tuned
    if row.text("gpu_id") not in book.accelerators:
        raise NotScored("card not known: give its numbers with --gpus")
    engine = engine_name(row, task, known)
    try:
        workload = read_workload(asked(row, task, name, engine), {}, known).workload
    except Refused as refused:
        first = refused.findings[0]
        raise NotScored(f"{first.subject}: {first.code} ({first.observed[:60]})") from refused
    return Case(
        workload=workload,
        layout=layout_of(row),
        engine=stranger(known.engine(workload.engine_id), row.text("norm_engine")),
        card=card_of(row, book),
        concurrency=concurrency_of(row),
        through_server="HTTP server" in row.text("note"),
    )


def stranger(engine: Engine, name: str) -> Engine:
    """The engine that stands for another one, which was measured on no card."""
    return replace(engine, speed=replace(engine.speed, measured_on=frozenset())) if name in STRANGERS else engine


def engine_name(row: Row, task: str, book: FactBook) -> str:
    """The engine of a row, its version with it where policies differ by version."""
    name = row.text("norm_engine")
    found = resolve_engine(KIN.get(name, name), book.engine_ids)
    wanted = "inference" if task in INFERENCE else task
    if isinstance(found, Finding) or wanted not in book.engine(found).tasks:
        usual = TRAINS_ALIKE.get(task)
        if usual is None:
            raise NotScored(f"engine {name or 'not stated'} for {task}")
        return usual
    version = own_version(found, name, row.text("engine_version"))
    return f"{found}=={version}" if version else found


def own_version(engine: str, name: str, said: str) -> str:
    """The version of the bundled engine that a cell means: its own number, or the one in use at a date."""
    build = re.match(r"(?:b|build )(\d{4,5})\b", said)
    if build:
        return build.group(1)
    known = DATED.get(engine, {})
    if re.match(r"20\d\d", said):
        reached = [version for since, version in known.items() if since <= said[:7]]
        return reached[-1] if reached else ""
    version = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", said)
    if engine == "llama.cpp":
        return known["2024"] if not said else ""
    return version.group(1) if version and name == engine else ""


def asked(row: Row, task: str, model: str, engine: str) -> dict[str, object]:
    """The table of keys that a user would write for this row."""
    keys: dict[str, object] = {"model": model, "task": "inference" if task in INFERENCE else task, "engine": engine}
    form = FORMATS.get(row.text("weight_format"), row.text("weight_format"))
    if form == "int8" and row.text("norm_engine") == "gpt-fast":
        form = "gptq-int8"  # weights alone, a scale a channel
    if row.text("weight_format") == "int8" and row.text("norm_engine") == "transformers-bnb":
        form = "int8-plain"
    if task in INFERENCE and form == "fp8" and row.text("model_id").startswith(BLOCK_SCALED):
        form = "fp8-block"
    if form in {"bf16", "fp16", "fp32"} or (task not in INFERENCE and form in NARROW):
        keys["precision"] = NARROW.get(form, form)
    elif form:
        keys["quantization"] = form
    if task in INFERENCE:
        keys["serving"] = _serving(row)
    elif task != "diffusion":
        keys["training"] = _training(row, task)
    return keys


def concurrency_of(row: Row) -> int:
    """Requests in flight."""
    if row.text("concurrency") == "max":
        return ALL_AT_ONCE
    return max(1, round(row.number("concurrency") or 1))


def _serving(row: Row) -> dict[str, object]:
    prompt, new = row.whole("prompt_tokens"), row.whole("new_tokens")
    if not row.text("prompt_tokens") and row.text("norm_task") == "decode":
        prompt, new = LONE_PROMPT, new or LONE_OUTPUT
    narrow = row.text("norm_engine") == "tensorrt-llm" and row.text("weight_format") in {"fp8", "nvfp4"}
    return {
        **({"cache_precision": "fp8"} if narrow else {}),  # its quantised checkpoints quantise the cache too
        "prompt_tokens": max(1, prompt),
        "output_tokens": max(1, new),
        "concurrency": concurrency_of(row),
        "mode": "online",
    }


def _training(row: Row, task: str) -> dict[str, object]:
    micro, tokens = row.whole("micro_batch"), row.whole("seq_len")
    if not tokens:
        raise NotScored("no sequence length stated")
    groups = max(1, row.whole("dp", 1))
    padded = row.text("norm_metric") == "samples_per_s"  # every sample is padded to the stated length
    if row.text("packed") == "false" and "mean sample" in row.text("note"):
        tokens = round(tokens * padding(micro))
    if not micro and row.text("norm_engine") == "megatron":
        micro = 1
    whole = row.whole("global_batch") or max(1, micro) * groups
    keys: dict[str, object] = {
        "sequence_tokens": tokens,
        "micro_batch": micro or max(1, whole // groups),
        "tokens": float(whole * tokens),
        "packed": row.text("packed") != "false" or padded,
        "compiled": compiled(row),
    }
    if row.text("norm_engine") in STORES_SCORES:
        keys["attention"] = "eager"
    if whole % int(str(keys["micro_batch"])) == 0:
        keys["global_batch"] = whole
    said = row.text("grad_checkpointing") or ("selective" if row.text("norm_engine") == "megatron" else "")
    if said:
        keys["checkpointing"] = {"true": "full", "selective": "selective"}.get(said, "none")
    rank = re.search(r"rank\D{0,3}(\d+)", row.text("note"))
    if rank and task in {"lora", "qlora"}:
        keys["lora_rank"] = int(rank.group(1))
    targets = ADAPTED.get(row.text("source"))
    if targets and task in {"lora", "qlora"}:
        keys["lora_targets"] = list(targets)
    return keys


def compiled(row: Row) -> bool:
    """Whether layers are compiled: said, or a later step of a table of techniques that add up."""
    note = row.text("note").casefold()
    if "cumulative" in note:
        return "+packed" not in note
    return "compile" in note and "compile false" not in note


MACHINE_CARDS, RACK_CARDS, SUPERCHIPS = 8, 64, ("gb200", "gb300")


def layout_of(row: Row) -> Layout:
    """How the model is spread; a split of layers without pipelining is llama.cpp's, or device_map's."""
    pipeline = max(1, row.whole("pp", 1))
    inference = row.text("norm_task") in INFERENCE
    layout = Layout(
        tensor=max(1, row.whole("tp", 1)),
        pipeline=pipeline,
        data=max(1, row.whole("dp", 1)),
        context=1 if inference else max(1, row.whole("cp", 1)),
        expert=1 if inference else max(1, row.whole("ep", 1)),
        zero_stage=3 if row.flag("fsdp") else int(row.text("norm_engine") == "megatron"),
        layer_split=pipeline > 1 and inference and row.text("norm_engine") in {"llama.cpp", "transformers"},
    )
    return replace(layout, nodes=nodes_of(row, layout))


def nodes_of(row: Row, layout: Layout) -> int:
    """Machines: those stated, else as many as hold eight cards each (superchips: a rack of up to 64)."""
    stated = re.search(r"\b(\d+) nodes\b", row.text("note"))
    if stated:
        return int(stated.group(1))
    most = RACK_CARDS if row.text("gpu_id").startswith(SUPERCHIPS) else MACHINE_CARDS
    inside = max(n for n in range(1, most + 1) if layout.gpus % n == 0)
    return layout.gpus // inside if layout.gpus > most else 1


def card_of(row: Row, book: FactBook) -> Accelerator:
    """The card of the row, at the power limit that the source states."""
    card = book.accelerators[row.text("gpu_id")]
    watts = row.number("power_limit_w")
    if watts is None:
        return card
    limit = Fact(value=watts, unit="W", kind=Kind.PUBLISHED, source=row.text("source"))
    return replace(card, facts={**card.facts, "power_limit_w": limit})
