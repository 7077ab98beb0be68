"""From a workload to the job that a simulation runs, or why it cannot be simulated."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.evidence import Unknown
from rackrate.facts.engine import Engine
from rackrate.memory.simulation.bundled import config_of
from rackrate.memory.simulation.records import Adapters, Job
from rackrate.memory.simulation.run import OPTIMIZERS
from rackrate.problems import Code, Finding
from rackrate.workload.workload import Checkpointing, Serving, Task, Training, Workload

_DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_PLAIN = frozenset({"fp32", "bf16", "fp16"})
_ALL = ("q", "k", "v", "o", "gate", "up", "down")
_TRANSFORMERS = "transformers"


def job_of(workload: Workload, engine: Engine, config: Mapping[str, object] | None) -> Job | list[Finding]:
    """The job of ``workload``; ``config`` is the model's own configuration where it is at hand."""
    problems = _problems(workload, engine)
    values = _config(workload, config)
    if isinstance(values, Finding):
        problems.append(values)
    if problems or isinstance(values, Finding):
        return problems
    if workload.training is not None:
        return _training_job(workload, workload.training, engine, values)
    if workload.serving is None:
        raise ValueError("a workload trains or serves")
    return _serving_job(workload, workload.serving, values)


def _config(workload: Workload, config: Mapping[str, object] | None) -> tuple[tuple[str, object], ...] | Finding:
    if config is not None:
        return tuple(config.items())
    found = config_of(workload.model)
    if not isinstance(found, Unknown):
        return found
    return _cannot("model", found.reason, "a config.json", "give the model as a path, or as hub:org/name")


def _training_job(
    workload: Workload, training: Training, engine: Engine, config: tuple[tuple[str, object], ...]
) -> Job:
    narrow = _DTYPES[workload.precision]
    policy = engine.training
    adapts = workload.task.trains_adapters
    pure = policy is None or training.pure_16bit or adapts or not policy.master_weights or narrow == "float32"
    wide = max(4 if narrow == "float32" else 2, policy.adapter_bytes if policy else 4)
    targets = _ALL if not training.lora_targets or "all" in training.lora_targets else training.lora_targets
    form = "foreach" if policy is None or policy.optimizer_temporary else "fused"
    return Job(
        config=config,
        trains=True,
        batch=training.micro_batch,
        tokens=training.written_tokens,
        source_tokens=training.read_tokens,
        accumulation=-(-training.global_batch // training.micro_batch),
        dtype=_DTYPES[workload.weights.id] if adapts else narrow if pure else "float32",
        autocast="" if pure else narrow,
        optimizer=f"{training.optimizer}-{form}",
        checkpointing=training.checkpointing is Checkpointing.FULL,
        attention=policy.attention if policy else "flash",
        adapters=Adapters(rank=training.lora_rank, targets=targets, element_bytes=wide) if adapts else None,
    )


def _serving_job(workload: Workload, serving: Serving, config: tuple[tuple[str, object], ...]) -> Job:
    return Job(
        config=config,
        trains=False,
        batch=serving.concurrency,
        tokens=serving.context_tokens - serving.output_tokens,
        output_tokens=serving.output_tokens,
        dtype=_DTYPES[workload.weights.id],
    )


def _problems(workload: Workload, engine: Engine) -> list[Finding]:
    """Everything about a workload that this simulation does not run."""
    found = []
    task, training = workload.task, workload.training
    if task in {Task.DIFFUSION, Task.RENDER}:
        return [_cannot("task", str(task), "training or inference of a language model", "leave --simulate out")]
    if workload.limits.gpu_counts and workload.limits.gpu_counts[0] > 1:
        found.append(_cannot("--gpus", str(workload.limits.gpu_counts[0]), "one card", "leave --gpus out"))
    if workload.serving is not None and workload.serving.encoded:
        found.append(_cannot("task", str(task), "training, or inference of a decoder", "leave --simulate out"))
    if workload.weights.id not in _PLAIN:
        action = "--task lora" if task.trains_adapters else "--quantization bf16, or leave --simulate out"
        expected = "weights in bf16, fp16 or fp32: kernels of other formats are not simulated"
        found.append(_cannot("weights", workload.weights.id, expected, action))
    if workload.precision not in _DTYPES:
        found.append(_cannot("precision", str(workload.precision), "bf16, fp16 or fp32", "--precision bf16"))
    if not task.trains and engine.id != _TRANSFORMERS:
        found.append(_cannot("engine", engine.id, "transformers, whose code is run", "--engine transformers"))
    return [*found, *(_training_problems(training, engine) if training is not None else [])]


def _training_problems(training: Training, engine: Engine) -> list[Finding]:
    found = []
    if training.optimizer not in OPTIMIZERS:
        expected = f"one of PyTorch's: {', '.join(OPTIMIZERS)}"
        found.append(_cannot("training.optimizer", training.optimizer, expected, "--optimizer adamw"))
    if training.checkpointing is Checkpointing.SELECTIVE:
        found.append(_cannot("training.checkpointing", "selective", "none or full", "--checkpointing full"))
    policy = engine.training
    if policy is not None and policy.loss != "full":
        observed = f"{engine.id}, whose loss is {policy.loss}"
        found.append(_cannot("engine", observed, "an engine that keeps all logits", "--engine transformers"))
    return found


def _cannot(subject: str, observed: str, expected: str, action: str) -> Finding:
    return Finding(code=Code.NOT_SIMULATED, subject=subject, observed=observed, expected=expected, action=action)
