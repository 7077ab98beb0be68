"""Measured: a speed that somebody saw on a machine of their own."""

from __future__ import annotations

from enum import StrEnum

from rackrate.values import Value


class Counted(StrEnum):
    """What was counted, each a second; plain ``TOKENS`` are of the one request in flight, or of all together."""

    TOKENS = "tokens_per_s"
    OUTPUT = "output_tokens_per_s"
    EACH = "per_user_tokens_per_s"
    PROMPT = "prompt_tokens_per_s"
    ALL_TOKENS = "all_tokens_per_s"
    FIRST_TOKEN = "first_token_s"
    REQUESTS = "requests_per_s"
    TRAINED = "trained_tokens_per_s"
    STEPS = "optimizer_steps_per_s"
    SAMPLES = "samples_per_s"
    IMAGES = "images_per_s"
    IMAGE_STEPS = "denoising_steps_per_s"


class Measured(Value, frozen=True, kw_only=True):
    """A speed that somebody measured.

    ``per_s`` of what is ``counted`` (first tokens: one over the seconds until
    the first); ``is_time``: given as seconds for each. ``per_gpu``: of one card of several.
    ``card`` (empty) and ``gpus`` (None) say where, unless the request names the machine.
    """

    text: str
    per_s: float
    counted: Counted
    is_time: bool = False
    per_gpu: bool = False
    card: str = ""
    gpus: int | None = None
