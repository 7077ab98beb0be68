"""The cache of one simulated replica: what running requests hold of it, and whether another finds room."""

from __future__ import annotations

from rackrate.speed.simulation.records import Server


class Cache:
    """Tokens held by requests that run or are being read.

    Blocks are filled in order, so that each request wastes half a block on
    average. A prefix that all share is held once. ``to_write`` are the output
    tokens that admitted requests still have to write.
    """

    def __init__(self, server: Server, shared_tokens: int) -> None:
        self.capacity = server.cache_tokens
        self.admits_up_to = server.cache_tokens * (1 - server.scheduling.kept_free)
        self._reserved = server.scheduling.reserved_output
        self.shared = shared_tokens // server.page_tokens * server.page_tokens
        self._waste = (server.page_tokens - 1) / 2
        self.requests = 0
        self.context = 0.0
        self.to_write = 0.0

    @property
    def used(self) -> float:
        """Tokens of the cache that are taken."""
        repeated = self.shared * (self.requests - 1) if self.requests > 1 else 0
        return self.context - repeated + self._waste * self.requests

    def admits(self, prompt: float, output: float, growth: float) -> bool:
        """Whether a request finds room while those that run grow by ``growth`` in a step; alone it always does."""
        if not self.requests:
            return True
        new = prompt - self.shared + self._waste + self._reserved * output
        return self.used + self._reserved * self.to_write + growth + new <= self.admits_up_to

    def add(self, prompt: float, output: float) -> None:
        """A request is admitted."""
        self.requests += 1
        self.context += prompt
        self.to_write += output

    def remove(self, context: float, to_write: float) -> None:
        """A request leaves, done or thrown out."""
        self.requests -= 1
        self.context -= context
        self.to_write -= to_write

    def grow(self, tokens: float) -> None:
        """Running requests write ``tokens`` in all."""
        self.context += tokens
        self.to_write -= tokens
