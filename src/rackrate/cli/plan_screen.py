"""The screen of ``plan``: the best plan, why it beat the runner-up, the others, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.hosted_screen import PLAN_COLUMNS, beside_plans, plan_cells
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.numbers import (
    bytes_span,
    cost_span,
    count_of,
    hours,
    hours_span,
    image_speed,
    money,
    per_cent_more,
    rate_span,
)
from rackrate.cli.sections import assumptions, unpriced, warnings, workload_line
from rackrate.units import format_bytes, format_hours

if TYPE_CHECKING:
    from rackrate.app.wire.parts import RangeDoc
    from rackrate.app.wire.plan import FrontierDoc, PlanDoc, PlanDocument, RejectedDoc, RunnerUpDoc

_COLUMNS = (
    ("accelerator", "card", False),
    ("gpus", "n", True),
    ("share", "share", True),
    ("provider", "provider", False),
    ("market", "market", False),
    ("region", "region", False),
    ("verdict", "fit", False),
    ("headroom_gib", "room", True),
    ("tokens_per_s", "tok/s", True),
    ("images_per_s", "images/s", True),
    ("s_per_image", "s an image", True),
    ("steps_per_s", "it/s", True),
    ("first_token_s", "first s", True),
    ("hours_likely", "hours", True),
    ("billed_hours", "billed", True),
    ("cost_low", "low", True),
    ("cost_likely", "cost", True),
    ("cost_high", "high", True),
    ("currency", "", False),
    ("per_million_tokens", "a million tokens", True),
    ("per_thousand_images", "a thousand images", True),
    ("price_observed_at", "seen", False),
    ("price_age_days", "age", True),
    ("offer", "offer", False),
    ("offer_id", "offer id", False),
    ("price_source", "source", False),
    ("warnings", "warnings", False),
)
_RIGHT = frozenset(key for key, _, right in _COLUMNS if right)
_ON_SCREEN = ("accelerator", "gpus", "provider", "market", "verdict", "tokens_per_s", "hours_likely", "cost_likely")
_FASTER_AT_MOST = 6
_FASTER_BY = 1.1
"""By how much a plan of the second table is faster than the one before it: less is no reason to pay more."""
_FOR_IMAGES = (*_ON_SCREEN[:5], "images_per_s", *_ON_SCREEN[6:])
_FOR_SERVICES = (*_ON_SCREEN[:6], "first_token_s", "cost_likely")


def table(document: PlanDocument) -> Table:
    """All plans, a row each, with every column (for CSV and Markdown)."""
    return Table(
        keys=(*(key for key, _, _ in _COLUMNS), *PLAN_COLUMNS),
        titles=(*(key for key, _, _ in _COLUMNS), *PLAN_COLUMNS),
        rows=tuple((*_row(plan), *plan_cells(document, plan)) for plan in document.plans),
        right=frozenset(i for i, (key, _, _) in enumerate(_COLUMNS) if key in _RIGHT),
    )


def _row(plan: PlanDoc) -> tuple[str, ...]:
    return (
        plan.accelerator,
        str(plan.gpus),
        f"{plan.share:g}",
        plan.provider,
        plan.market,
        plan.region,
        plan.fit.verdict,
        f"{plan.fit.headroom_bytes / 2**30:.1f}",
        f"{plan.speed.tokens_per_s.likely:.0f}" if plan.speed.tokens_per_s else "",
        *(f"{each.likely:.4g}" if each else "" for each in _of_images(plan)),
        f"{plan.speed.first_token_s.likely:.2f}" if plan.speed.first_token_s else "",
        f"{plan.hours.likely:.2f}",
        f"{plan.billed_hours:.2f}",
        plan.cost.low,
        plan.cost.likely,
        plan.cost.high,
        plan.cost.currency,
        plan.cost.per_million_tokens or "",
        plan.cost.per_thousand_images or "",
        plan.price_observed_at,
        "" if plan.price_age_days is None else str(plan.price_age_days),
        plan.offer,
        plan.offer_id,
        plan.price_source,
        " ".join(dict.fromkeys(w.code for w in plan.warnings)),
    )


def _of_images(plan: PlanDoc) -> tuple[RangeDoc | None, ...]:
    return (plan.speed.images_per_s, plan.speed.s_per_image, plan.speed.steps_per_s)


def screen(document: PlanDocument) -> Iterator[Part]:
    """What a person sees first, top to bottom."""
    yield workload_line(document.workload)
    yield ""
    if document.judged is not None:
        from rackrate.cli.judged_screen import judged  # imported here: few plans have one

        yield from judged(document.judged)
    if document.plans:
        yield from _best(document)
        yield from _others(document)
        yield from beside_plans(document)
    else:
        yield _none(document)
        yield ""
    told = [assumptions(document.assumptions), _rejected(document.rejected, document.currency)]
    for part in told if document.plans else reversed(told):
        yield from part
    if not document.plans:
        yield from beside_plans(document)
    yield from warnings(document.warnings)
    yield _footer(document)


def _none(document: PlanDocument) -> str:
    if not document.considered:
        return f"No plan: no price is known that was seen by {document.as_of}."
    return "No plan: every offer was left out. The nearest misses are below."


def _best(document: PlanDocument) -> Iterator[Part]:
    plan = document.plans[0]
    yield pairs(_facts_of(document, plan))
    yield from warnings(plan.warnings)
    if document.runner_up is not None:
        yield _lost(document.runner_up, is_service=document.workload.horizon_hours is not None)
    yield ""


def _facts_of(document: PlanDocument, plan: PlanDoc) -> list[tuple[str, str]]:
    machines = f" ({plan.machines} machines)" if plan.machines > 1 else ""
    place = f", {plan.region}" if plan.region else ""
    return [
        ("Rent", f"{plan.gpus} x {_card_text(plan)}{_part(plan.share)}{machines}"),
        ("From", f"{plan.provider}: {plan.offer}, {words.word(words.MARKETS, plan.market)}{place}; stock {plan.stock}"),
        ("Fit", _fit_text(plan)),
        ("Speed", _speed_text(plan)),
        ("Time", _time_text(document, plan)),
        ("Cost", _cost_text(document, plan)),
        ("Price", _price_text(plan)),
        ("Layout", f"{plan.layout}; {document.workload.engine}"),
    ]


def _card_text(plan: PlanDoc) -> str:
    """The exact card, or all that an ambiguous name could mean."""
    if len(plan.cards) == 1:
        return f"{plan.accelerator} ({plan.product})"
    return f"{' or '.join(plan.cards)}: the source does not say which; figures hold for {_all(plan.cards)}"


def _part(share: float) -> str:
    """How much of each card an offer has, where that is not all of it."""
    return f", {share:.3g} of it" if share < 1 else ""


def _all(cards: Sequence[str]) -> str:
    return "both" if len(cards) == 2 else "all"  # noqa: PLR2004 - as in English


def _fit_text(plan: PlanDoc) -> str:
    fit = plan.fit
    held = f"; holds {fit.full_sequences:,} full sequences" if fit.full_sequences is not None else ""
    return (
        f"{words.word(words.VERDICTS, fit.verdict)}: peak {bytes_span(fit.peak_bytes)} "
        f"of {format_bytes(fit.usable_bytes)} usable, headroom {format_bytes(fit.headroom_bytes)}{held}"
    )


def _speed_text(plan: PlanDoc) -> str:
    speed = plan.speed
    if speed.tokens_per_s is None:
        limit = words.word(words.BOUNDS_OF_IMAGES, speed.limited_by)
        return f"{image_speed(speed.images_per_s, speed.s_per_image, speed.steps_per_s)}, limited by {limit}"
    text = f"{rate_span(speed.tokens_per_s)} tokens/s, limited by {words.word(words.BOUNDS, speed.limited_by)}"
    if speed.first_token_s is not None and speed.per_user_tokens_per_s is not None:
        text += (
            f"; first token {speed.first_token_s.likely:.2f} s, "
            f"{speed.per_user_tokens_per_s.likely:.0f} tokens/s per user"
        )
    if speed.audio_s_per_s is not None:
        text += f"; {rate_span(speed.audio_s_per_s)} hours of sound transcribed in an hour"
    return text


def _time_text(document: PlanDocument, plan: PlanDoc) -> str:
    billed = format_hours(plan.billed_hours)
    horizon = document.workload.horizon_hours
    if horizon is not None:
        return f"in use {format_hours(plan.hours.likely)} of {format_hours(horizon)}; billed {billed}"
    return f"done in {hours_span(plan.hours)}; billed {billed}"


def _cost_text(document: PlanDocument, plan: PlanDoc) -> str:
    lines = ", ".join(
        f"{words.word(words.BILL, n.name)} {money(n.amount)}" for n in plan.cost.lines if Decimal(n.amount)
    )
    text = cost_span(plan.cost)
    if document.workload.horizon_hours is not None:
        text += f" for {format_hours(document.workload.horizon_hours)}"
    if plan.cost.per_million_tokens is not None:
        text += f", {money(plan.cost.per_million_tokens)} a million tokens"
    if plan.cost.per_thousand_images is not None:
        text += f", {money(plan.cost.per_thousand_images)} a thousand images"
    known = f"{lines or 'nothing'} {plan.cost.billed_currency}"
    lacking = unpriced(plan.warnings)
    if not lacking:
        return f"{text} all in: {known}"
    return f"{text}: {known}; not in it, for no price was seen: {', '.join(lacking)}"


def _price_text(plan: PlanDoc) -> str:
    how = words.SEEN.get(plan.price_observed_how, words.SEEN["page_read"])
    seen = how.format(day=plan.price_observed_at, days=count_of(plan.price_age_days or 0, "day"))
    source = plan.price_source.replace("own", "your own price", 1) if plan.price_own else plan.price_source
    return f"{money(plan.price_per_hour)} {plan.price_currency}/h a machine, {seen}; {source}"


def _lost(why: RunnerUpDoc, *, is_service: bool) -> str:
    reasons = {
        "fit": "it fits less surely",
        "cost": "it costs more",
        "time": "it is slower",
        "both": "it is worse in cost times time",
        "tie": "it is equal, and its price is older or its name later",
    }
    pace = f"time {per_cent_more(why.time_ratio)}"
    if is_service:
        pace = f"tokens/s {per_cent_more(1 / why.time_ratio)}"
    each = f" ({money(why.per_million_tokens)} a million tokens)" if is_service and why.per_million_tokens else ""
    return (
        f"Runner-up: {why.gpus} x {_short_card(why.accelerator.split('|'), why.share)} from {why.provider}: "
        f"cost {per_cent_more(why.cost_ratio)}{each}, {pace}; lost because {reasons[why.decided_by]}."
    )


def _others(document: PlanDocument) -> Iterator[Part]:
    keys = _ON_SCREEN if document.workload.horizon_hours is None else _FOR_SERVICES
    if document.workload.images is not None:
        keys = _FOR_IMAGES
    titles = {key: title for key, title, _ in _COLUMNS} | {"cost_likely": f"cost {document.currency}"}
    best = {f.offer_id for f in document.frontier}
    rows = _told_apart([_short_row(plan, keys, plan.offer_id in best) for plan in document.plans], document.plans)
    flush = frozenset(i for i, key in enumerate(keys) if key in _RIGHT)
    yield drawn(Table(keys=keys, titles=tuple(titles[k] for k in keys), rows=rows, right=flush))
    yield "* no other plan is both cheaper and faster; + a part of the bill has no known price"
    if any(len(plan.cards) > 1 for plan in document.plans):
        yield "+1 after a card: the source does not say which of two cards it is, and so on"
    more = f", {document.more_plans} more of them fit (--top N shows N plans)" if document.more_plans else ""
    yield f"{document.considered} offers considered{more}."
    yield ""
    yield from _faster(document)


def _faster(document: PlanDocument) -> Iterator[Part]:
    """The part of the frontier that the list of plans stops short of: what more speed costs."""
    beyond = _worth_more(document)
    if not beyond or document.rank != "cost":
        return
    yield "Faster by 10 % or more, for more money (the cheapest for each speed):"
    timed = ("hours",) if document.workload.horizon_hours is None else ()
    pace = "tok/s" if document.workload.images is None else "images/s"
    titles = ("card", "n", "provider", pace, *timed, f"cost {document.currency}")
    rows: tuple[tuple[str, ...], ...] = tuple(
        (
            _short_card(f.accelerator.split("|"), f.share),
            str(f.gpus),
            f.provider,
            _pace(f),
            *(hours(f.hours) for _ in timed),
            money(f.cost),
        )
        for f in beyond[:_FASTER_AT_MOST]
    )
    yield drawn(Table(keys=titles, titles=titles, rows=rows, right=frozenset({1, *range(3, len(titles))})))
    if len(beyond) > _FASTER_AT_MOST:
        yield f"{len(beyond) - _FASTER_AT_MOST} more: --json, under frontier."
    yield ""


def _worth_more(document: PlanDocument) -> list[FrontierDoc]:
    """The plans beyond those shown, each clearly faster than the one before it."""
    shown = {plan.offer_id for plan in document.plans}
    is_service = document.workload.horizon_hours is not None
    beyond: list[FrontierDoc] = []
    fastest = 0.0
    for each in document.frontier:  # cheapest, and slowest, first
        pace = (each.tokens_per_s or 0.0) if is_service else 1 / each.hours
        if each.offer_id in shown:
            fastest = max(fastest, pace)
        elif pace >= fastest * _FASTER_BY:
            beyond.append(each)
            fastest = pace
    return beyond


def _pace(plan: FrontierDoc) -> str:
    return f"{plan.tokens_per_s:,.0f}" if plan.tokens_per_s is not None else f"{plan.images_per_s or 0.0:.3g}"


def _short_card(cards: Sequence[str], share: float) -> str:
    part = f" {share:.3g} of it" if share < 1 else ""
    return cards[0] + (f" +{len(cards) - 1}" if len(cards) > 1 else "") + part


def _short_row(plan: PlanDoc, keys: Sequence[str], on_frontier: bool) -> tuple[str, ...]:
    """The cells of one plan in words, with marks for the frontier and for costs that lack a part."""
    lacking = "+" if unpriced(plan.warnings) else ""
    cells = dict(zip((key for key, _, _ in _COLUMNS), _row(plan), strict=True)) | {
        "accelerator": _short_card(plan.cards, plan.share),
        "provider": f"{plan.provider} (own)" if plan.price_own else plan.provider,
        "market": words.word(words.MARKETS, plan.market),
        "verdict": words.word(words.VERDICTS, plan.fit.verdict),
        "hours_likely": hours(plan.hours.likely),
        "tokens_per_s": f"{plan.speed.tokens_per_s.likely:,.0f}" if plan.speed.tokens_per_s else "",
        "images_per_s": f"{plan.speed.images_per_s.likely:.3g}" if plan.speed.images_per_s else "",
        "cost_likely": f"{money(plan.cost.likely)}{lacking}{'*' if on_frontier else ' '}",
    }
    return tuple(cells[key] for key in keys)


def _told_apart(rows: Sequence[tuple[str, ...]], plans: Sequence[PlanDoc]) -> tuple[tuple[str, ...], ...]:
    """Rows, with the region beside the provider where two would look alike."""
    at = _ON_SCREEN.index("provider")
    return tuple(
        (*row[:at], f"{row[at]} {plan.region}".rstrip(), *row[at + 1 :]) if rows.count(row) > 1 else row
        for row, plan in zip(rows, plans, strict=True)
    )


def _rejected(groups: Sequence[RejectedDoc], currency: str) -> Iterator[Part]:
    if not groups:
        return
    yield "Left out:"
    rows = [
        (f"  {group.count:>4}", f"{words.word(words.REASONS, group.reason)}{_nearest(group, currency)}")
        for group in groups
    ]
    yield pairs(rows, style=PLAIN)
    yield ""


def _nearest(group: RejectedDoc, currency: str) -> str:
    near = group.nearest
    if near is None:
        return ""
    name = _short_card(near.accelerator.split("|"), near.share) if near.accelerator else near.offer
    text = f"; nearest: {near.gpus} x {name}, {near.provider}"
    if near.observed:
        text += f": {near.observed}" + (f", limit {near.limit}" if near.limit else "")
    if near.change is not None:
        text += f"; would be in with {near.change.knob} {near.change.before} -> {near.change.after}"
        text += f", at {money(near.cost)} {currency}" if near.cost and not near.observed else ""
    return text


def _footer(document: PlanDocument) -> str:
    return (
        f"Prices as of {document.as_of}; {document.currency} at rates of {document.rates_on} "
        f"({document.rates_source}). "
        f"Facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}. Ranges are 10 % to 90 %."
    )
