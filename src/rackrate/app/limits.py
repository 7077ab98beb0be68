"""Names in limits that only the offers know: providers, markets and regions are checked before planning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rackrate.offers.regions import ALIASES
from rackrate.offers.table import OfferTable
from rackrate.problems import Code, Finding, nearest
from rackrate.workload.workload import Limits


def unknown_names(limits: Limits, offers: OfferTable, aliases: Iterable[str]) -> tuple[Finding, ...]:
    """A finding for each provider, market or region that no offer has; ``aliases`` are other names of providers."""
    resellers = {name.partition(":")[0] for name in offers.providers}
    upstream = {name.partition(":")[2] for name in offers.providers} - {""}
    providers = {*offers.providers, *resellers, *upstream, *aliases}
    markets = {*offers.markets, *(name.partition("_")[0] for name in offers.markets)}
    return (
        *_missing("limits.providers", limits.providers, providers),
        *_missing("limits.exclude_providers", limits.exclude_providers, providers),
        *_missing("limits.markets", limits.markets, markets),
        *_nowhere(limits.regions, offers),
    )


def _missing(key: str, wanted: Iterable[str], known: Iterable[str]) -> Iterator[Finding]:
    folded = {name.casefold() for name in known}
    for name in wanted:
        if name.casefold() not in folded:
            yield _unknown(key, name, known)


def _nowhere(wanted: Iterable[str], offers: OfferTable) -> Iterator[Finding]:
    for name in wanted:
        if not offers.in_regions([name]).any():
            known = {part for region, country, groups in offers.places for part in (region, country, *groups)}
            yield _unknown("limits.regions", name, {*known, *ALIASES} - {""})


def _unknown(key: str, name: str, known: Iterable[str]) -> Finding:
    listed = sorted(known)
    close = nearest(name, listed)
    some = ", ".join(listed[:8])
    action = f"did you mean {' or '.join(close)}?" if close else f"use a name of the offers, such as {some}"
    return Finding(
        code=Code.UNKNOWN_NAME, subject=key, observed=name, expected="a name that offers have", action=action
    )
