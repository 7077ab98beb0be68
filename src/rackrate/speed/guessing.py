"""Speculative decoding: the time of one round, in which a draft guesses and the model checks (arXiv 2211.17192)."""

from __future__ import annotations

from rackrate.speed.decode import cache_read_bytes, decode_step_s, decode_terms, host_s, pass_s, sequences_in_pass
from rackrate.speed.estimate_types import Bound
from rackrate.speed.replica import Replica, weight_bytes_touched


def checking_terms(replica: Replica, batch: float, context_tokens: float, guesses: int) -> dict[Bound, float]:
    """Seconds that each resource is busy while ``guesses`` and one token of ``batch`` sequences are checked together.

    Weights are read once, touched by ``(k + 1) B`` tokens, arithmetic and collectives are those of
    ``(k + 1) B`` tokens; each sequence's cache is read once, and the host prepares B sequences.
    """
    passing = sequences_in_pass(replica, batch)
    found = decode_terms(replica, batch * (1 + guesses), 0.0)
    found[Bound.HOST] = host_s(replica, passing)
    rate = replica.rates.bandwidth_bytes_per_s * replica.cache_share
    found[Bound.CACHE_BANDWIDTH] += cache_read_bytes(replica, passing, context_tokens) / rate
    return found


def round_s(replica: Replica, batch: float, context_tokens: float) -> float:
    """Seconds of one step: a token for each sequence, or with a draft k of its steps and one check of k + 1 tokens."""
    if replica.draft is None:
        return decode_step_s(replica, batch, context_tokens)
    check = pass_s(replica, checking_terms(replica, batch, context_tokens, replica.guesses)) * replica.times.decode
    return check + replica.guesses * decode_step_s(replica.draft, batch, context_tokens)


def token_s(replica: Replica, batch: float, context_tokens: float) -> float:
    """Seconds in which each of ``batch`` sequences gets one more token, on average."""
    return round_s(replica, batch, context_tokens) / replica.tokens_per_step


def round_terms(replica: Replica, batch: float, context_tokens: float) -> dict[Bound, float]:
    """Seconds that each resource is busy in one step, those of a draft among them."""
    if replica.draft is None:
        return decode_terms(replica, batch, context_tokens)
    check = checking_terms(replica, batch, context_tokens, replica.guesses)
    draft = decode_terms(replica.draft, batch, context_tokens)
    return {bound: seconds + replica.guesses * draft[bound] for bound, seconds in check.items()}


def least_bytes(replica: Replica, batch: float, context_tokens: float) -> float:
    """Bytes that one card must read in one step: weights and caches once, those of a draft for each guess."""
    passing = sequences_in_pass(replica, batch)
    read = weight_bytes_touched(replica, passing) / replica.layout.tensor
    read += cache_read_bytes(replica, passing, context_tokens)
    if replica.draft is None:
        return read
    return read + replica.guesses * least_bytes(replica.draft, batch, context_tokens)


def least_flop(replica: Replica, batch: float) -> float:
    """FLOPs of the matrices in one step: ``2 N B``, with a draft of all tokens that are guessed and checked."""
    flop = 2 * replica.multiplied_params * sequences_in_pass(replica, batch)
    if replica.draft is None:
        return flop
    return (1 + replica.guesses) * flop + replica.guesses * least_flop(replica.draft, batch)
