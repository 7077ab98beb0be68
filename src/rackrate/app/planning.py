"""The use case ``plan``: read the workload, plan on the bundled facts and offers, answer as a document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from rackrate.app.asking import NOTHING, Asked, read_workload
from rackrate.app.context import Context, context
from rackrate.app.documents import assumption_docs, finding_docs, header, workload_doc
from rackrate.app.plan_documents import frontier_docs, plan_doc, rejected_docs, runner_up_doc
from rackrate.app.wire import PlanDocument
from rackrate.plan.answer import Answer, Rank
from rackrate.plan.planner import plan as plan_rental
from rackrate.plan.question import Question
from rackrate.problems import Code, Finding, Severity
from rackrate.workload.parse import Parsed

STALE_RATES_DAYS = 7
"""Exchange rates older than this are named in the answer."""


def plan(
    asked: Asked = None,
    flags: Mapping[str, object] = NOTHING,
    *,
    rank: str = "cost",
    limit: int = 8,
    at: date | None = None,
) -> PlanDocument:
    """Ranked rental plans for the workload in ``asked`` and ``flags``.

    Args:
        asked: a workload file (TOML or JSON), or the table that such a file holds.
        flags: more keys by path, such as ``{"limits.max_gpus": 1}``; they win.
        rank: ``cost``, ``time`` or ``both``.
        limit: how many plans are wanted.
        at: the day to plan at (today).

    Returns:
        The document that ``rackrate plan --json`` prints; no plan is an answer.

    Raises:
        Refused: the request cannot be understood; its findings say why.

    >>> from rackrate import api
    >>> job = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}
    >>> answer = api.plan(job, {"limits.max_gpus": 1})
    >>> answer.plans[0].fit.verdict
    'fits'
    """
    here = context(at)
    parsed = read_workload(asked, flags, here.book)
    question = Question(
        workload=parsed.workload,
        engine=here.book.engine(parsed.workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency=parsed.workload.display_currency,
        rank=Rank(rank),
        limit=limit,
    )
    return _document(here, parsed, plan_rental(question))


def _document(here: Context, parsed: Parsed, answer: Answer) -> PlanDocument:
    rates = here.book.rates
    return PlanDocument(
        **header("plan", here),
        workload=workload_doc(parsed.workload),
        rank=str(answer.rank),
        currency=answer.currency,
        rates_on=rates.on.isoformat(),
        rates_source=rates.source,
        considered=answer.considered,
        plans=[plan_doc(plan, here) for plan in answer.plans],
        runner_up=runner_up_doc(answer),
        more_plans=answer.possible - len(answer.plans),
        frontier=frontier_docs(answer.frontier),
        rejected=rejected_docs(answer.rejected),
        assumptions=assumption_docs(answer.assumptions),
        warnings=finding_docs([*parsed.warnings, *_stale_rates(here, answer)]),
    )


def _stale_rates(here: Context, answer: Answer) -> list[Finding]:
    """A finding when a shown plan was converted at rates older than a week."""
    age = (here.at - here.book.rates.on).days
    converted = any(p.offer.price.currency != answer.currency for p in answer.plans)
    if age <= STALE_RATES_DAYS or not converted:
        return []
    return [
        Finding(
            code=Code.RATES_STALE,
            severity=Severity.INFO,
            subject="exchange rates",
            observed=f"{age} days old",
            expected=f"at most {STALE_RATES_DAYS} days",
            action="read converted prices as approximate; the bill is in the offer's own currency",
        )
    ]
