"""What may make a machine slow, and what else a number can mean, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.plan.gaps import Cause
from rackrate.plan.judging import Meaning
from rackrate.workload.measured import Counted

UNITS: Mapping[Counted, tuple[str, str]] = {
    Counted.EACH: ("tokens/s of one request", "s a token of one request"),
    Counted.OUTPUT: ("output tokens/s of all requests", "s an output token"),
    Counted.PROMPT: ("prompt tokens/s", "s a prompt token"),
    Counted.ALL_TOKENS: ("prompt and output tokens/s", "s a token"),
    Counted.FIRST_TOKEN: ("first tokens/s", "s to the first token"),
    Counted.REQUESTS: ("requests/s", "s a request"),
    Counted.TRAINED: ("tokens/s trained on", "s a token"),
    Counted.STEPS: ("optimizer steps/s", "s an optimizer step"),
    Counted.SAMPLES: ("samples/s", "s a sample"),
    Counted.IMAGES: ("images/s", "s an image"),
    Counted.IMAGE_STEPS: ("denoising steps/s", "s a denoising step"),
}
"""What is counted, as a rate and as a time of each."""

MEANINGS: Mapping[Counted | Meaning, str] = {
    **{counted: f"{rate}" for counted, (rate, _) in UNITS.items()},
    Meaning.OF_ALL_CARDS: "of all cards together, not of one",
    Meaning.OF_ONE_CARD: "of one card, not of all together",
    Meaning.MICRO_STEPS: "micro-batches counted, not optimizer steps",
    Meaning.UPSIDE_DOWN: "the other way up: seconds of each for a rate, or a rate for seconds",
}

_WHAT: Mapping[Cause, str] = {
    Cause.EAGER_LAUNCH: "kernels are launched one by one: no captured graphs",
    Cause.SLOW_HOST: "the host launches kernels as slowly as a server's cores do",
    Cause.COMPUTED_IN_FP32: "products are computed in FP32",
    Cause.NOT_QUANTISED: "the weights are not quantised in memory, but {}",
    Cause.UNPACKED_FIRST: "a kernel that unpacks the weights to 16 bits for every pass",
    Cause.NO_FLASH_ATTENTION: "attention stores its scores: no flash attention",
    Cause.CHECKPOINTING: "full checkpointing is on",
    Cause.PADDING: "rows are padded, not packed",
    Cause.NOT_COMPILED: "layers are not compiled",
    Cause.SMALL_MICRO_BATCH: "a micro-batch of {}",
    Cause.SLOW_LINK: "the cards are joined by PCIe, or NCCL uses it",
    Cause.IDLE_CARDS: "only {} of the cards at work",
    Cause.SLICE: "a slice of {} of the card",
    Cause.SHARED: "{} busy programs share the card",
    Cause.OTHER_CARD: "another card: {} does so much",
    Cause.FEW_IN_FLIGHT: "only {} in flight",
    Cause.POWER_CAP: "clocks held down as by a power limit of {}",
    Cause.HOST_MEMORY: "{} of the weights come from the host's memory in every pass",
}

TESTS: Mapping[Cause, str] = {
    Cause.EAGER_LAUNCH: "look for enforce_eager, or CUDA graphs switched off, in the engine's start-up log",
    Cause.SLOW_HOST: "look at one core of the host: `top` shows the process at 100 %, the card below",
    Cause.COMPUTED_IN_FP32: "print the dtype of the loaded weights; run with bf16 or fp16 set",
    Cause.NOT_QUANTISED: "compare the memory taken after loading with `rackrate fit`; look for the format in the log",
    Cause.UNPACKED_FIRST: "look for the kernel's name in the log (Marlin, Machete, ExLlama are fused)",
    Cause.NO_FLASH_ATTENTION: "print model.config._attn_implementation; install flash-attn or choose sdpa",
    Cause.CHECKPOINTING: "look for gradient_checkpointing in the training arguments",
    Cause.PADDING: "count the tokens of a batch that are not padding; switch packing on",
    Cause.NOT_COMPILED: "look for torch_compile in the training arguments, and for graph breaks in its log",
    Cause.SMALL_MICRO_BATCH: "look for per_device_train_batch_size; accumulation does not replace it",
    Cause.SLOW_LINK: "`nvidia-smi topo -m` (NV# is NVLink), NCCL_DEBUG=INFO, all_reduce_perf of nccl-tests",
    Cause.IDLE_CARDS: "`nvidia-smi` while it runs: is every card busy?",
    Cause.SLICE: "`nvidia-smi -L` lists MIG devices; compare the memory with the card's",
    Cause.SHARED: "`nvidia-smi` before you start: memory in use or a busy card is a neighbour",
    Cause.OTHER_CARD: "`nvidia-smi -q`: product name, memory bus, clocks and power limit",
    Cause.FEW_IN_FLIGHT: "the engine's log of running and waiting requests; raise the client's concurrency",
    Cause.POWER_CAP: "`nvidia-smi -q -d POWER,CLOCK,PERFORMANCE` while it runs: power limit, active throttle reasons",
    Cause.HOST_MEMORY: "look for offload, device_map or swapping in the log; `nvidia-smi dmon -s t` shows PCIe traffic",
}


def what(cause: Cause, setting: str) -> str:
    """What may be wrong."""
    return _WHAT[cause].format(setting)
