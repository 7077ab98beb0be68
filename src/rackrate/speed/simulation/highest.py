"""The highest load: how many requests a second come before the latency targets are missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

from rackrate.evidence import Unknown
from rackrate.speed.simulation.records import SEED, Load, Percentiles, Server, Simulated
from rackrate.speed.simulation.run import COUNTED, simulate
from rackrate.speed.simulation.step_times import StepTimes
from rackrate.values import Value, replace

_STEPS = 7
"""Halvings of the search: the highest load is known to about a 128th of the capacity."""

_LEAST = 0.02
"""Share of the capacity at which requests hardly meet: below it nothing changes."""

MOST = 0.95
"""Share of the capacity up to which is searched: nearer to it the queue is not steady within a run."""

_QUEUE = 1.25
"""Users for each place in the batch, so that one always waits while the capacity is found."""

CURVE = (0.25, 0.5, 0.75, 0.9)
"""Shares of the capacity that are simulated beside those of the search, so that the curve has no gaps."""


class Holds(StrEnum):
    """What ends the load that is carried."""

    FIRST_TOKEN = "first_token"
    OUTPUT_TOKEN = "output_token"
    CAPACITY = "capacity"


class Targets(Value, frozen=True, kw_only=True):
    """The most that a percentile of requests may take (None: no target)."""

    percentile: int = 50
    first_token_s: float | None = None
    s_per_output_token: float | None = None

    def missed(self, found: Simulated) -> Holds | None:
        """The target that is missed by most; a queue that grows misses all."""
        tests: list[tuple[Holds, Percentiles | None, float | None]] = [
            (Holds.FIRST_TOKEN, found.first_token_s, self.first_token_s),
            (Holds.OUTPUT_TOKEN, found.s_per_output_token, self.s_per_output_token),
        ]
        over = [(got.at(self.percentile) / limit, name) for name, got, limit in tests if got and limit]
        worst = max(over, default=(0.0, Holds.CAPACITY))
        if worst[0] > 1:
            return worst[1]
        return None if found.stable else Holds.CAPACITY


class Highest(Value, frozen=True, kw_only=True):
    """The most ``requests_per_s`` at which all targets are met (0: not even by a request alone), and what ends it.

    ``at`` is what requests meet there (or alone, where nothing is met), ``capacity_requests_per_s``
    what the server finishes with a queue that never empties, ``curve``
    every load that was simulated, the lightest first. ``step_requests_per_s``: the search ends within it.
    """

    requests_per_s: float
    ended_by: Holds
    at: Simulated
    capacity_requests_per_s: float
    curve: tuple[Simulated, ...]
    step_requests_per_s: float


class Loads:
    """Simulations of one server under requests of one kind at several rates, each made once."""

    def __init__(self, server: Server, load: Load, counted: int = COUNTED, seed: int = SEED) -> None:
        self.server, self.load, self.counted, self.seed = server, load, counted, seed
        self._times = StepTimes(server.replica, server.speculation)
        self._at: dict[float, Simulated] = {}

    def at(self, requests_per_s: float) -> Simulated:
        """What requests meet at this rate; all rates draw the same requests, closer to each other."""
        if requests_per_s not in self._at:
            self._at[requests_per_s] = self.of(replace(self.load, requests_per_s=requests_per_s, users=None))
        return self._at[requests_per_s]

    def of(self, load: Load, counted: int = 0) -> Simulated:
        """Another load on the same server, which must be able to serve it."""
        found = simulate(self.server, load, counted or self.counted, self.seed, self._times)
        if isinstance(found, Unknown):
            raise ValueError(found.reason)
        return found

    def capacity(self) -> Simulated:
        """The server with a queue that never empties: a closed loop of more users than it runs at a time."""
        one = self.load.prompt_tokens + self.load.output_tokens
        places = min(self.server.most_sequences, max(1, int(self.server.cache_tokens / one)))
        users = self.server.replicas * (math.ceil(places * _QUEUE) + 1)
        full = replace(self.load, requests_per_s=None, users=users, together=False)
        return self.of(full, max(self.counted, 2 * places))

    @property
    def curve(self) -> tuple[Simulated, ...]:
        """All rates that were simulated, the lowest first."""
        return tuple(self._at[rate] for rate in sorted(self._at))


def highest(loads: Loads, targets: Targets, capacity_requests_per_s: float) -> Highest:
    """The highest load that meets ``targets``, by bisection up to the capacity.

    Latency grows with load (requests only come closer to each other), so that what is met at a
    rate is met below it; ``grows`` checks that on what was simulated. Valid for
    continuous batching; engines of whole batches can be quicker at a higher load.
    """
    least = _LEAST * capacity_requests_per_s
    alone = loads.at(least)
    for share in CURVE:
        loads.at(share * capacity_requests_per_s)
    most = MOST * capacity_requests_per_s
    step = (most - least) / (1 << _STEPS)
    ended = targets.missed(alone)
    if ended is not None:
        return _found(loads, 0.0, ended, alone, (capacity_requests_per_s, step))
    low, high, ended = least, most, targets.missed(loads.at(most))
    if ended is None:
        return _found(loads, most, Holds.CAPACITY, loads.at(most), (capacity_requests_per_s, step))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        missed = targets.missed(loads.at(middle))
        low, high, ended = (middle, high, ended) if missed is None else (low, middle, missed)
    return _found(loads, low, ended, loads.at(low), (capacity_requests_per_s, step))


def _found(loads: Loads, rate: float, ended: Holds, at: Simulated, capacity: tuple[float, float]) -> Highest:
    return Highest(
        requests_per_s=rate,
        ended_by=ended,
        at=at,
        capacity_requests_per_s=capacity[0],
        curve=loads.curve,
        step_requests_per_s=capacity[1],
    )


def grows(curve: Sequence[Simulated], percentile: int, errors: float = 3.0) -> bool:
    """Whether the time to first token never falls from one load to the next by more than ``errors`` standard errors."""
    for lighter, heavier in pairwise(curve):
        less, more = lighter.first_token_s, heavier.first_token_s
        slack = errors * math.hypot(less.error_p90, more.error_p90)
        if more.at(percentile) < less.at(percentile) * (1 - slack):
            return False
    return True
