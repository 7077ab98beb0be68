"""What a speed estimate says."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from rackrate.evidence import Range
from rackrate.facts.accelerator import Precision
from rackrate.problems import Finding
from rackrate.values import Value


class Bound(StrEnum):
    """What limits the speed."""

    COMPUTE = "compute"
    BANDWIDTH = "bandwidth"
    CACHE_BANDWIDTH = "cache_bandwidth"
    HOST = "host"
    COMMUNICATION = "communication"
    CACHE_ROOM = "cache_room"


_OF_THE_CARD = frozenset({Bound.COMPUTE, Bound.BANDWIDTH, Bound.CACHE_BANDWIDTH})


def longest(busy_s: Mapping[Bound, float], *, eager: bool) -> Bound:
    """The resource that is busy for longest; an ``eager`` host counts only where the card does not hide it."""
    card = sum(seconds for bound, seconds in busy_s.items() if bound in _OF_THE_CARD)
    hidden = eager and busy_s[Bound.HOST] < card
    return max((bound for bound in busy_s if not (hidden and bound is Bound.HOST)), key=busy_s.__getitem__)


class ServingSpeed(Value, frozen=True, kw_only=True):
    """Speed of one machine under a closed loop of ``concurrency`` requests (all replicas together).

    ``first_token_s``: time to first token of the median request;
    ``per_user_tokens_per_s``: output tokens per second of one request while it
    generates; ``output_tokens_per_s``: of all requests together, prefill time
    included; ``requests_per_s`` likewise. ``concurrency`` is what is in flight
    after the KV room capped it. ``capacity_requests_per_s``: the most that the
    machine serves with its caches full (``None``: not an online service).
    ``audio_s_per_s``: seconds of sound that it transcribes in a second.
    """

    first_token_s: Range
    per_user_tokens_per_s: Range
    output_tokens_per_s: Range
    requests_per_s: Range
    concurrency: int
    capacity_requests_per_s: Range | None = None
    audio_s_per_s: Range | None = None


class TrainingSpeed(Value, frozen=True, kw_only=True):
    """Speed of training: tokens per second of the machine, time of one optimizer step, FLOP utilisation.

    ``checkpoint_s``: one checkpoint; ``pauses_hours``: all of them and the evaluations, part of the work's hours
    (None: not known).
    """

    tokens_per_s: Range
    step_s: Range
    model_flop_utilisation: Range
    checkpoint_s: Range | None = None
    pauses_hours: Range | None = None


class ImageSpeed(Value, frozen=True, kw_only=True):
    """Speed of making images: images a second of the machine, seconds of one on its card, denoising steps a second.

    ``s_per_image`` is a batch's time over its images: ``encode_s`` of its prompt,
    ``denoise_s`` and ``decode_s``;
    ``steps_per_s`` counts steps of the whole batch on one card (``it/s``).
    """

    images_per_s: Range
    s_per_image: Range
    steps_per_s: Range
    ceiling_images_per_s: float
    encode_s: Range
    denoise_s: Range
    decode_s: Range


class SpeedEstimate(Value, frozen=True, kw_only=True):
    """How fast; ``limited_by`` names the bound, ``ceiling_tokens_per_s`` the physical limit of the machine.

    The ceiling is of output tokens (serving) or trained tokens a second, at the
    published bandwidth and peak (None for images, whose speed has its own).
    ``computes_in`` is the arithmetic that the card uses for the workload; ``findings`` say where that is not
    what was asked for.
    """

    limited_by: Bound
    ceiling_tokens_per_s: float | None = None
    serving: ServingSpeed | None = None
    training: TrainingSpeed | None = None
    images: ImageSpeed | None = None
    work_hours: Range | None = None
    calibrated: bool = False
    computes_in: Precision | None = None
    findings: tuple[Finding, ...] = ()
