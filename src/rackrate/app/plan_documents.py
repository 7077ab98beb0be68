"""Plans to wire documents."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from rackrate.app.context import Context
from rackrate.app.documents import finding_docs, line_docs, plain, span
from rackrate.app.wire.parts import ChangeDoc
from rackrate.app.wire.plan import (
    CostDoc,
    FrontierDoc,
    IdleDoc,
    NearestDoc,
    PlanDoc,
    PlanFitDoc,
    RejectedDoc,
    RunnerUpDoc,
    SpeedDoc,
)
from rackrate.money import Money
from rackrate.offers.conflicts import NOT_AFTER
from rackrate.plan.answer import Answer, Change, Nearest, Plan, Rejected, ShapeEstimate, likely_of
from rackrate.plan.ranking import decided_by, slowness
from rackrate.units import SECONDS_PER_HOUR

MILLION = 10**6


def plan_doc(plan: Plan, here: Context) -> PlanDoc:
    """One plan; figures of memory are those of the card with the least headroom."""
    offer = plan.offer
    worst = min(plan.estimates, key=lambda e: e.memory.headroom_bytes)
    return PlanDoc(
        accelerator="|".join(offer.cards),
        product=" or ".join(here.book.accelerators[c].product for c in offer.cards),
        cards=list(offer.cards),
        gpus=plan.gpus,
        share=offer.share,
        machines=plan.machines,
        layout=worst.layout.label,
        provider=offer.provider,
        offer=offer.name,
        offer_id=offer.id,
        region=offer.region,
        market=offer.market,
        stock="unknown",
        fit=_fit_doc(plan, worst),
        speed=_speed_doc(plan, worst),
        hours=span(plan.hours),
        billed_hours=float(plan.cost.billed_hours),
        cost=_cost_doc(plan),
        idle_memory=IdleDoc(
            bytes=plan.idle.bytes, fraction=plan.idle.fraction, cost=str(plan.idle.cost.rounded().amount)
        ),
        price_per_hour=plain(offer.price_per_hour.rounded(6).amount),
        price_currency=offer.price.currency,
        price_observed_at=offer.observed_on.isoformat(),
        price_observed_how=offer.observed_how,
        price_age_days=None if offer.observed_how == NOT_AFTER else (here.at - offer.observed_on).days,
        price_source=offer.source,
        price_own=offer.own,
        warnings=finding_docs(plan.warnings),
    )


def _fit_doc(plan: Plan, worst: ShapeEstimate) -> PlanFitDoc:
    cache = worst.memory.cache
    held = cache.full_sequences * worst.layout.data * worst.machines if cache else None
    return PlanFitDoc(
        verdict=str(plan.verdict),
        headroom_bytes=plan.headroom_bytes,
        peak_bytes=span(worst.memory.peak),
        usable_bytes=worst.memory.usable_bytes,
        full_sequences=held,
    )


def _speed_doc(plan: Plan, worst: ShapeEstimate) -> SpeedDoc:
    serving, training = worst.speed.serving, worst.speed.training
    images = worst.speed.images
    if images is not None:
        return SpeedDoc(
            tokens_per_s=None,
            limited_by=str(worst.speed.limited_by),
            images_per_s=span(plan.pace),
            s_per_image=span(images.s_per_image),
            steps_per_s=span(images.steps_per_s),
        )
    common = {"tokens_per_s": span(plan.pace), "limited_by": str(worst.speed.limited_by)}
    if serving is not None:
        return SpeedDoc(
            **common,  # type: ignore[arg-type]
            first_token_s=span(serving.first_token_s),
            per_user_tokens_per_s=span(serving.per_user_tokens_per_s),
            requests_per_s=span(serving.requests_per_s.scaled(worst.machines)),
            audio_s_per_s=span(serving.audio_s_per_s.scaled(worst.machines)) if serving.audio_s_per_s else None,
        )
    assert training is not None
    return SpeedDoc(
        **common,  # type: ignore[arg-type]
        step_s=span(training.step_s),
        model_flop_utilisation=span(training.model_flop_utilisation),
    )


def _cost_doc(plan: Plan) -> CostDoc:
    cost = plan.cost
    return CostDoc(
        low=str(cost.low.rounded(4).amount),
        likely=str(cost.likely.rounded(4).amount),
        high=str(cost.high.rounded(4).amount),
        currency=cost.likely.currency,
        lines=line_docs(cost.lines),
        billed=plain(cost.billed.amount),
        billed_currency=cost.billed.currency,
        per_million_tokens=_per_million(plan),
        per_thousand_images=_per_thousand(plan),
    )


def _per_million(plan: Plan) -> str | None:
    """Cost of a million tokens: those generated while the service runs as loaded, or those of the job."""
    return _cost_each(plan, Decimal(MILLION)) if likely_of(plan.estimates).speed.images is None else None


def _per_thousand(plan: Plan) -> str | None:
    """Cost of a thousand images of the job."""
    return _cost_each(plan, Decimal(1000)) if likely_of(plan.estimates).speed.images is not None else None


def _cost_each(plan: Plan, results: Decimal) -> str | None:
    one = likely_of(plan.estimates)
    made = Decimal(one.pace.likely) * Decimal(one.work_hours.likely) * int(SECONDS_PER_HOUR)
    if not made:
        return None
    return str(Money(plan.cost.likely.amount * results / made, plan.cost.likely.currency).rounded(4).amount)


def frontier_docs(plans: Iterable[Plan]) -> list[FrontierDoc]:
    """The frontier, cheapest first."""
    return [
        FrontierDoc(
            offer_id=p.offer.id,
            provider=p.offer.provider,
            offer=p.offer.name,
            accelerator="|".join(p.offer.cards),
            gpus=p.gpus,
            share=p.offer.share,
            hours=p.hours.likely,
            tokens_per_s=p.pace.likely if p.estimates[0].speed.images is None else None,
            images_per_s=p.pace.likely if p.estimates[0].speed.images is not None else None,
            cost=str(p.cost.likely.rounded(4).amount),
        )
        for p in plans
    ]


def runner_up_doc(answer: Answer) -> RunnerUpDoc | None:
    """Why the second plan lost; None when there are fewer than two."""
    if len(answer.plans) < 2:  # noqa: PLR2004 - a runner-up needs two
        return None
    first, second = answer.plans[0], answer.plans[1]
    return RunnerUpDoc(
        offer_id=second.offer.id,
        provider=second.offer.provider,
        accelerator="|".join(second.offer.cards),
        gpus=second.gpus,
        share=second.offer.share,
        decided_by=decided_by(first, second, answer.rank),
        cost_ratio=float(second.cost.likely.amount / first.cost.likely.amount) if first.cost.likely.amount else 1.0,
        time_ratio=slowness(second) / slowness(first),
        per_million_tokens=_per_million(second),
    )


def rejected_docs(groups: Iterable[Rejected]) -> list[RejectedDoc]:
    """Groups of rejections."""
    return [RejectedDoc(reason=str(g.reason), count=g.count, nearest=_nearest_doc(g.nearest)) for g in groups]


def _nearest_doc(near: Nearest | None) -> NearestDoc | None:
    if near is None:
        return None
    return NearestDoc(
        provider=near.offer.provider,
        offer=near.offer.name,
        offer_id=near.offer.id,
        accelerator="|".join(near.offer.cards),
        gpus=near.offer.gpus,
        share=near.offer.share,
        observed=near.observed,
        limit=near.limit,
        change=_change_doc(near.change),
        cost=str(near.cost.rounded(4).amount) if near.cost else None,
    )


def _change_doc(change: Change | None) -> ChangeDoc | None:
    return None if change is None else ChangeDoc(knob=change.knob, before=change.before, after=change.after)
