"""The scheduler: requests wait, are admitted, run and end, step by step.

A step is what an engine's loop does: it gives each running request its next token, reads
prompts, or both. Steps that only decode are taken together until something
happens: a request ends, one comes that may be admitted, or the cache is full.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

from rackrate.facts.scheduling import Order
from rackrate.speed.simulation.cache import Cache
from rackrate.speed.simulation.draws import Drawn
from rackrate.speed.simulation.records import Load, Server
from rackrate.speed.simulation.step_times import Piece, StepTimes

_NEVER = math.inf
_EDGE = 1e-9


class Course:
    """What became of each request, by its number; times in seconds from the start (infinite: not yet)."""

    def __init__(self, count: int) -> None:
        self.came = [_NEVER] * count
        self.first = [_NEVER] * count
        self.ended = [_NEVER] * count
        self.thrown_out = [0] * count
        self.written = [0.0] * count


class Meter:
    """Sums over time, taken between steps: seconds times what was running, waiting and cached."""

    def __init__(self) -> None:
        self.running = self.waiting = self.cached = self.most_cached = 0.0

    def pass_time(self, seconds: float, running: int, waiting: int, cached: float) -> None:
        """``seconds`` went by."""
        self.running += seconds * running
        self.waiting += seconds * waiting
        self.cached += seconds * cached
        self.most_cached = max(self.most_cached, cached)


class Scheduler:
    """One replica at work on ``drawn`` requests; ``users`` (closed loop) each send the next when theirs ends.

    ``clock`` counts the tokens that a request running all the time would have written: a request
    that joins at c with n tokens to write ends when the clock is at c + n.
    """

    def __init__(self, server: Server, drawn: Sequence[Drawn], times: StepTimes, load: Load, users: int | None) -> None:
        self.server, self.policy, self.times = server, server.scheduling, times
        self.prompt = [float(each.prompt_tokens) for each in drawn]
        self.output = [float(each.output_tokens) for each in drawn]
        self.arrivals = [each.at_s for each in drawn]
        self.course, self.meter = Course(len(drawn)), Meter()
        keeps = self.policy.keeps_prefixes
        self.cache = Cache(server, load.shared_prefix_tokens if keeps else 0)
        self._cached_share = load.cached_share if keeps else 0.0
        self.users = users
        self.now = self.clock = 0.0
        self.steps = self.next = 0
        self.batch = self.running = 0  # in a static batch those that have ended still cost
        self._waiting: deque[int] = deque()
        self._reading: deque[tuple[int, int]] = deque()
        self._ends: list[tuple[float, int, int]] = []
        self._joined: dict[int, float] = {}
        self._admitted: list[int] = []
        self._prefix_known = False
        if users is not None:
            for _ in range(min(users, len(drawn))):
                self._come(0.0)

    # ------------------------------------------------------------ the loop

    def run(self, until: int) -> None:
        """Go on until all requests before number ``until`` have ended."""
        left = until
        while left > 0:
            self._let_in()
            full = self._throw_out()
            pieces = [] if full else self._pieces()
            if pieces:
                self._read(pieces)
            elif self.running:
                self._decode()
            else:
                self._pass(self.arrivals[self.next] - self.now)
            left -= sum(number < until for number in self._end())

    def _let_in(self) -> None:
        """Requests that have come by now wait."""
        if self.users is None and self.next < len(self.arrivals):
            while self.next < len(self.arrivals) and self.arrivals[self.next] <= self.now:
                self._come(self.arrivals[self.next])

    def _come(self, at: float) -> None:
        if self.next < len(self.prompt):
            self.course.came[self.next] = at
            self._waiting.append(self.next)
            self.next += 1

    def _pass(self, seconds: float) -> None:
        waiting = len(self._waiting)
        self.meter.pass_time(seconds, self.running + len(self._reading), waiting, self.cache.used)
        self.now += seconds

    # ------------------------------------------------------------ prompts

    def _pieces(self) -> list[tuple[int, Piece]]:
        """What this step reads of which prompts: what is begun first, then as many as the step and the cache hold."""
        if (self.policy.order is Order.STATIC and self.batch) or not (self._reading or self._waiting):
            return []
        budget: float = self.server.step_tokens or _NEVER
        if self.policy.order is Order.MIXED:
            checked = self.server.speculation.draft_tokens if self.server.speculation else 0
            budget -= self.running * (1 + checked)
        found: list[tuple[int, Piece]] = []
        for number, begin in self._reading:
            if budget > 0:
                end = self._end_of_piece(number, begin, budget, alone=not found)
                found.append((number, Piece(begin=begin, end=end)))
                budget -= end - begin
        while budget > 0 and self._admits_next():
            number = self._waiting[0]
            begin = self._first_token(number)
            end = self._end_of_piece(number, begin, budget, alone=not found)
            if end <= begin:
                break
            self._admit(self._waiting.popleft(), begin)
            found.append((number, Piece(begin=begin, end=end)))
            budget -= end - begin
        return found

    def _admits_next(self) -> bool:
        """Whether there is one that waits and may run."""
        if not self._waiting or self.running + len(self._reading) >= self.server.most_sequences:
            return False
        growth = (self.running + len(self._reading) + 1) * self.times.tokens_per_step
        return self.cache.admits(self.prompt[self._waiting[0]], self.output[self._waiting[0]], growth)

    def _first_token(self, number: int) -> int:
        """The first token of the prompt that is not found in the cache; the last one is always read."""
        last = int(self.prompt[number]) - 1
        known = int(self._cached_share * last) // self.server.page_tokens * self.server.page_tokens
        return min(max(known, self.cache.shared), last) if self._prefix_known else known

    def _end_of_piece(self, number: int, begin: int, budget: float, *, alone: bool) -> int:
        """How far the prompt is read: all of it, or what the step has left where prompts are cut."""
        whole = int(self.prompt[number])
        if whole - begin <= budget:
            return whole
        if self.policy.cuts_prompts:
            return begin + int(budget)
        waits = not alone or (self.running and whole - begin <= self.server.step_tokens)
        return begin if waits else whole

    def _admit(self, number: int, begin: int) -> None:
        self.cache.add(self.prompt[number], self.output[number])
        self._reading.append((number, begin))
        self._admitted.append(number)

    def _read(self, pieces: list[tuple[int, Piece]]) -> None:
        """A step that reads prompts, and decodes beside it where the engine mixes them."""
        decoding = self.running if self.policy.order is Order.MIXED else 0
        context = self._context() if decoding else 0.0
        seconds = self.times.mixed_s(decoding, context, [piece for _, piece in pieces])
        self._pass(seconds)
        self.steps += 1
        if decoding:
            self._advance(1)
        read = {number: piece.end for number, piece in pieces}
        before, self._reading = self._reading, deque()
        for number, begin in before:
            reached = read.get(number, begin)
            if reached >= int(self.prompt[number]):
                self._join(number)
            else:
                self._reading.append((number, reached))

    def _join(self, number: int) -> None:
        """A prompt is read: its request has its first token and runs."""
        self._prefix_known = True
        self.course.first[number] = min(self.course.first[number], self.now)
        self._joined[number] = self.clock
        self.running += 1
        self.batch = max(self.batch + 1, self.running) if self.policy.order is Order.STATIC else self.running
        heappush(self._ends, (self.clock + self.output[number] - 1, number, self.course.thrown_out[number]))

    # ------------------------------------------------------------ decoding

    def _context(self) -> float:
        """Mean tokens that a running request attends to."""
        read = sum(self.prompt[number] for number, _ in self._reading)
        return (self.cache.context - read) / self.running

    def _advance(self, steps: int) -> None:
        written = steps * self.times.tokens_per_step
        self.clock += written
        self.cache.grow(self.running * written)

    def _decode(self) -> None:
        """Steps that only decode, up to the next event."""
        each, context = self.times.tokens_per_step, self._context()
        while self._ends[0][2] != self.course.thrown_out[self._ends[0][1]]:
            heappop(self._ends)
        steps = math.ceil((self._ends[0][0] - self.clock) / each - _EDGE)
        growing = self.running * each
        steps = min(steps, int((self.cache.capacity - self.cache.used) / growing)) if self.running > 1 else steps
        batch = max(self.batch, self.running)
        if self._may_admit() and self.next < len(self.arrivals) and self.users is None:
            first = self.times.decode_s(batch, context)
            steps = min(steps, math.ceil((self.arrivals[self.next] - self.now) / first))
        steps = max(1, steps)
        seconds = steps * self.times.decode_s(batch, context + (steps - 1) * each / 2)
        self._pass(seconds)
        self.steps += steps
        self._advance(steps)

    def _may_admit(self) -> bool:
        """Whether a request that comes might be admitted before another one ends."""
        free = self.running < self.server.most_sequences and self.policy.order is not Order.STATIC
        return free and not self._waiting

    def _end(self) -> list[int]:
        """Requests that have written all they had to; in a closed loop their users send the next."""
        ended = []
        while self._ends and self._ends[0][0] <= self.clock + _EDGE:
            _, number, thrown_out = heappop(self._ends)
            if thrown_out != self.course.thrown_out[number]:
                continue
            written = self.clock - self._joined.pop(number)
            self.cache.remove(self.prompt[number] + written, self.output[number] - written)
            self.running -= 1
            self.course.ended[number] = self.now
            self.course.written[number] += written + 1
            ended.append(number)
            if self.users is not None:
                self._come(self.now)
        if self.policy.order is not Order.STATIC or not self.running:
            self.batch = self.running
        return ended

    # ------------------------------------------------------------ a full cache

    def _throw_out(self) -> bool:
        """Requests that came last leave while the next step finds no room; they are read again, output and all."""
        thrown = False
        while self.running > 1 and self.cache.used + self.running * self.times.tokens_per_step > self.cache.capacity:
            number = self._admitted.pop()
            if number not in self._joined:
                continue
            written = self.clock - self._joined.pop(number)
            self.cache.remove(self.prompt[number] + written, self.output[number] - written)
            self.prompt[number] += written + 1
            self.output[number] -= written + 1
            self.course.written[number] += written + 1
            self.course.thrown_out[number] += 1
            self.running -= 1
            self._waiting.appendleft(number)
            thrown = True
        return thrown
