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
        self._fixed: dict[int, float] = {}
        self._per_layer_token: dict[int, float] = {}
        self._prompts: dict[tuple[int, int], dict[Bound, float]] = {}
        self._attention: dict[int, float] = {}
        model = replica.model
        windowed = model.layers_windowed or 0
        self._full = model.layers_full if model.layers_full is not None else (model.layers or 0) - windowed
        self._windowed, self._window = windowed, float(model.window or 0) or float("inf")

    def decode_s(self, sequences: int, context_tokens: float) -> float:
        """One more step of ``sequences`` that have ``context_tokens`` on average."""
        if sequences not in self._fixed:
            self._learn(sequences)
        attended = self._full * context_tokens + self._windowed * min(context_tokens, self._window)
        step = self._fixed[sequences] + self._per_layer_token[sequences] * attended
        if self.replica.eager:
            step = max(step, self._eager_floor(sequences))
        if self.speculation is not None and self.speculation.draft is not None:
            step += self.speculation.draft_tokens * decode_step_s(self.speculation.draft, sequences, context_tokens)
        return step

    def _learn(self, sequences: int) -> None:
        """What a step of ``sequences`` takes without a cache, and a layer's token of cache on top."""
        one = self.replica
        terms = self._decode_terms(sequences, 0.0)
        if one.eager:
            terms = {**terms, Bound.HOST: 0.0}
        passing = sequences_in_pass(one, sequences)
        bandwidth = one.rates.bandwidth_bytes_per_s * one.cache_share
        self._fixed[sequences] = pass_s(one, terms)
        self._per_layer_token[sequences] = passing * one.cache_layer_bytes / bandwidth

    def _eager_floor(self, sequences: int) -> float:
        """The host's time and what comes after it."""
        terms = self._decode_terms(sequences, 0.0)
        return terms[Bound.HOST] + terms[Bound.COMMUNICATION]

    def _decode_terms(self, sequences: int, context_tokens: float) -> dict[Bound, float]:
        """The terms of a decode step; with guesses to check, as many tokens more for each sequence."""
        terms = decode_terms(self.replica, sequences, context_tokens)
        if self.speculation is None:
            return terms
        checked = decode_terms(self.replica, sequences * (1 + self.speculation.draft_tokens), 0.0)
        kept = {Bound.CACHE_BANDWIDTH: terms[Bound.CACHE_BANDWIDTH], Bound.HOST: terms[Bound.HOST]}
        return {**checked, **kept}

    def mixed_s(self, sequences: int, context_tokens: float, pieces: list[Piece]) -> float:
        """A step of ``sequences`` that decode and ``pieces`` of prompts."""
        one = self.replica
        tokens = sum(piece.end - piece.begin for piece in pieces)
        if one.layout.pipeline > 1:
            reading = prefill_s(one, len(pieces), tokens / len(pieces))
            return reading + (self.decode_s(sequences, context_tokens) if sequences else 0.0)
        terms = dict(self._prompt_terms(len(pieces), tokens))
        terms[Bound.COMPUTE] += sum(self._attention_s(p.end) - self._attention_s(p.begin) for p in pieces)
        begun = [piece.begin for piece in pieces if piece.begin]
        if begun:
            read = sum(cache_read_bytes(one, 1, begin) for begin in begun)
            terms[Bound.CACHE_BANDWIDTH] += read / (one.rates.bandwidth_bytes_per_s * one.cache_share)
        if sequences:
            terms = self._together(terms, self._decode_terms(sequences, context_tokens), sequences + len(pieces))
        return pass_s(one, terms)

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
            self._attention[whole] = flop / one.flop_per_s
        return self._attention[whole]

    def _together(self, prompts: dict[Bound, float], decode: dict[Bound, float], sequences: int) -> dict[Bound, float]:
        """The terms of both in one pass."""
        one = self.replica
        started = tensor_parallel_s(one.tensor_link, one.layout.tensor, one.layers, 0.0)
        return {
            Bound.BANDWIDTH: max(prompts[Bound.BANDWIDTH], decode[Bound.BANDWIDTH]),
            Bound.COMPUTE: prompts[Bound.COMPUTE] + decode[Bound.COMPUTE],
            Bound.CACHE_BANDWIDTH: prompts[Bound.CACHE_BANDWIDTH] + decode[Bound.CACHE_BANDWIDTH],
            Bound.HOST: host_s(one, sequences),
            Bound.COMMUNICATION: prompts[Bound.COMMUNICATION] + decode[Bound.COMMUNICATION] - started,
        }
