"""Workloads, cards and engines for this room's tests: bundled facts, with one setting changed at a time."""

from rackrate.evidence import Fact, Kind, Range, known
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.memory.estimate import estimate
from rackrate.units import MIB
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Limits, Serving, Task, Training, Use, Workload

GIB, GB = 2**30, 10**9
SINGLE = Layout()


def card(mib: float, capability=(8, 0)) -> Accelerator:
    """A card of which nothing matters but what its driver reports."""
    total = Fact(value=mib * MIB, unit="bytes", kind=Kind.MEASURED, source="a test")
    return Accelerator(
        id="test-card",
        vendor="NVIDIA",
        product="test card",
        architecture="",
        form_factor="SXM4",
        memory_type="HBM2e",
        memory_sold_gb=mib / 1024,
        compute_capability=capability,
        launch_year=2020,
        facts={"memory_total_bytes": total},
    )


def serve(book, model, form="fp16", *, tokens=4096, concurrency=1, bits=16, output=None, precision=Precision.FP16):
    """Inference of sequences of ``tokens`` tokens, half of them output unless told."""
    made = tokens // 2 if output is None else output
    serving = Serving(
        online=True,
        prompt_tokens=tokens - made,
        output_tokens=made,
        context_tokens=tokens,
        concurrency=concurrency,
        cache_bits=bits,
    )
    return Workload(
        model=book.model(model),
        task=Task.INFERENCE,
        precision=precision,
        weights=book.formats[form],
        limits=Limits(),
        use=Use(),
        engine_id="",
        serving=serving,
    )


def train(book, model, task, *, tokens=2048, batch=1, form="bf16", precision=Precision.BF16, **settings):
    """Training at one micro-batch a step unless ``global_batch`` says more."""
    sizes = {
        "sequence_tokens": tokens,
        "micro_batch": batch,
        "global_batch": batch,
        "tokens": 1e6,
        "optimizer": "adamw",
        "checkpointing": Checkpointing.NONE,
        "pure_16bit": False,
        "packed": True,
    }
    return Workload(
        model=book.model(model),
        task=task,
        precision=precision,
        weights=book.formats[form],
        limits=Limits(),
        use=Use(),
        engine_id="",
        training=Training(**(sizes | settings)),
    )


def with_training(workload, **settings):
    return replace(workload, training=replace(workload.training, **settings))


def with_serving(workload, **settings):
    return replace(workload, serving=replace(workload.serving, **settings))


def with_policy(engine, **settings):
    """The engine with its serving or training policy changed."""
    if engine.training is not None and set(settings) <= set(engine.training.__slots__):
        return replace(engine, training=replace(engine.training, **settings))
    return replace(engine, serving=replace(engine.serving, **settings))


def bare(engine):
    """A serving engine without graphs or buffers of its own."""
    return with_policy(engine, graph_bytes=Range.exact(0.0), non_torch_bytes=Range.exact(0.0))


def measure(workload, accelerator, engine, layout=SINGLE):
    """The estimate, which must be known."""
    return known(estimate(workload, accelerator, layout, engine))


def likely(found, name: str) -> float:
    """The likely bytes of the first part called ``name``."""
    return next(part.bytes.likely for part in found.components if part.name == name)
