"""What is simulated: the load, the server, and what came out."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.facts.scheduling import Scheduling
from rackrate.speed.replica import Replica, expected_tokens
from rackrate.values import Value

SEED = 1
"""Which of the endless draws is taken, unless another is asked for."""


class Load(Value, frozen=True, kw_only=True):
    """Requests that come: ``requests_per_s`` at any time (open loop), or ``users`` who each wait for their answer.

    Exactly one of the two is given. Lengths are log-normal with these means and
    ``length_spread`` as their coefficient of variation (0: all alike). The
    first ``shared_prefix_tokens`` of each prompt are the same in all; of each prompt ``cached_share``
    is in the cache from earlier turns or runs, where the engine keeps prefixes.
    ``together``: users start at once, as benchmark clients do; otherwise they are
    met in the middle of their requests.
    """

    prompt_tokens: int
    output_tokens: int
    requests_per_s: float | None = None
    users: int | None = None
    length_spread: float = 0.0
    shared_prefix_tokens: int = 0
    cached_share: float = 0.0
    together: bool = False


class Speculation(Value, frozen=True, kw_only=True):
    """Speculative decoding: ``draft_tokens`` are guessed by ``draft`` (None: at no cost), each right so often."""

    draft_tokens: int
    acceptance_rate: float
    draft: Replica | None = None

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a step adds to a sequence."""
        return expected_tokens(self.draft_tokens, self.acceptance_rate)


class Server(Value, frozen=True, kw_only=True):
    """What serves: ``replicas`` alike, to which requests go in turn.

    ``cache_tokens`` of the KV cache of one replica in blocks of ``page_tokens``;
    ``most_sequences`` run at a time; ``step_tokens`` go through one step (0: any).
    """

    replica: Replica
    scheduling: Scheduling
    cache_tokens: float
    page_tokens: int
    most_sequences: int
    step_tokens: int
    replicas: int = 1
    speculation: Speculation | None = None


class Percentiles(Value, frozen=True, kw_only=True):
    """Three percentiles over requests, and the relative standard error of the middle and the 90th one.

    Standard errors are of the means of eight batches of requests that follow each
    other (batch means; Law, Simulation Modeling and Analysis, section 9.5.3).
    """

    p50: float
    p90: float
    p99: float
    error_p50: float
    error_p90: float

    def at(self, percentile: int) -> float:
        """One of the three."""
        return {50: self.p50, 90: self.p90, 99: self.p99}[percentile]


class Simulated(Value, frozen=True, kw_only=True):
    """What ``counted`` requests met, warm-up left out; rates are of all replicas.

    ``s_per_output_token`` is of a request while it is written: from its first
    token to its last, over the tokens after the first. ``stable``: the server
    keeps up with what comes (always, for users who wait).
    ``cache_use``, ``in_flight`` and ``waiting`` are means over time of one replica.
    ``preempted``: of the requests, the share that a full cache threw out at least once.
    """

    load: Load
    first_token_s: Percentiles
    s_per_output_token: Percentiles | None
    request_s: Percentiles
    requests_per_s: float
    output_tokens_per_s: float
    stable: bool
    cache_use: float
    cache_use_most: float
    in_flight: float
    waiting: float
    preempted: float
    counted: int
    steps: int
    simulated_s: float


Outcome = Simulated | Unknown
