"""Workloads, cards and estimates for this room's tests: bundled facts, with one setting changed at a time."""

from rackrate.evidence import Fact, Kind, Range, known
from rackrate.facts.accelerator import Precision
from rackrate.memory.estimate_types import CacheRoom, MemoryEstimate, Metric, Phase, Verdict
from rackrate.speed.estimate import estimate
from rackrate.speed.replica import replica
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Limits, Serving, Task, Training, Use, Workload

LLAMA_7B, LLAMA_8B = "meta-llama/Llama-2-7b-hf", "meta-llama/Meta-Llama-3-8B"
LLAMA_13B, LLAMA_70B = "meta-llama/Llama-2-13b-hf", "meta-llama/Meta-Llama-3-70B"
MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"
SINGLE = Layout()


def serve(book, model, form="fp16", *, precision=Precision.FP16, **sizes):
    """Inference of requests of 1,000 + 200 tokens, one at a time unless told."""
    given = {"online": False, "prompt_tokens": 1000, "output_tokens": 200, "concurrency": 1} | sizes
    given.setdefault("context_tokens", given["prompt_tokens"] + given["output_tokens"])
    return _workload(book, model, Task.INFERENCE, form, precision, serving=Serving(**given))


def train(book, model, task=Task.LORA, form="bf16", *, precision=Precision.BF16, **sizes):
    """Training at micro-batch 1 of 2,048 packed tokens, 8 sequences a step, unless told."""
    given = {
        "sequence_tokens": 2048,
        "micro_batch": 1,
        "global_batch": 8,
        "tokens": 1e7,
        "optimizer": "adamw",
        "checkpointing": Checkpointing.FULL,
        "pure_16bit": True,
        "packed": True,
        "checkpoint_every": 500,
    }
    if task.trains_adapters:
        given |= {"lora_rank": 8, "lora_targets": ("all",)}
    return _workload(book, model, task, form, precision, training=Training(**(given | sizes)))


def _workload(book, model, task, form, precision, **sizes):
    return Workload(
        model=model if not isinstance(model, str) else book.model(model),
        task=task,
        precision=precision,
        weights=book.formats[form],
        limits=Limits(),
        use=Use(),
        engine_id="",
        **sizes,
    )


def room(held=1000, context=1200, tokens=None):
    """A memory estimate of which only the cache matters."""
    zero = Range.exact(0.0)
    cache = CacheRoom(
        bytes_per_token=1.0,
        room_bytes=zero,
        tokens=Range.exact(float(tokens if tokens is not None else held * context)),
        context_tokens=context,
        full_sequences=held,
    )
    return MemoryEstimate(
        components=(),
        phases=(),
        peak_phase=Phase.ALWAYS,
        peak=zero,
        allocated=zero,
        reserved=zero,
        metric=Metric.DRIVER,
        usable_bytes=1.0,
        verdict=Verdict.FITS,
        cache=cache,
    )


def speed(book, workload, card, engine="vllm", layout=SINGLE, *, held=1000):
    """The estimate, which must be known."""
    accelerator = book.accelerators[card] if isinstance(card, str) else card
    return known(estimate(workload, accelerator, layout, book.engine(engine), room(held)))


def one_replica(book, workload, card, engine="vllm", layout=SINGLE):
    """The replica, which must be known."""
    accelerator = book.accelerators[card] if isinstance(card, str) else card
    return known(replica(workload, accelerator, layout, book.engine(engine)))


def with_fact(card, quantity, value):
    """The card with one number changed."""
    fact = Fact(value=value, unit="", kind=Kind.ASSUMED, source="a test")
    return replace(card, facts={**card.facts, quantity: fact})


def without_fact(card, quantity):
    """The card with one number not known."""
    return replace(card, facts={name: fact for name, fact in card.facts.items() if name != quantity})


def with_speed(engine, **settings):
    """The engine with efficiencies changed."""
    return replace(engine, speed=replace(engine.speed, **settings))
