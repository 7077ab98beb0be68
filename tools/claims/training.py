"""Claims about training: adapters, full fine-tuning, mixed precision."""

from __future__ import annotations

from rackrate.app.context import facts
from rackrate.evidence import Unknown
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.units import GIB
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table

from .asking import fit, gb, gib, part, percent, words
from .by_hand import offer, planned
from .registry import Shown, Value, shows

LLAMA_7B = "meta-llama/Llama-2-7b-hf"
BERT = "google-bert/bert-large-uncased"


def tune(model: str, task: str, card: str, more: str = "") -> str:
    """The command that shows how a fine-tune of ``model`` fits."""
    return f"rackrate fit --model {model} --task {task} --gpu {card}{more}"


@shows("C09")
def adapters_on_a40() -> Shown:
    """LoRA and QLoRA on the A40, one sequence of 2048 and larger."""
    tried = {
        "7B LoRA": tune(LLAMA_7B, "lora", "a40"),
        "14B LoRA": tune("Qwen/Qwen2.5-14B-Instruct", "lora", "a40"),
        "34B QLoRA": tune("01-ai/Yi-34B", "qlora", "a40"),
        "14B LoRA, 8 x 4096": tune("Qwen/Qwen2.5-14B-Instruct", "lora", "a40", " --batch 8 --context 4096"),
    }
    found = {name: fit(command) for name, command in tried.items()}
    listed = ", ".join(
        f"{name} {words(document.verdict)} ({gib(document.peak_bytes.likely)})" for name, document in found.items()
    )
    return Shown(
        commands=(tried["14B LoRA"], tried["34B QLoRA"]),
        text=f"Micro-batch 1 x 2048 unless told otherwise: {listed}.",
        values={name: document.verdict for name, document in found.items()},
    )


@shows("C16")
def base_of_lora_and_qlora() -> Shown:
    """The frozen base under LoRA and under QLoRA."""
    commands = {task: tune(LLAMA_7B, task, "a100-pcie-40") for task in ("lora", "qlora")}
    sizes = {task: part(fit(command), "weights") for task, command in commands.items()}
    params = facts().model(LLAMA_7B).params_total
    return Shown(
        commands=tuple(commands.values()),
        text=f"Frozen base of Llama-2-7B: {gb(sizes['lora'])} under LoRA, {gb(sizes['qlora'])} under QLoRA "
        f"({sizes['qlora'] / params:.2f} bytes a parameter; embedding and head stay in 16 bits).",
        values={f"{task}_bytes_per_param": size / params for task, size in sizes.items()},
    )


@shows("C23")
def states_of_full_finetuning() -> Shown:
    """Weights, gradients, moments and master weights of a 7B full fine-tune."""
    command = tune(LLAMA_7B, "full_finetune", "a100-sxm4-80")
    document = fit(command)
    params = facts().model(LLAMA_7B).params_total
    moments = part(document, "optimizer_states")
    names = ("weights", "gradients", "optimizer_states", "master_weights")
    values: dict[str, Value] = {name: part(document, name) / params for name in names}
    listed = ", ".join(f"{words(name)} {gb(part(document, name))}" for name in names)
    return Shown(
        commands=(command,),
        text=f"Llama-2-7B, Adam, standard mixed precision: {listed}. The two FP32 moments are "
        f"{moments / params:.0f} bytes a parameter: {gb(7e9 * moments / params, 0)} for a nominal 7 billion, not 28.",
        values={**values, "moments_bytes": moments, "nominal_moments_bytes": 7e9 * moments / params},
    )


@shows("C24")
def full_finetuning_on_80_gb() -> Shown:
    """A 7B full fine-tune on 40 GB and on 80 GB, and what makes it fit."""
    commands = {card: tune(LLAMA_7B, "full_finetune", card) for card in ("a100-sxm4-40", "a100-sxm4-80")}
    small, large = (fit(command) for command in commands.values())
    changes = {c.knob: c.after for c in large.changes}
    listed = ", ".join(f"{c.knob} {c.before} -> {c.after}" for c in large.changes)
    sharded = fit(f"{commands['a100-sxm4-80']} --gpus 2")
    values: dict[str, Value] = {
        "verdict_40": small.verdict,
        "verdict_80": large.verdict,
        "peak_bytes": large.peak_bytes.likely,
        "usable_bytes": large.usable_bytes,
        "verdict_of_two": sharded.verdict,
        **{f"change_{knob}": after for knob, after in changes.items()},
    }
    return Shown(
        commands=(commands["a100-sxm4-80"],),
        text=f"Peak {gib(large.peak_bytes.likely)} of {gib(large.usable_bytes)} usable on the 80 GB card: it does "
        f"not fit there, nor on 40 GB. Any one of these makes it fit on 80 GB: {listed}.",
        values=values,
    )


