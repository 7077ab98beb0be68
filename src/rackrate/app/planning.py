"""The use case ``plan``: read the workload, plan on the bundled facts and offers, answer as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from rackrate.app.asking import NOTHING, Asked, read_workload
from rackrate.app.context import Context, context
from rackrate.app.documents import assumption_docs, finding_docs, header, workload_doc
from rackrate.app.limits import unknown_names
from rackrate.app.plan_documents import frontier_docs, plan_doc, rejected_docs, runner_up_doc
from rackrate.app.wire.hosted import HostedDoc
from rackrate.app.wire.plan import PlanDocument
from rackrate.plan.answer import Answer, Plan, Rank
from rackrate.plan.planner import plan as plan_rental
from rackrate.plan.question import Question
from rackrate.problems import Code, Finding, Refused, Severity
from rackrate.values import replace
from rackrate.workload.parse import Parsed
from rackrate.workload.workload import NOT_HOSTED

if TYPE_CHECKING:
    from rackrate.app.wire.measured import JudgedDoc

MEDIAN = 50

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
    return plan_over(context(at), asked, flags, rank=rank, limit=limit)


def plan_over(
    here: Context, asked: Asked = None, flags: Mapping[str, object] = NOTHING, *, rank: str = "cost", limit: int = 8
) -> PlanDocument:
    """The same over the facts and offers of ``here``."""
    _check(rank, limit)
    parsed = read_workload(asked, flags, here.book)
    if unknown := unknown_names(parsed.workload.limits, here.catalog.table, here.book.provider_ids):
        raise Refused(unknown)
    _check_machines(parsed)
    _check_hosted(parsed, here)
    here, seen = _measured(parsed, here)
    question = Question(
        workload=parsed.workload,
        engine=here.book.engine(parsed.workload.engine_id),
        book=here.book,
        offers=here.catalog.table,
        at=here.at,
        currency=parsed.workload.display_currency,
        rank=Rank(rank),
        request=parsed.request,
        limit=max(limit, 2),  # the runner-up is told even where one plan is wanted
    )
    found = _document(here, parsed, _with_tails(question, plan_rental(question), limit), limit)
    return replace(found, judged=seen) if seen else found


def _with_tails(question: Question, answer: Answer, limit: int) -> Answer:
    """The answer with shown plans simulated where targets are beyond the median request."""
    serving = question.workload.serving
    if serving is None or not serving.online or serving.percentile == MEDIAN:
        return answer
    from rackrate.plan.loads import with_tail  # imported here: most plans need no simulation

    shown = answer.plans[:limit]
    return replace(answer, plans=(*(with_tail(question, plan) for plan in shown), *answer.plans[limit:]))


def _measured(parsed: Parsed, here: Context) -> tuple[Context, JudgedDoc | None]:
    """What is known, with a measured speed over it; few questions have one."""
    if parsed.workload.measured is None:
        return here, None
    from rackrate.app.measuring import with_measured  # imported here: a plan without one starts without it

    return with_measured(parsed.workload, here)


def _check_machines(parsed: Parsed) -> None:
    """Refuse machines that share one job over a network: price lists do not say which machines a seller joins."""
    parallel = parsed.workload.parallel
    if parallel is None or parallel.nodes == 1:
        return
    raise Refused(
        [
            Finding(
                code=Code.CONFLICT,
                subject="parallel.nodes",
                observed=f"{parallel.nodes} machines that share one job",
                expected="1: price lists do not say which machines are joined, nor by what network",
                action="ask `rackrate speed --nodes` for the time, and multiply the price of a machine by their number",
            )
        ]
    )


def _check(rank: str, limit: int) -> None:
    wrong = []
    if rank not in set(Rank):
        expected = ", ".join(Rank)
        wrong.append(Finding(code=Code.BAD_VALUE, subject="rank", observed=rank, expected=expected, action="use one"))
    if limit < 1:
        action = "ask for at least one plan"
        wrong.append(Finding(code=Code.OUT_OF_BOUNDS, subject="limit", observed=str(limit), action=action))
    if wrong:
        raise Refused(wrong)


def _document(here: Context, parsed: Parsed, answer: Answer, limit: int) -> PlanDocument:
    rates = here.book.rates
    return PlanDocument(
        **header("plan", here),
        workload=workload_doc(parsed.workload),
        rank=str(answer.rank),
        currency=answer.currency,
        rates_on=rates.on.isoformat(),
        rates_source=rates.source,
        considered=answer.considered,
        plans=[plan_doc(plan, here) for plan in answer.plans[:limit]],
        runner_up=runner_up_doc(answer),
        hosted=_hosted(parsed, answer.plans[:limit], here),
        more_plans=max(0, answer.possible - limit),
        frontier=frontier_docs(answer.frontier),
        rejected=rejected_docs(answer.rejected),
        assumptions=assumption_docs(answer.assumptions),
        warnings=finding_docs([*parsed.warnings, *here.findings, *_stale_rates(here, answer)]),
    )


def _check_hosted(parsed: Parsed, here: Context) -> None:
    """Refuse a hosted model that nobody is known to sell."""
    serving = parsed.workload.serving
    if serving is not None and serving.hosted not in {"", NOT_HOSTED}:
        from rackrate.app.hosting import check_hosted

        check_hosted(parsed.workload, here)


def _hosted(parsed: Parsed, plans: Sequence[Plan], here: Context) -> HostedDoc | None:
    """Hosted APIs beside the plans of a workload that serves."""
    serving = parsed.workload.serving
    if serving is None or serving.hosted == NOT_HOSTED:
        return None
    from rackrate.app.hosting import hosted_beside  # imported here: training has no hosted price by the token

    return hosted_beside(plans, parsed.workload, here)


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
