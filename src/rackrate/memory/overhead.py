"""Overhead: memory that belongs to neither model nor data."""

from __future__ import annotations

from rackrate.evidence import Range
from rackrate.facts.accelerator import Accelerator
from rackrate.units import GIB, KIB, MB, MIB
from rackrate.values import Value

UNUSABLE_BYTES = 480 * MIB
"""Part of the driver's total that no program can allocate (page tables, firmware).

The driver calls it "reserved": 479 MiB on an H100 and 609 MiB on an L40S
(captures in utkuozdemir/nvidia_gpu_exporter); the total that CUDA programs see
is short by 439 MiB on an H100 (vllm-project/vllm#10511: 79.22 GiB of 81,559
MiB), by 430 MiB on an RTX 3090 (#14447) and by 484 MiB on an RTX 5090 (#14452).
"""

CONTEXT_BYTES = Range(256.0 * MIB, 426.0 * MIB, 640.0 * MIB)
"""A CUDA context with lazily loaded kernels, CUDA 11.7 and later.

256 MiB on an RTX 3090 with CUDA 12.8 (invoke-ai/InvokeAI#9413), 426 MiB on an
RTX 6000 Ada with CUDA 13.0 (unslothai/unsloth-zoo#1053), about 400 MB usual
(pytorch/pytorch#109888), 636 MiB before lazy loading on the same card where it
then took 274 (pytorch/pytorch#86509); 0.51 GiB on an H100 (llm-d-incubation/llm-d-planner, logs of vLLM 0.19).
"""

EAGER_CONTEXT_BYTES = Range(900.0 * MIB, 1343.0 * MIB, 1500.0 * MIB)
"""A CUDA context that loads every kernel, before CUDA 11.7: 1,343 MiB on a V100 (transformers docs, performance)."""

LAST_EAGER_CAPABILITY = (3, 7)
"""Cards whose last driver branch predates lazy loading: Kepler (R470, CUDA 11.4)."""

COLLECTIVE_BYTES = Range(200.0 * MB, 370.0 * MB, 1000.0 * MB)
"""Buffers of the collective library in each process that trains with others.

NCCL: 342 MB for two and 392 MB for four and eight cards (NVIDIA/aiconfigurator
systems tables).
"""

WORKSPACE_BYTES, HOPPER_WORKSPACE_BYTES = 8320 * KIB, 32 * MIB
"""Workspace of cuBLAS that PyTorch allocates for each thread that multiplies matrices: two 4 MiB and eight 16 KiB

buffers, eight of 4 MiB on compute capability 9.0 (pytorch aten/src/ATen/cuda/CublasHandlePool.cpp)."""

HOPPER = (9, 0)

BUCKET_ELEMENTS = 500_000_000
"""Elements of the flat buffer that ZeRO 1 and 2 reduce gradients in (DeepSpeed config: reduce_bucket_size)."""

UNNAMED = Range(0.0, 0.003, 0.05)
"""What accounts of eager code leave out or count too much, as a part of what is allocated (published rows against it).

Small buffers, whole blocks of the caching allocator (a block is split only
where 1 MiB is left: pytorch c10/cuda/CUDACachingAllocator.cpp), other versions.
"""

GROWTH_SLACK = Range(0.0, 0.05, 0.15)
"""Part of activations and cache lost to the caching allocator when an engine grows its cache by concatenation.

Assumed from training (3 to 12 % reserved over allocated); not measured apart.
"""


def visible_bytes(total_bytes: float) -> float:
    """What programs can allocate of the driver's total."""
    return max(0.0, total_bytes - UNUSABLE_BYTES)


def context_bytes(accelerator: Accelerator, *, eager: bool = False) -> Range:
    """Memory of the context that the driver makes for a process on this card; ``eager`` software loads every kernel."""
    capability = accelerator.compute_capability
    old = capability is not None and capability <= LAST_EAGER_CAPABILITY
    return EAGER_CONTEXT_BYTES if accelerator.vendor == "NVIDIA" and (old or eager) else CONTEXT_BYTES


class OnCard(Value, frozen=True, kw_only=True):
    """What a card leaves: ``visible`` bytes that programs can allocate, of which the ``context`` takes some.

    ``workspace`` is what the matrix library takes in each thread; ``large``
    cards are those on which some engines try larger batches.
    """

    visible: float
    context: Range
    workspace: float
    large: bool = False


LARGE_BYTES = 70 * GIB
"""From here on vLLM tries larger batches, except on the A100 (vllm engine/arg_utils.py get_batch_defaults)."""

AMPERE = (8, 0)


def on_card(accelerator: Accelerator, total_bytes: float, *, eager: bool = False) -> OnCard:
    """What a card with ``total_bytes`` leaves to one process; ``eager`` software loads every kernel."""
    workspace = HOPPER_WORKSPACE_BYTES if accelerator.compute_capability == HOPPER else WORKSPACE_BYTES
    return OnCard(
        visible=visible_bytes(total_bytes),
        context=context_bytes(accelerator, eager=eager),
        workspace=float(workspace) if accelerator.vendor == "NVIDIA" else 0.0,
        large=total_bytes >= LARGE_BYTES and accelerator.compute_capability != AMPERE,
    )
