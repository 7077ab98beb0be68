"""Sharing: one card that serves by several programs, side by side (MPS) or in slices of its own each (MIG).

Only what physics gives, not calibrated by any measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.records import MigProfile
from rackrate.memory.estimate import estimate as estimate_memory
from rackrate.memory.estimate_types import MemoryEstimate, Verdict
from rackrate.plan.question import Question
from rackrate.plan.slices import mig_slice
from rackrate.speed.copies import copies_speed
from rackrate.speed.replica import replica
from rackrate.speed.serving import sequences_held, served
from rackrate.values import Value, replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Serving, Workload

SIDE_BY_SIDE = (1, 2, 3, 4, 6, 8)
"""Numbers of programs that are looked at, as far as memory allows."""


class SharedCard(Value, frozen=True, kw_only=True):
    """``copies`` programs on one card, each with ``in_flight`` requests of the same load; rates are of all.

    ``profile`` is the MIG slice that each has to itself (empty: side by side).
    """

    profile: str
    copies: int
    in_flight: float
    requests_per_s: float
    tokens_per_s: float
    s_per_output_token: float


def shared_cards(
    question: Question, card: Accelerator, memory: MemoryEstimate, profiles: Iterable[MigProfile]
) -> tuple[SharedCard, ...]:
    """The ways in which one ``card`` can serve the users asked for; ``memory`` is that of one program on it alone."""
    serving = question.workload.serving
    if serving is None or not question.workload.model.generates_text:
        return ()
    users = replace(serving, requests_per_s=None)
    work = replace(question.workload, serving=users)
    mine = [profile for profile in profiles if card.id in profile.accelerators]
    return (*_side_by_side(question, work, card, memory), *_in_slices(question, work, card, mine))


def _side_by_side(
    question: Question, work: Workload, card: Accelerator, memory: MemoryEstimate
) -> Iterator[SharedCard]:
    """Programs that share memory, bandwidth and arithmetic; each has its own weights and buffers."""
    one = replica(work, card, Layout(), question.engine)
    serving = work.serving
    if isinstance(one, Unknown) or serving is None:
        return
    for copies in SIDE_BY_SIDE:
        held = _held_by_each(memory, copies, serving)
        if held < 1 or copies > serving.concurrency:
            return
        found = copies_speed(one, copies, min(serving.concurrency / copies, held), serving)
        yield SharedCard(
            profile="",
            copies=copies,
            in_flight=found.batch,
            requests_per_s=found.requests_per_s,
            tokens_per_s=found.requests_per_s * serving.output_tokens,
            s_per_output_token=found.s_per_output_token,
        )


def _held_by_each(memory: MemoryEstimate, copies: int, serving: Serving) -> int:
    """Requests that the cache of one of ``copies`` holds: its part of the card less all but the cache."""
    if memory.cache is None:
        return 0
    cache = sum(part.bytes.likely for part in memory.components if part.name == "kv_cache")
    room = memory.usable_bytes / copies - (memory.peak.likely - cache)
    request = max(1, serving.prompt_tokens + serving.output_tokens)
    return int(room // (memory.cache.bytes_per_token * request))


def _in_slices(
    question: Question, work: Workload, card: Accelerator, profiles: Iterable[MigProfile]
) -> Iterator[SharedCard]:
    """As many equal slices as there can be, each a card of its own with its part of the users."""
    for profile in profiles:
        found = _slices(question, work, mig_slice(card, profile), profile)
        if found is not None:
            yield found


def _slices(question: Question, work: Workload, part: Accelerator, profile: MigProfile) -> SharedCard | None:
    serving, copies = work.serving, profile.max_instances
    if serving is None or copies < 2 or copies > serving.concurrency:  # noqa: PLR2004 - one slice shares nothing
        return None
    each = replace(serving, concurrency=-(-serving.concurrency // copies))
    mine = replace(work, serving=each)
    memory = estimate_memory(mine, part, Layout(), question.engine)
    one = replica(mine, part, Layout(), question.engine)
    if isinstance(memory, Unknown) or isinstance(one, Unknown) or memory.verdict is Verdict.DOES_NOT_FIT:
        return None
    held = sequences_held(memory.cache, each, question.engine)
    if isinstance(held, Unknown):
        return None
    found = served(one, each.concurrency, held, each)
    return SharedCard(
        profile=profile.profile,
        copies=copies,
        in_flight=float(found.concurrency),
        requests_per_s=copies * found.requests_per_s.likely,
        tokens_per_s=copies * found.output_tokens_per_s.likely,
        s_per_output_token=1 / found.per_user_tokens_per_s.likely,
    )
