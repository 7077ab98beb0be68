"""Scheduling: which requests an inference engine puts into a step, as data."""

from __future__ import annotations

from enum import StrEnum

from rackrate.values import Value


class Order(StrEnum):
    """How prompts and running requests share steps.

    ``mixed``: a step gives each running request its token, and prompts what the
    step has left. ``prefill_first``: a step reads prompts alone while any
    waits and finds room. ``static``: a batch is formed, worked off to its last
    request, and only then comes the next.
    """

    MIXED = "mixed"
    PREFILL_FIRST = "prefill_first"
    STATIC = "static"


class Scheduling(Value, frozen=True, kw_only=True):
    """What an engine's scheduler does.

    ``step_tokens``: most tokens of prompts and running requests in one step
    (0: no limit); ``large_step_tokens`` of those on cards of 70 GiB and more but
    the A100 (0: as on any). ``cuts_prompts``: a prompt longer than that is read in
    pieces. ``reserved_output``: share of the output still to come for which an
    admitted request must find room in the cache; below 1 a full cache throws the
    request out that came last, and it is read again. ``kept_free``: share of the cache
    that admission leaves. ``keeps_prefixes``: blocks of prompts are found again by
    later requests that begin alike.
    """

    order: Order
    step_tokens: int
    cuts_prompts: bool
    reserved_output: float
    large_step_tokens: int = 0
    kept_free: float = 0.0
    keeps_prefixes: bool = False
    source: str = ""


ONE_BATCH = Scheduling(order=Order.STATIC, step_tokens=0, cuts_prompts=False, reserved_output=1.0)
"""An engine that says nothing: whole batches, one after the other."""
