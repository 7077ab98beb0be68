"""Diffusion: the time of a denoising step, an image or a video."""

from __future__ import annotations

import math

from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.denoiser import Denoiser
from rackrate.speed.communication import gather_s, link
from rackrate.speed.diffusion_flops import Canvas, pass_work, tokens, vae_flop
from rackrate.speed.estimate_types import Bound
from rackrate.speed.replica import STREAM_SHARE
from rackrate.speed.roofline import Rates
from rackrate.speed.spread import within
from rackrate.speed.sustained import Sustained, sustained
from rackrate.speed.training_terms import COMPILED_SHARE, OLD_ATTENTION_ON_HOPPER
from rackrate.values import Value

ATTENTION_SHARE = 1.0
"""Of the sustained rate, what flash attention reaches forward, exponentials not counted: fitted.

(tools/rate_numbers.csv; 82 rows of CogVideoX and HunyuanVideo, whose sequences are 17,776 and 119,056 tokens.)
"""

ELEMENTWISE_BYTES = 325.0
"""Bytes that norms, modulation, rotations, gates and residuals move for each token, layer and unit of width: fitted.

A dozen eager kernels, of which the norms and rotations work in FP32 (huggingface/diffusers, attention processors).
"""

HOST_S_PER_BLOCK = 1.2e-3
"""Seconds in which a host launches the kernels of one block, eagerly: fitted (tools/rate_numbers.csv)."""

PARALLEL_TIMES = 2.0
"""The same where cards share a sequence: collectives and their waits (FLUX.1 on 4 H100, xdit-project/xDiT)."""

SPREAD = 0.30
"""The factor less one by which a time may be off either way: 80 % of 113 published rows."""

_COLLECTIVES = 4  # queries, keys, values and results are exchanged in each layer (DeepSpeed Ulysses, arXiv 2309.14509)
_FIRST_MATRIX_UNITS = (7, 0)
_HOPPER = (9, 0)


class DiffusionRun(Value, frozen=True, kw_only=True):
    """What is made and how.

    ``precision``: of matrix products and convolutions; attention stays in 16
    bits. ``passes`` of the network a step (2 with classifier-free guidance).
    ``compiled``: kernels are fused and launched as graphs. ``half_accumulate``:
    sums in FP16, at the doubled rate of GeForce cards (TensorRT, stable-fast).
    ``host_times``: launching relative to Diffusers.
    """

    model: Denoiser
    canvas: Canvas
    steps: int
    passes: int
    precision: Precision = Precision.BF16
    compiled: bool = False
    half_accumulate: bool = False
    host_times: float = 1.0


class DiffusionSpeed(Value, frozen=True, kw_only=True):
    """Time of one denoising step (all passes, the whole batch), of one image or video, and what limits it.

    ``decode_s`` of ``s_per_result`` is the decoder's.
    """

    step_s: Range
    s_per_result: Range
    decode_s: Range
    limited_by: Bound
    least_s_per_result: float


def run_of(model: Denoiser, **settings: object) -> DiffusionRun:
    """The usual run of a model: its own size, steps and guidance, one at a time."""
    canvas = Canvas(width=model.width, height=model.height, frames=model.frames)
    usual: dict[str, object] = {"model": model, "canvas": canvas, "steps": model.steps, "passes": model.passes}
    return DiffusionRun(**(usual | settings))  # type: ignore[arg-type]


