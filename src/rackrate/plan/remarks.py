"""Remarks: what someone should know about a plan before paying for it."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.memory.estimate_types import MemoryEstimate
from rackrate.offers.conflicts import NOT_AFTER
from rackrate.plan.answer import Plan
from rackrate.plan.budget import budget_for_plan
from rackrate.plan.idle import oversized
from rackrate.plan.question import Question
from rackrate.problems import Code, Finding, Severity
from rackrate.speed.estimate_types import SpeedEstimate
from rackrate.speed.startup import stored_bytes
from rackrate.units import format_bytes
from rackrate.workload.needs import written
from rackrate.workload.workload import Workload

LONGEST_WAIT_S = 10
"""Seconds after which people turn to something else (Nielsen, "Response Times: The 3 Important Limits", 1993)."""

READING_TOKENS_PER_S = 5
"""People read 238 words a minute silently (Brysbaert, J. Memory and Language 109, 2019), at about 0.75 words a token
(OpenAI Help Center, "What are tokens and how to count them"): 5.3 tokens a second. English alone."""

STALE_DAYS = 60
"""A price older than this is named: neoclouds changed theirs about monthly in the sources read."""


def remarks(question: Question, plan: Plan) -> tuple[Finding, ...]:
    """Warnings about one plan, most serious first."""
    return tuple(
        f
        for f in (*_deadline_and_budget(question, plan), *_about_offer(question, plan), *_about_fit(question, plan))
        if f is not None
    )


def _about_offer(question: Question, plan: Plan) -> Iterator[Finding | None]:
    offer = plan.offer
    yield from offer.findings
    yield _access(question, plan)
    age = (question.at - offer.observed_on).days
    if offer.observed_how == NOT_AFTER:
        seen = f"the price has no date; it was there on {offer.observed_on} at the latest"
        yield _warn(Code.PRICE_UNDATED, offer, seen, "look the price up before ordering")
    elif age > STALE_DAYS:
        yield _warn(Code.PRICE_STALE, offer, f"price seen {age} days ago", "look the price up before ordering")
    if offer.price_is_from:
        yield _warn(Code.PRICE_SUSPECT, offer, "a 'from' price, the lowest of several", "expect to pay more")
    weights, host = stored_bytes(question.workload), offer.host_memory_bytes
    if host is not None and host < weights:
        seen = f"{format_bytes(host)} of host memory for {format_bytes(weights)} of weights"
        yield _warn(
            Code.HOST_SMALL, offer, seen, "see that the engine streams weights to the card, or take a larger host"
        )
    if offer.interruptible:
        yield _warn(
            Code.INTERRUPTIBLE,
            offer,
            "can be interrupted; lost work and waiting are not in the cost",
            "checkpoint often",
        )
    if len(plan.estimates) > 1 and all(f.code is not Code.AMBIGUOUS_CARD for f in offer.findings):
        names = " or ".join(e.shape.accelerator for e in plan.estimates)
        yield _warn(Code.AMBIGUOUS_CARD, offer, f"the source does not say which card: {names}", "ask the provider")


def _access(question: Question, plan: Plan) -> Finding | None:
    """What is known to stand between a renter and the provider."""
    known = [fact for fact in question.book.access_of(plan.offer.provider) if fact.key != "regions"]
    if not known:
        return None
    return Finding(
        code=Code.ACCESS,
        severity=Severity.INFO,
        subject=plan.offer.id,
        observed=f"{plan.offer.provider}: {'; '.join(map(written, known))}",
        action="see to it before the hour you need the machine",
        source="; ".join(dict.fromkeys(fact.source for fact in known)),
    )


def _about_fit(question: Question, plan: Plan) -> Iterator[Finding | None]:
    worst = min(plan.estimates, key=lambda e: e.memory.headroom_bytes)
    yield oversized(plan.idle, worst.shape.accelerator)
    yield from worst.speed.findings
    slowest = max(plan.estimates, key=lambda e: e.speed.serving.first_token_s.likely if e.speed.serving else 0.0)
    yield slow_answer(question.workload, slowest.speed, slowest.shape.accelerator)
    replicas = worst.layout.data * worst.machines
    yield short_of_concurrency(question.workload, worst.memory, replicas, worst.shape.accelerator)


def slow_answer(workload: Workload, speed: SpeedEstimate, card: str) -> Finding | None:
    """A warning when a service without a target for it lets its users wait longer than they do."""
    asked, found = workload.serving, speed.serving
    if asked is None or found is None or not workload.is_service:
        return None
    wait, pace = found.first_token_s.likely, found.per_user_tokens_per_s.likely
    late, slow = wait > LONGEST_WAIT_S, pace < READING_TOKENS_PER_S
    if late and asked.max_first_token_s is None:
        seen, usual = f"first token after {wait:,.1f} s", f"at most {LONGEST_WAIT_S} s, so long do people wait"
        action = f"--first-token-ms {LONGEST_WAIT_S * 1000} leaves such plans out"
    elif slow and asked.max_s_per_output_token is None:
        seen, usual = f"{pace:.1f} tokens/s per user", f"{READING_TOKENS_PER_S} tokens/s, so fast do people read"
        action = f"--output-token-ms {1000 // READING_TOKENS_PER_S} leaves such plans out"
    else:
        return None
    return Finding(
        code=Code.SLOW_ANSWER,
        severity=Severity.WARNING,
        subject=card,
        observed=seen,
        expected=usual,
        action=f"{action}; fewer requests at once or a faster card help",
    )


def short_of_concurrency(workload: Workload, memory: MemoryEstimate, replicas: int, card: str) -> Finding | None:
    """A warning when ``replicas`` hold fewer requests of the usual length than are asked for at once."""
    serving, cache = workload.serving, memory.cache
    if serving is None or cache is None:
        return None
    typical = max(1, serving.output_tokens + (0 if serving.encoded else serving.prompt_tokens))
    held = int(cache.tokens.likely / typical) * replicas
    if held >= serving.concurrency:
        return None
    return Finding(
        code=Code.SHORT_OF_CONCURRENCY,
        severity=Severity.WARNING,
        subject=card,
        observed=f"room for {held} requests of {typical:,} tokens at once",
        expected=f"{serving.concurrency} at once",
        action="the rest wait in the queue; take a larger card or a shorter context for more",
    )


def _deadline_and_budget(question: Question, plan: Plan) -> Iterator[Finding | None]:
    limits = question.workload.limits
    deadline = None if question.workload.is_service else limits.deadline_hours
    if deadline is not None and plan.hours.high > deadline:
        seen = f"finishes by {plan.hours.high:.1f} h in 9 of 10 cases"
        yield _warn(Code.DEADLINE_AT_RISK, plan.offer, seen, f"the deadline is {deadline:g} h")
    most = budget_for_plan(question, plan.hours.high)
    if most is not None and most < plan.cost.high:
        seen = f"costs up to {plan.cost.high} in 9 of 10 cases"
        yield _warn(Code.BUDGET_AT_RISK, plan.offer, seen, f"the budget is {most}")


def _warn(code: Code, offer: object, observed: str, action: str) -> Finding:
    subject = getattr(offer, "id", "offer")
    return Finding(code=code, severity=Severity.WARNING, subject=str(subject), observed=observed, action=action)
