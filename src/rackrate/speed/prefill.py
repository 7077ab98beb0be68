"""Prefill: the time to read prompts."""

from __future__ import annotations

from rackrate.memory.weights import is_encoder
from rackrate.speed import mechanisms
from rackrate.speed.communication import tensor_parallel_s
from rackrate.speed.decode import ACTIVATION_BYTES, crossed_s, elementwise_s, host_s, pass_s
from rackrate.speed.estimate_types import Bound
from rackrate.speed.flops import attention_flop_per_token, head_params
from rackrate.speed.replica import Replica, reading_s, routed_active_params

# llama.cpp cuts prompts into physical batches of 512 tokens, which follow each other through the split
# (ggml-org/llama.cpp common/arg.cpp: ubatch-size).
_PHYSICAL_BATCH = 512


def prefill_terms(replica: Replica, sequences: float, prompt_tokens: float, behind: float = 0.0) -> dict[Bound, float]:
    """Seconds that each resource is busy while ``sequences`` prompts of ``prompt_tokens`` are read together.

    Arithmetic ``(2 N T + attention / share) / (FL n e)`` with T tokens in all and
    the output head for the last of each prompt only, each behind ``behind`` tokens that
    are in the cache; weights ``W / (BW n e_w)``;
    host ``L x launch``; tensor-parallel all-reduces of T tokens.
    """
    replica = replica.reader
    tokens, model = sequences * prompt_tokens, replica.model
    touched_s = reading_s(replica, tokens)
    attention = attention_flop(replica, prompt_tokens, behind) * tokens / replica.attention_share
    payload = tokens * (model.hidden_size or 0) * ACTIVATION_BYTES
    return {
        Bound.BANDWIDTH: replica.expansion_s if replica.expands else touched_s,
        Bound.COMPUTE: matrix_flop(replica, sequences, prompt_tokens, grouped=mechanisms.GROUPED_SHARE)
        / replica.flop_per_s
        + attention / replica.half_flop_per_s,
        Bound.CACHE_BANDWIDTH: elementwise_s(replica, tokens),
        Bound.HOST: host_s(replica, sequences),
        Bound.COMMUNICATION: tensor_parallel_s(replica.tensor_link, replica.layout.tensor, replica.layers, payload)
        + crossed_s(replica, payload),
    }


def attention_flop(replica: Replica, prompt_tokens: float, behind: float = 0.0) -> float:
    """FLOPs of attention for each token of a prompt: to half of it in the mean, in an encoder to all of it.

    Tokens ``behind`` which it stands, in the cache already, are attended to as well.
    """
    model = replica.reader.model
    return attention_flop_per_token(model, behind + prompt_tokens / (1 if is_encoder(model) else 2))


def matrix_flop(replica: Replica, sequences: float, prompt_tokens: float, *, grouped: float = 1.0) -> float:
    """FLOPs of the matrix products: all layers for each token, the output head once a prompt, the tower for images.

    Those of routed experts count ``1 / grouped`` times: what grouped products lose.
    """
    replica = replica.reader
    head = min(head_params(replica.model), replica.multiplied_params)
    lost = routed_active_params(replica.model) * (1 / grouped - 1)
    layers = 2 * (replica.multiplied_params - head + lost) + replica.image_flop
    return sequences * (prompt_tokens * layers + 2 * head)


def prefill_s(replica: Replica, sequences: float, prompt_tokens: float, behind: float = 0.0) -> float:
    """Seconds until ``sequences`` prompts are read; pipeline stages share the work where they can overlap.

    Every piece that goes through a pipeline reads the weights again, so that what
    overlaps is one prompt's pass after another's: ``(m + p - 1) / p`` passes, or
    one pass of all together where that is sooner.
    """
    if not prompt_tokens or not sequences:
        return 0.0
    terms = prefill_terms(replica, sequences, prompt_tokens, behind)
    if replica.layout.layer_split:
        pieces = split_pieces(sequences, prompt_tokens)
        if pieces > 1 and not replica.expands:
            terms[Bound.BANDWIDTH] = pieces * reading_s(replica.reader, _PHYSICAL_BATCH)
        return pass_s(replica, terms) / stages_at_once(replica, sequences, prompt_tokens) * replica.times.prefill
    together = pass_s(replica, terms)
    if replica.layout.pipeline > 1 and sequences > 1:
        each = pass_s(replica, prefill_terms(replica, 1, prompt_tokens, behind))
        together = min(together, each * sequences / stages_at_once(replica, sequences, prompt_tokens))
    return together * replica.times.prefill


def stages_at_once(replica: Replica, sequences: float, prompt_tokens: float) -> float:
    """Stages that work at the same time: ``m p / (m + p - 1)`` for m pieces in p stages (GPipe, arXiv 1811.06965).

    Pieces are the prompts; in a layer split they are its physical batches, of which a stage may have to wait
    until the last but few are done (``split_stages``): ``m / (1 + (m - 1) (1 - ahead / p))``.
    """
    stages, pieces = replica.layout.pipeline, max(1.0, sequences)
    if stages <= 1:
        return 1.0
    if not replica.layout.layer_split:
        return pieces * stages / (pieces + stages - 1)
    pieces = split_pieces(sequences, prompt_tokens)
    ahead = min(stages - 1, replica.policy.split_stages or stages)
    ideal = pieces / (1 + (pieces - 1) * (1 - ahead / stages))
    return 1 + mechanisms.FITTED.split_overlap * (ideal - 1)


def split_pieces(sequences: float, prompt_tokens: float) -> float:
    """Physical batches that go through a layer split one after another."""
    return max(1.0, sequences * prompt_tokens / _PHYSICAL_BATCH)
