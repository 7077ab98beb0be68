"""The likely speed of a row of inference alone, without its interval: what refits call many times."""

from __future__ import annotations

from rackrate.evidence import Unknown
from rackrate.speed import serving
from rackrate.speed.decode import decode_step_s
from rackrate.speed.prefill import prefill_s
from rackrate.speed.replica import replica
from scoring.cells import Row
from scoring.memory_rows import NotScored
from scoring.speed_rows import Case


def likely(row: Row, case: Case) -> float:
    """The likely speed in the metric of the row.

    Raises:
        NotScored: it is not known.
    """
    one, asked = replica(case.workload, case.card, case.layout, case.engine), case.workload.serving
    assert asked is not None
    if isinstance(one, Unknown):
        raise NotScored(one.reason)
    task, held = row.text("norm_task"), case.held * case.layout.data
    flying = min(asked.concurrency, held)
    replicas, batch = serving.spread_over(one, flying)
    if task == "decode":
        return replicas * batch / decode_step_s(one, batch, asked.prompt_tokens + asked.output_tokens / 2)
    if task == "serve":
        return serving.served(one, asked.concurrency, case.held, asked).output_tokens_per_s.likely
    if case.through_server:
        first = serving.served(one, asked.concurrency, case.held, asked).first_token_s.likely
        return asked.prompt_tokens * asked.concurrency / first
    return replicas * batch * asked.prompt_tokens / prefill_s(one, batch, asked.prompt_tokens)
