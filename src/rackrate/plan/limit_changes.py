"""Changes of limits: the one limit that keeps an offer out, and what to loosen it to; whatever the workload."""

from __future__ import annotations

from rackrate.offers.offer import Offer
from rackrate.plan.answer import Change, Reason
from rackrate.plan.filters import Wanted, asks_for, has_all
from rackrate.workload.needs import about, meets_need, written
from rackrate.workload.workload import Limits

ANY, NONE = "any", "none"
NOT_SAID = frozenset({ANY, NONE})
"""What a limit is changed to by leaving it out."""


def change_of_limit(wanted: Wanted, reason: Reason, offer: Offer) -> Change | None:
    """The limit to loosen for one offer; None where the reason is no limit."""
    limits = wanted.limits
    table: dict[Reason, tuple[str, tuple[str, ...], str]] = {
        Reason.CARD_NOT_ASKED: _cards(wanted, offer),
        Reason.CARD_PROPERTY: _properties(wanted, offer),
        Reason.GPU_COUNT: _counts(limits, offer),
        Reason.PROVIDER: _providers(wanted, offer),
        Reason.REGION: ("limits.regions", limits.regions, offer.region),
        Reason.REGION_UNKNOWN: ("limits.regions", limits.regions, ANY),
        Reason.MARKET: ("limits.markets", limits.markets, offer.market),
        Reason.ACCESS: _needs(wanted, offer),
        Reason.ACCESS_UNKNOWN: _needs(wanted, offer),
        Reason.PRICE_FROM: ("limits.markets", limits.markets, offer.market),
        Reason.COMMITMENT_UNKNOWN: ("limits.markets", limits.markets, offer.market),
        Reason.INTERRUPTIBLE: ("limits.interruptible", ("false",), "true"),
    }
    if reason not in table:
        return None
    knob, before, after = table[reason]
    return Change(knob=knob, before=", ".join(before) or ANY, after=after)


def _cards(wanted: Wanted, offer: Offer) -> tuple[str, tuple[str, ...], str]:
    limits, known = wanted.limits, wanted.book.accelerators
    if limits.gpus and not set(offer.cards) <= set(limits.gpus):
        return "limits.gpus", limits.gpus, ", ".join(offer.cards)
    return "limits.vendors", limits.vendors, ", ".join(dict.fromkeys(known[card].vendor for card in offer.cards))


def _counts(limits: Limits, offer: Offer) -> tuple[str, tuple[str, ...], str]:
    if limits.max_gpus is not None and offer.gpus > limits.max_gpus:
        return "limits.max_gpus", (str(limits.max_gpus),), str(offer.gpus)
    return "limits.gpu_counts", tuple(map(str, limits.gpu_counts)), str(offer.gpus)


def _providers(wanted: Wanted, offer: Offer) -> tuple[str, tuple[str, ...], str]:
    """The list that keeps the provider out: those allowed, or those left out without the names that mean it."""
    limits = wanted.limits
    if limits.providers and not asks_for(wanted, limits.providers, offer.provider):
        return "limits.providers", limits.providers, offer.provider
    rest = [name for name in limits.exclude_providers if not asks_for(wanted, (name,), offer.provider)]
    return "limits.exclude_providers", limits.exclude_providers, ", ".join(rest) or NONE


def _properties(wanted: Wanted, offer: Offer) -> tuple[str, tuple[str, ...], str]:
    """The properties that every card which the offer can be surely has."""
    cards = [wanted.book.accelerators[card] for card in offer.cards]
    held = [asked for asked in wanted.limits.require if all(has_all(card, (asked,)) for card in cards)]
    return "limits.require", wanted.limits.require, ", ".join(held) or NONE


def _needs(wanted: Wanted, offer: Offer) -> tuple[str, tuple[str, ...], str]:
    """The needs that the provider surely meets."""
    known = wanted.book.access_of(offer.provider)
    met = [need for need in wanted.limits.access if meets_need(known, need) is True]
    return "limits.access", wanted.limits.access, ", ".join(met) or ANY


def unmet(wanted: Wanted, offer: Offer) -> str:
    """What is known of the needs that the provider of ``offer`` does not surely meet, in words."""
    known = wanted.book.access_of(offer.provider)
    open_ = [need for need in wanted.limits.access if meets_need(known, need) is not True]
    said = dict.fromkeys(written(fact) for need in open_ for fact in about(known, need))
    return "; ".join(said) or f"no source seen on {', '.join(open_)}"