def diffusion(run: DiffusionRun, accelerator: Accelerator, gpus: int = 1) -> DiffusionSpeed | Unknown:
    """The speed of ``gpus`` cards that share one sequence, or which rate of the card is unknown.

    ``steps x max(card, host) + decoding``: text encoders are left out (under 1 %
    at usual steps). Below four steps and for images under 256 pixels a side
    nothing was measured.
    """
    rates = diffusion_rates(run, accelerator)
    if isinstance(rates, Unknown):
        return rates
    card = sustained(accelerator, rates)
    busy = step_terms(run, accelerator, rates, card, gpus)
    alone = sum(seconds for bound, seconds in busy.items() if bound is not Bound.HOST)
    step = max(alone, busy[Bound.HOST])
    decoding = vae_flop(run.model, run.canvas) / card.half_flop_per_s
    whole = pass_work(run.model, run.canvas)
    least = run.steps * run.passes * whole.matrix_flop / (rates.flop_per_s * gpus)
    each = (run.steps * step + decoding) / run.canvas.batch
    return DiffusionSpeed(
        step_s=within(1 / step, SPREAD, run.steps / (least * run.canvas.batch)).inverse(1.0),
        s_per_result=within(1 / each, SPREAD, 1 / least).inverse(1.0),
        decode_s=within(run.canvas.batch / decoding, SPREAD, math.inf).inverse(1.0),
        limited_by=max(busy, key=busy.__getitem__),
        least_s_per_result=least,
    )


def step_terms(
    run: DiffusionRun, accelerator: Accelerator, rates: Rates, card: Sustained, gpus: int
) -> dict[Bound, float]:
    """Seconds that each resource is busy with one denoising step of the whole batch."""
    work, times = pass_work(run.model, run.canvas), run.passes * run.canvas.batch
    old = OLD_ATTENTION_ON_HOPPER if accelerator.compute_capability == _HOPPER else 1.0
    attention = work.attention_flop / (card.half_flop_per_s * ATTENTION_SHARE * old) + work.scores / card.exps_per_s
    moved = work.moved_values * ELEMENTWISE_BYTES * (COMPILED_SHARE if run.compiled else 1.0)
    launches = 0.0 if run.compiled else work.blocks * HOST_S_PER_BLOCK * run.host_times
    return {
        Bound.COMPUTE: times * (work.matrix_flop / card.flop_per_s + attention) / gpus,
        Bound.BANDWIDTH: times * moved / (rates.bandwidth_bytes_per_s * STREAM_SHARE) / gpus,
        Bound.HOST: launches * (PARALLEL_TIMES if gpus > 1 else 1.0),
        Bound.COMMUNICATION: _exchanges_s(run, accelerator, gpus),
    }


def _exchanges_s(run: DiffusionRun, accelerator: Accelerator, gpus: int) -> float:
    """Queries, keys, values and results change between shares of the sequence and shares of the heads."""
    if gpus <= 1:
        return 0.0
    held = 2 * tokens(run.model, run.canvas) * run.passes * run.canvas.batch * run.model.widths[0] / gpus
    return run.model.layers * _COLLECTIVES * gather_s(link(accelerator, gpus), gpus, held)


def diffusion_rates(run: DiffusionRun, accelerator: Accelerator) -> Rates | Unknown:
    """The peaks that a run meets; cards before matrix units multiply in FP32, whose sums it wants."""
    bandwidth, vector = accelerator.bandwidth_bytes_per_s, accelerator.peak_flop_per_s(Precision.FP32)
    if isinstance(bandwidth, Unknown):
        return bandwidth
    precision = run.precision
    if run.half_accumulate and precision in {Precision.FP16, Precision.BF16}:
        doubled = accelerator.peak_flop_per_s(Precision.FP16_ACC16)
        precision = precision if isinstance(doubled, Unknown) else Precision.FP16_ACC16
    if (accelerator.compute_capability or _FIRST_MATRIX_UNITS) < _FIRST_MATRIX_UNITS:
        precision = Precision.FP32
    peak = accelerator.peak_flop_per_s(precision)
    if isinstance(peak, Unknown):
        peak = accelerator.peak_flop_per_s(Precision.FP16) if precision is Precision.BF16 else peak
    if isinstance(peak, Unknown):
        return peak
    return Rates(
        precision=precision,
        flop_per_s=peak,
        powered_flop_per_s=float("inf"),
        vector_flop_per_s=None if isinstance(vector, Unknown) else vector,
        bandwidth_bytes_per_s=bandwidth,
    )
