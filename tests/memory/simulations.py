"""Small models for simulations, run here and, for comparison, for real on the CPU."""

import warnings

from rackrate.memory.simulation.records import Adapters, Job
from rackrate.memory.simulation.run import simulate_job

ALL = ("q", "k", "v", "o", "gate", "up", "down")
TINY = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "intermediate_size": 688,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}
FAMILIES = {
    "llama": {"tie_word_embeddings": True},
    "mistral": {"sliding_window": None},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
}


def config(family, **more):
    return tuple({"model_type": family, **TINY, **FAMILIES[family], **more}.items())


def job(family="llama", *, rank=0, adapter_bytes=4, **more):
    adapters = Adapters(rank=rank, targets=ALL, element_bytes=adapter_bytes) if rank else None
    return Job(**{"config": config(family), "trains": True, "batch": 2, "tokens": 256, "adapters": adapters, **more})


def simulated(*args, **more):
    return simulate_job(job(*args, **more), lambda _step, _count: None)


def allocated_on_cpu(run):
    """The most that PyTorch's CPU allocator held while ``run`` ran, as its profiler logged it: no mode, real tensors."""
    from torch.profiler import ProfilerActivity, profile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            run()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def operations_on_cpu(run):
    """The operations of ``run`` and the one that each was part of, in their order."""
    from torch.profiler import ProfilerActivity, profile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            run()
    return [(event.name, event.cpu_parent.name if event.cpu_parent else "") for event in profiler.events()]
