"""Pauses: what a training run stops for, beside its steps: checkpoints that are written, and evaluations."""

from __future__ import annotations

import math

from rackrate.evidence import Range
from rackrate.memory.optimizer import EIGHT_BIT_BYTES, FP32_BYTES, MOMENTS, form
from rackrate.speed.flops import trainable_params
from rackrate.speed.training_terms import passes
from rackrate.values import Value
from rackrate.workload.workload import Training, Workload

WRITE_BYTES_PER_S = Range(0.2e9, 0.5e9, 2e9)
"""Rate at which a checkpoint is gathered and written while training waits.

0.27 GB/s (pytorch/torchtitan#1301: 8B in 6 minutes), 0.4 (pytorch/pytorch#104081: 8B in over 4 minutes), 0.56
(PyTorch's blog on asynchronous checkpoints: 7B in 148.8 s), 0.63 (4 GB in 6.4 s to a bucket,
GoogleCloudPlatform/gcs-connector-for-pytorch#174), weights and both moments taken in FP32; several GB/s
to local NVMe by all cards at once, assumed. Checkpoints written in the background stop a run for seconds.
"""

_16BIT_BYTES = 2


class Pauses(Value, frozen=True, kw_only=True):
    """How often a run stops: ``checkpoints`` of ``checkpoint_bytes``, and tokens that evaluations read in all."""

    checkpoints: int
    checkpoint_bytes: float
    evaluations: int
    evaluated_tokens: float

    @property
    def checkpoint_s(self) -> Range:
        """Seconds of one checkpoint."""
        return WRITE_BYTES_PER_S.inverse(self.checkpoint_bytes)

    @property
    def checkpoints_s(self) -> Range:
        """Seconds of all checkpoints: what is uncertain about one is so about all."""
        return self.checkpoint_s.scaled(self.checkpoints)


def pauses(workload: Workload, run: Training, steps: float) -> Pauses:
    """The pauses of a run of ``steps`` optimizer steps; the end is saved once, however often else."""
    saved = math.ceil(steps / run.checkpoint_every - 1e-9) if run.checkpoint_every else 1
    evaluated = math.floor(steps / run.evaluate_every + 1e-9) if run.evaluate_every else 0
    return Pauses(
        checkpoints=max(1, saved),
        checkpoint_bytes=checkpoint_bytes(workload, run),
        evaluations=evaluated,
        evaluated_tokens=evaluated * run.eval_tokens,
    )


def checkpoint_bytes(workload: Workload, run: Training) -> float:
    """Bytes from which a run goes on: trained weights and the optimizer's moments.

    ``(4 + 4 m) N`` in mixed precision, ``(2 + 2 m) N`` in pure 16-bit training, 8-bit
    moments a byte each; N the parameters that are trained (adapters alone:
    peft saves no base), m the moments of the optimizer. 16-bit copies are not
    written (Rajbhandari et al., arXiv 1910.02054, section 3.1, for what there is).
    """
    kind = form(run.optimizer)
    each = _16BIT_BYTES if run.pure_16bit else FP32_BYTES
    moment = EIGHT_BIT_BYTES if kind.eight_bit else each
    return trainable_params(workload, run) * (each + moment * MOMENTS.get(kind.base, 2))


def read_again(run: Training, evaluated_tokens: float) -> float:
    """Tokens trained on in the time in which ``evaluated_tokens`` are evaluated: forward alone, a third or a quarter.

    Backward takes twice the forward pass (Kaplan et al., arXiv 2001.08361, section 2.1), full checkpointing one more.
    """
    return evaluated_tokens / passes(run)