@shows("C45")
def bert_large() -> Shown:
    """What BERT-Large takes: its weights, a training run with stored attention scores, one without."""
    command = tune(BERT, "full_finetune", "v100-sxm2-32", f" {BERT_RUN}")
    document = fit(command)
    stored = {p: _with_stored_scores(p) for p in ("fp32", "fp16")}
    weights = part(document, "weights")
    return Shown(
        commands=(command,),
        text=f"Weights {gib(weights, 2)} in FP32. The 13 GB are a training run: at batch 4 x 512 in FP32 "
        f"{gib(stored['fp32'].reserved.likely)} without the CUDA context when attention stores its scores, as it did "
        f"when the figure was published ({gib(stored['fp16'].reserved.likely)} in mixed precision), and "
        f"{gib(document.reserved_bytes.likely)} with today's fused attention.",
        values={
            "weights_bytes": weights,
            "fp32_reserved_bytes": stored["fp32"].reserved.likely,
            "mixed_reserved_bytes": stored["fp16"].reserved.likely,
            "fused_reserved_bytes": document.reserved_bytes.likely,
        },
    )


BERT_RUN = "--engine transformers --precision fp32 --batch 4 --global-batch 16 --context 512 --checkpointing none"


def _with_stored_scores(precision: str) -> MemoryEstimate:
    """The BERT-Large run in an engine whose attention stores its scores, as transformers did by default until 2024."""
    book = facts()
    sizes = {"micro_batch": 4, "global_batch": 16, "sequence_tokens": 512, "checkpointing": "none"}
    asked = {"model": BERT, "task": "full_finetune", "engine": "transformers", "precision": precision}
    parsed = parse(request_from_table({**asked, "training": sizes}), book)
    assert isinstance(parsed, Parsed), parsed
    engine = book.engine("transformers")
    assert engine.training is not None
    eager = replace(engine, training=replace(engine.training, attention="eager"))
    found = estimate(parsed.workload, book.accelerators["v100-sxm2-32"], Layout(), eager)
    assert not isinstance(found, Unknown), found
    return found


@shows("C52")
def mixed_precision() -> Shown:
    """Memory and time of mixed precision against FP32."""
    model = "Qwen/Qwen2.5-1.5B-Instruct"
    commands = {p: tune(model, "full_finetune", "a100-sxm4-80", f" --precision {p}") for p in ("fp32", "bf16")}
    full, mixed = (fit(command) for command in commands.values())
    states = [sum(part(d, name) for name in _STATES) for d in (full, mixed)]
    activations = [sum(part(d, name) for name in ("checkpoints", "backward_layer")) for d in (full, mixed)]
    rate = {p: _trained_tokens_per_s(model, p) for p in commands}
    gain = rate["bf16"] / rate["fp32"]
    return Shown(
        commands=(*commands.values(), "python -m tools.claims C52"),
        text=f"Qwen2.5-1.5B, full fine-tune: weights and states {states[0] / GIB:.1f} GiB in FP32 and "
        f"{states[1] / GIB:.1f} GiB in mixed precision (FP32 master weights stay), activations "
        f"{percent(activations[1] / activations[0])} as large, {gain:.1f} times as fast on an A100.",
        values={
            "states_ratio": states[1] / states[0],
            "activations_ratio": activations[1] / activations[0],
            "speed_ratio": gain,
        },
    )


_STATES = ("weights", "gradients", "optimizer_states", "master_weights")


def _trained_tokens_per_s(model: str, precision: str) -> float:
    workload = {"model": model, "task": "full_finetune", "precision": precision, "currency": "CNY"}
    return planned(workload, [offer("a100-sxm4-80", "18")]).plans[0].pace.likely
