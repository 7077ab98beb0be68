"""Simulated loads in words: what requests meet, and the highest load within the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.gpu_parts import per_cent
from rackrate.cli.layout import Table
from rackrate.cli.numbers import amount, count_of, seconds_of
from rackrate.cli.speed_words import result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rackrate.app.wire.speed import HighestLoadDoc, LoadDoc, PercentilesDoc, SharedCardDoc

_TITLES = ("simulated", "50 of 100", "90 of 100", "99 of 100")
_KEYS = ("time", "p50", "p90", "p99")
_SHARED = ("programs", "in_flight", "requests_per_s", "tokens_per_s", "s_per_output_token")
_SHARED_TITLES = ("programs on one card", "in flight", "requests/s", "tok/s", "each token")
_LEAST_SEEN = 0.005


def latencies(load: LoadDoc) -> Table:
    """The times that 50, 90 and 99 of 100 requests take at most."""
    times = (("first token", load.first_token_s), ("each token", load.s_per_output_token), ("request", load.request_s))
    rows = tuple((name, *_times(found)) for name, found in times if found is not None)
    return Table(keys=_KEYS, titles=_TITLES, rows=rows, right=frozenset({1, 2, 3}))


def _times(found: PercentilesDoc) -> tuple[str, str, str]:
    return (seconds_of(found.p50.likely), seconds_of(found.p90.likely), seconds_of(found.p99.likely))


def shared(ways: Sequence[SharedCardDoc]) -> Table:
    """One card that serves the same users by one program or several."""
    rows = tuple(
        (
            f"{way.copies} x {way.mig_profile}" if way.mig_profile else _beside(way.copies),
            amount(way.in_flight),
            amount(way.requests_per_s.likely),
            f"{way.tokens_per_s.likely:,.0f}",
            seconds_of(way.s_per_output_token.likely),
        )
        for way in ways
    )
    return Table(keys=_SHARED, titles=_SHARED_TITLES, rows=rows, right=frozenset({1, 2, 3, 4}))


def _beside(copies: int) -> str:
    return "1 alone" if copies == 1 else f"{copies} side by side"


def met(load: LoadDoc) -> str:
    """What the machine is doing under the load."""
    rate = load.offered_requests_per_s
    offered = f"{amount(rate)} requests/s" if rate is not None else count_of(load.users or 0, "user")
    if not load.stable:
        return f"{offered}: more than it keeps up with, the queue grows; {result(load.requests_per_s)} are served"
    full = f"KV cache {per_cent(load.cache_use)} full, at most {per_cent(load.cache_use_most)}"
    again = ""
    if load.preempted >= _LEAST_SEEN:
        again = f"; {per_cent(load.preempted)} of the requests lose their place in a full cache and are read again"
    served = f"{result(load.requests_per_s)} requests/s, {result(load.tokens_per_s)} tokens/s"
    return f"{offered}: {served}; {amount(load.in_flight)} in flight, {amount(load.waiting)} waiting; {full}{again}"


def highest(found: HighestLoadDoc) -> str:
    """The highest load within the targets, and what ends it."""
    full = f"{result(found.capacity_requests_per_s)} with a queue that never empties"
    within = _within(found)
    ended = words.word(words.ENDS_LOAD, found.ended_by)
    if found.requests_per_s is None:
        return f"no load{within}: of a request alone, {ended}; {full}"
    return f"{result(found.requests_per_s)} requests/s{within}; beyond, {ended}; {full}"


def _within(found: HighestLoadDoc) -> str:
    targets = []
    if found.max_first_token_s is not None:
        targets.append(f"first token within {seconds_of(found.max_first_token_s)}")
    if found.max_s_per_output_token is not None:
        targets.append(f"{seconds_of(found.max_s_per_output_token)} a token")
    return f" with {' and '.join(targets)} for {found.percentile} of 100" if targets else ""
