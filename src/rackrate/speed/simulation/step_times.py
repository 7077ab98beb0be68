"""Step times: the roofline of one step, kept by what is in it."""

from __future__ import annotations

from rackrate.speed.communication import tensor_parallel_s
from rackrate.speed.decode import (
    cache_read_bytes,
    decode_step_s,
    decode_terms,
    host_s,
    pass_s,
    sequences_in_pass,
)
from rackrate.speed.estimate_types import Bound
from rackrate.speed.flops import attention_flop_per_token
from rackrate.speed.guessing import checking_terms
from rackrate.speed.prefill import prefill_s, prefill_terms
from rackrate.speed.replica import Replica
from rackrate.speed.simulation.records import Speculation
from rackrate.values import Value

_FINE = 256
"""Pieces of up to this many tokens are computed exactly, longer ones to a 64th of their length."""


class Piece(Value, frozen=True, kw_only=True):
    """Prompt tokens ``begin`` to ``end`` of one request, read in one step."""

    begin: int
    end: int


class StepTimes:
    """Seconds of steps of one replica; what a kind of step takes is computed once.

    A step of decoding: a part that depends on the number of sequences, and cache reads in
    proportion to what they attend to, exactly as ``decode_step_s``.
    A step that reads prompts too: weights are read once, products add, caches
    are read, the host prepares all sequences, and all-reduces carry all tokens.
    In a pipeline prompts and running requests are in different stages: their
    times add.
    """

    def __init__(self, replica: Replica, speculation: Speculation | None = None) -> None:
        self.replica = replica
        self.speculation = speculation
        self.tokens_per_step = speculation.tokens_per_step if speculation else 1.0
        self._terms: dict[int, dict[Bound, float]] = {}
        self._fixed: dict[int, float] = {}
        self._per_layer_token: dict[int, float] = {}
        self._prompts: dict[tuple[int, int], dict[Bound, float]] = {}
        self._attention: dict[int, float] = {}
        model = replica.model
        windowed = model.layers_windowed or 0
        self._full = model.layers_full if model.layers_full is not None else (model.layers or 0) - windowed
        self._windowed, self._window = windowed, float(model.window or 0) or float("inf")
        self._cache_bytes_per_s = replica.rates.bandwidth_bytes_per_s * replica.cache_share
        self._started_s = tensor_parallel_s(replica.tensor_link, replica.layout.tensor, replica.layers, 0.0)

    def decode_s(self, sequences: int, context_tokens: float) -> float:
        """One more step of ``sequences`` that have ``context_tokens`` on average."""
        if sequences not in self._fixed:
            self._learn(sequences)
        step = self._fixed[sequences] + self._cache_s(sequences, context_tokens)
        if self.replica.eager:
            step = max(step, self._eager_floor(sequences))
        step *= self.replica.times.decode
        if self.speculation is not None and self.speculation.draft is not None:
            step += self.speculation.draft_tokens * decode_step_s(self.speculation.draft, sequences, context_tokens)
        return step

    def _cache_s(self, sequences: int, context_tokens: float) -> float:
        """Reading the caches of ``sequences``, as ``cache_read_bytes`` counts them."""
        attended = self._full * context_tokens + self._windowed * min(context_tokens, self._window)
        return self._per_layer_token[sequences] * attended

    def _learn(self, sequences: int) -> None:
        """What a step of ``sequences`` takes without a cache, and a layer's token of cache on top."""
        one = self.replica
        self._terms[sequences] = terms = self._decode_terms(sequences)
        if one.eager:
            terms = {**terms, Bound.HOST: 0.0}
        passing = sequences_in_pass(one, sequences)
        self._fixed[sequences] = pass_s(one, terms)
        self._per_layer_token[sequences] = passing * one.cache_layer_bytes / self._cache_bytes_per_s

    def _eager_floor(self, sequences: int) -> float:
        """The host's time and what comes after it."""
        terms = self._terms[sequences]
        return terms[Bound.HOST] + terms[Bound.COMMUNICATION]

    def _decode_terms(self, sequences: int) -> dict[Bound, float]:
        """The terms of a decode step without caches; with guesses to check, as many tokens more for each sequence."""
        if self.speculation is None:
            return decode_terms(self.replica, sequences, 0.0)
        return checking_terms(self.replica, sequences, 0.0, self.speculation.draft_tokens)

    def mixed_s(self, sequences: int, context_tokens: float, pieces: list[Piece]) -> float:
        """A step of ``sequences`` that decode and ``pieces`` of prompts."""
        one = self.replica
        tokens = sum(piece.end - piece.begin for piece in pieces)
        if one.layout.pipeline > 1:
            reading = prefill_s(one, len(pieces), tokens / len(pieces))
            return reading + (self.decode_s(sequences, context_tokens) if sequences else 0.0)
        terms = self._prompt_terms(len(pieces), tokens).copy()
        terms[Bound.COMPUTE] += sum(self._attention_s(p.end) - self._attention_s(p.begin) for p in pieces)
        for begin in (piece.begin for piece in pieces if piece.begin):
            terms[Bound.CACHE_BANDWIDTH] += cache_read_bytes(one, 1, begin) / self._cache_bytes_per_s
        if sequences:
            self._add_decoding(terms, sequences, context_tokens, len(pieces))
        return pass_s(one, terms) * self._slower(sequences, context_tokens, pass_s(one, terms))

    def _slower(self, sequences: int, context_tokens: float, step: float) -> float:
        """What was measured of a step that reads prompts: of writing, for the part that writing alone would take."""
        times = self.replica.times
        if times.prefill == times.decode:
            return times.prefill
        writing = self.decode_s(sequences, context_tokens) / times.decode if sequences else 0.0
        return times.prefill + (times.decode - times.prefill) * min(1.0, writing / step)

    def _prompt_terms(self, pieces: int, tokens: int) -> dict[Bound, float]:
        """The terms of reading ``tokens`` in ``pieces``, without the scores of attention."""
        grain = 1 if tokens <= _FINE else 1 << (tokens.bit_length() - 7)
        rounded = grain * round(tokens / grain)
        key = (pieces, rounded)
        if key not in self._prompts:
            terms = prefill_terms(self.replica, pieces, rounded / pieces)
            scores = pieces * self._attention_s(rounded / pieces)
            self._prompts[key] = {**terms, Bound.COMPUTE: terms[Bound.COMPUTE] - scores}
        return self._prompts[key]

    def _attention_s(self, tokens: float) -> float:
        """Scores and weighted values of a prompt's first ``tokens``, as ``prefill_terms`` counts them."""
        one, whole = self.replica, int(tokens)
        if whole not in self._attention:
            flop = attention_flop_per_token(one.model, whole / 2) * whole / one.attention_share
            self._attention[whole] = flop / one.half_flop_per_s
        return self._attention[whole]

    def _add_decoding(self, terms: dict[Bound, float], sequences: int, context_tokens: float, pieces: int) -> None:
        """Put ``sequences`` that decode into the pass that reads ``pieces`` of prompts."""
        if sequences not in self._fixed:
            self._learn(sequences)
        decode = self._terms[sequences]
        terms[Bound.BANDWIDTH] = max(terms[Bound.BANDWIDTH], decode[Bound.BANDWIDTH])
        terms[Bound.COMPUTE] += decode[Bound.COMPUTE]
        terms[Bound.CACHE_BANDWIDTH] += self._cache_s(sequences, context_tokens)
        terms[Bound.HOST] = host_s(self.replica, sequences + pieces)
        terms[Bound.COMMUNICATION] += decode[Bound.COMMUNICATION] - self._started_s
