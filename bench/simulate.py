"""Simulated training steps beside the closed form: agreement, seconds and memory.

    python bench/simulate.py [--quick]

Six models in full size, each trained in full and with LoRA, with and without checkpointing, at 512 and 2,048
tokens, in 16 bits throughout; and one of 70 billion parameters. Needs the extra `measure`. Each model runs in a
process of its own, whose time includes the start of PyTorch and whose peak of resident memory is reported.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from rackrate.app.asking import read_workload
from rackrate.app.context import context
from rackrate.app.simulated_jobs import job_of
from rackrate.memory.estimate import demand
from rackrate.memory.simulation.records import Job, Simulation
from rackrate.memory.simulation.run import simulate_job
from rackrate.memory.training import TrainingDemand
from rackrate.units import GIB
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Workload

ROOT = Path(__file__).parents[1]
MODELS = (
    "meta-llama/Llama-3.2-1B",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen2.5-7B-Instruct",
    "meta-llama/Llama-2-7b-hf",
    "meta-llama/Meta-Llama-3.1-8B",
    "mistralai/Mistral-7B-v0.1",
)
LARGE = "meta-llama/Llama-2-70b-hf"
TASKS, CHECKPOINTING, TOKENS = ("full_finetune", "lora"), ("none", "full"), (512, 2048)


class Case(NamedTuple):
    """One simulation beside the closed form's likely peak of allocated memory."""

    model: str
    task: str
    checkpointing: str
    tokens: int
    simulated_gib: float
    estimated_gib: float
    seconds: float
    cpu_seconds: float

    @property
    def difference(self) -> float:
        """The closed form over the simulation, less one."""
        return self.estimated_gib / self.simulated_gib - 1


class Run(NamedTuple):
    """All cases of one model in one process."""

    cases: list[Case]
    seconds: float
    peak_mib: float


def asked(model: str, task: str, checkpointing: str, tokens: int) -> dict[str, object]:
    """The workload: one sequence a step, 16-bit weights, gradients and moments (adapters are in FP32)."""
    training: dict[str, object] = {
        "sequence_tokens": tokens,
        "micro_batch": 1,
        "global_batch": 1,
        "checkpointing": checkpointing,
        "pure_16bit": True,
    }
    engine = "transformers"
    if task == "lora":
        training |= {"lora_rank": 16, "lora_targets": ["all"]}
        engine = "peft-trl"
    return {"model": model, "task": task, "engine": engine, "training": training}


def question(table: dict[str, object]) -> tuple[Workload, Job]:
    """The workload of a table, and the job that simulates it."""
    book = context().book
    workload = read_workload(table, {}, book).workload
    job = job_of(workload, book.engine(workload.engine_id), None)
    if not isinstance(job, Job):
        raise SystemExit("\n".join(map(str, job)))
    return workload, job


def estimated_bytes(workload: Workload) -> float:
    """The closed form's likely peak of what the framework allocates on one card."""
    needed = demand(workload, Layout(), context().book.engine(workload.engine_id))
    if not isinstance(needed, TrainingDemand):
        raise SystemExit(str(needed))
    return needed.stages[0].allocated.likely


def simulated(job: Job) -> Simulation:
    """The simulation, unwatched."""
    return simulate_job(job, lambda _step, _count: None)


def measure(model: str) -> Run:
    """Every case of one model, in this process."""
    import resource

    begin, cases = time.perf_counter(), []
    every = itertools.product(TASKS, CHECKPOINTING, TOKENS)
    for task, checkpointing, tokens in [("full_finetune", "full", 2048)] if model == LARGE else every:
        workload, job = question(asked(model, task, checkpointing, tokens))
        start, worked = time.perf_counter(), time.process_time()
        found = simulated(job)
        took, used = time.perf_counter() - start, time.process_time() - worked
        peaks = found.peak_bytes / GIB, estimated_bytes(workload) / GIB
        cases.append(Case(model, task, checkpointing, tokens, *peaks, took, used))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Run(cases, time.perf_counter() - begin, peak / (2**20 if sys.platform == "darwin" else 2**10))


def in_process(model: str) -> Run:
    """Every case of one model, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, __file__, "--one", model], cwd=ROOT, capture_output=True, text=True, check=True
    )
    cases, seconds, peak = json.loads(ran.stdout.splitlines()[-1])
    return Run([Case(*case) for case in cases], seconds, peak)


def main() -> list[Run]:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--one", help="one model, in this process, as JSON")
    parser.add_argument("--quick", action="store_true", help="the two smallest models alone")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return []
    runs = []
    for model in MODELS[:2] if options.quick else (*MODELS, LARGE):
        run = in_process(model)
        runs.append(run)
        for case in run.cases:
            print(
                f"{case.model:<30}{case.task:<15}{case.checkpointing:<6}{case.tokens:>6}"
                f"{case.simulated_gib:>10.3f}{case.estimated_gib:>10.3f} GiB{case.difference:>+8.2%}"
                f"{case.seconds:>7.1f} s{case.cpu_seconds:>7.1f} s of the processor"
            )
        print(f"{model:<30}{run.seconds:.1f} s in all, {run.peak_mib:.0f} MiB resident")
    return runs


if __name__ == "__main__":
    main()
