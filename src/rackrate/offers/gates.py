"""Sanity gates: what is wrong with a price list, each fault seen in a public one.

A gate never drops a row; it says what to check. Row gates look at one offer,
list gates compare offers. Public reports of each fault:

- a price of 0 or NaN: skypilot-org/skypilot#3615, skypilot-catalog PR#50
- spot dearer than on demand: skypilot-org/skypilot#7311, dstackai/dstack#1890
- eight cards cheaper than four: dstackai/dstack#1044
- memory in MiB where GB was meant, of all cards, or times the count squared:
  skypilot-catalog v8 (RunPod, Vast, Prime Intellect); 0 GB: Seeweb there
- an auction's floor shown as its price: skypilot-catalog v8 (Mithril)
- a GPU price without its host: skypilot-org/skypilot#2946
- a headline that needs a commitment: Paperspace's and DigitalOcean's price pages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.names import resolve_card
from rackrate.offers.arrays import Bools, Codes
from rackrate.offers.offer import Offer
from rackrate.offers.table import OfferTable
from rackrate.problems import Code, Finding, Severity
from rackrate.values import replace

MEMORY_TOLERANCE = 0.15
"""Labels of one card differ by up to 7 % in the wild (B200: 179, 180 or 192 GB); the faults are factors."""

FAR_BELOW = 0.25
"""A price per card under this share of the median of its kind is to be checked. Assumed: prices of one
card differ by 2 to 3 between sellers, and auction floors are lower still."""

FEWEST_TO_COMPARE = 4
"""Below this many offers of a kind a median says little."""

DOUBTS: Mapping[str, tuple[Severity, str]] = {
    "approximate": (Severity.INFO, "the source gives the price as approximate"),
    "computed": (Severity.INFO, "the source gives a percentage; the price is computed from it"),
    "contradicted": (Severity.WARNING, "another source, or the source itself, contradicts the price"),
    "count_assumed": (Severity.WARNING, "the number of cards is assumed"),
    "currency_unverified": (Severity.WARNING, "the currency of the number is not verified"),
    "historical": (Severity.WARNING, "the price is known to be old"),
    "market_quote": (Severity.WARNING, "a quote for the market, not an offer that can be ordered"),
    "median": (Severity.INFO, "the median of several offers"),
    "promotion": (Severity.INFO, "a promotion"),
    "region_cloned": (Severity.INFO, "the catalog repeats the price for all regions, in stock or not"),
    "third_party": (Severity.INFO, "from a third party, not from the seller"),
    "unconfirmed_product": (Severity.WARNING, "it is not confirmed that the seller sells this"),
}
"""Codes of the column ``doubts`` and what they mean."""


# ---------------------------------------------------------------- one offer


def row_findings(offer: Offer, accelerators: Mapping[str, Accelerator]) -> tuple[Finding, ...]:
    """What one offer shows by itself: card, memory, price, what the price leaves out, the doubts of its source."""
    return tuple(_row_gates(offer, accelerators))


def _row_gates(offer: Offer, accelerators: Mapping[str, Accelerator]) -> Iterator[Finding]:
    amount = offer.price.amount
    if not amount.is_finite() or amount <= 0:
        yield _suspect(offer, f"price {amount}", "more than 0", Severity.ERROR)
    yield from _card_gate(offer, accelerators)
    if "host" in offer.excludes:
        yield _suspect(offer, "the price is of the GPU without its host", "the price of the machine")
    if offer.commitment_unknown:
        yield _suspect(offer, "the price needs a commitment of unknown length", "a price with its term")
    for doubt in offer.doubts:
        severity, text = DOUBTS.get(doubt, (Severity.WARNING, doubt))
        yield _suspect(offer, text, "a price from the seller", severity)


def _card_gate(offer: Offer, accelerators: Mapping[str, Accelerator]) -> Iterator[Finding]:
    memory = "" if offer.memory_sold_gb is None else f", {offer.memory_sold_gb:g} GB"
    seen = f"{offer.card_label}{memory}"
    cards = offer.cards or resolve_card(offer.card_label, accelerators)
    fault = memory_fault(offer, [accelerators[card].memory_sold_gb for card in cards])
    if fault:
        yield _suspect(offer, f"{seen}: memory {fault}", "the memory of one card")
    if not offer.cards:
        action = "name the card as `rackrate gpu` does"
        yield _finding(offer, Code.UNKNOWN_CARD, Severity.WARNING, seen, action)
    elif len(offer.cards) > 1:
        action = f"ask the seller which: {', '.join(offer.cards)}"
        yield _finding(offer, Code.AMBIGUOUS_CARD, Severity.INFO, seen, action)


def memory_fault(offer: Offer, sold_gb: list[float]) -> str:
    """What went wrong with the memory of ``offer`` if its card is sold with one of ``sold_gb``; empty if nothing."""
    memory = offer.memory_sold_gb
    if memory is None or not sold_gb:
        return ""
    if memory <= 0:
        return "is missing"
    n = offer.gpus
    faults = (
        (1.0, ""),
        (n, "is of all cards"),
        (n * n, "is multiplied by the count twice"),
        (1 / 1024, "is in the wrong unit"),
        (1024, "is in the wrong unit"),
        (1024 * n, "is in the wrong unit and of all cards"),
        (1024 * n * n, "is in the wrong unit and multiplied by the count twice"),
    )
    for factor, fault in faults:
        if any(abs(memory / (sold * factor) - 1) <= MEMORY_TOLERANCE for sold in sold_gb):
            return fault
    return f"is of no such card ({' or '.join(f'{sold:g} GB' for sold in sorted(set(sold_gb)))})"


# ---------------------------------------------------------------- offers compared


def list_findings(table: OfferTable) -> tuple[Finding, ...]:
    """What live offers show beside each other: spot not cheaper, more cards cheaper, far below the others."""
    live = table.priced & ~table.superseded
    return (*_spot_not_cheaper(table, live), *_more_cards_cheaper(table, live), *_far_below(table, live))


def _spot_not_cheaper(table: OfferTable, live: Bools) -> Iterator[Finding]:
    """Spot at or above the price of the same machine on demand."""
    hourly = live & ~table.prepaid & ~table.commitment_unknown
    machine = _kinds(table.provider, table.product, table.shape_set, table.place, table.currency)
    cheapest = np.full(machine.max(initial=-1) + 1, np.inf)
    firm = hourly & ~table.interruptible
    np.minimum.at(cheapest, machine[firm], table.price_per_hour[firm])
    for i in np.flatnonzero(hourly & table.interruptible & (table.price_per_hour >= cheapest[machine])).tolist():
        seen = f"spot {table.price_per_hour[i]:g}/h"
        yield _suspect(table.offer(i), seen, f"less than on demand, {cheapest[machine[i]]:g}/h")


def _more_cards_cheaper(table: OfferTable, live: Bools) -> Iterator[Finding]:
    """The cheapest machine with more cards costs less than the cheapest with fewer, all else equal."""
    kind = _kinds(table.provider, _cards(table), table.place, table.market, table.term_unit, table.currency)
    whole = live & (table.share == 1)
    for code in np.unique(kind[whole]).tolist():
        rows = np.flatnonzero(whole & (kind == code))
        order = rows[np.lexsort((table.price_per_hour[rows], table.gpus[rows]))]
        dearest_cheapest = seen_gpus = 0.0
        for i in order[np.unique(table.gpus[order], return_index=True)[1]].tolist():
            price = float(table.price_per_hour[i])
            if price < dearest_cheapest:
                seen = f"{table.gpus[i]} cards for {price:g}/h"
                yield _suspect(table.offer(i), seen, f"more than {seen_gpus:g} cards, {dearest_cheapest:g}/h")
            else:
                dearest_cheapest, seen_gpus = price, float(table.gpus[i])


def _far_below(table: OfferTable, live: Bools) -> Iterator[Finding]:
    """A price per card far under the median of the same cards, firmness and currency (an auction's floor?)."""
    kind = _kinds(_cards(table), table.interruptible, table.prepaid, table.currency)
    known = np.array([bool(shapes) for shapes in table.shape_sets], dtype=np.bool_)[table.shape_set]
    whole = live & known & (table.share == 1)
    per_card = table.price_per_hour / table.gpus
    for code in np.unique(kind[whole]).tolist():
        rows = np.flatnonzero(whole & (kind == code))
        median = float(np.median(per_card[rows]))
        if len(rows) < FEWEST_TO_COMPARE:
            continue
        for i in rows[per_card[rows] < FAR_BELOW * median].tolist():
            seen = f"{per_card[i]:.4g} per card and hour"
            yield _suspect(table.offer(i), seen, f"near the median of {len(rows)} offers, {median:.4g}")


def _cards(table: OfferTable) -> Codes:
    """A code for the cards of each row, whatever their number."""
    codes: dict[tuple[str, ...], int] = {}
    names = [tuple(shape.accelerator for shape in shapes) for shapes in table.shape_sets]
    by_set = np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.int32)
    return by_set[table.shape_set]


def _kinds(*columns: Codes | Bools) -> Codes:
    """One code for each distinct combination of the columns' values."""
    stacked = np.stack([column.astype(np.int32) for column in columns], axis=1)
    codes = np.unique(stacked, axis=0, return_inverse=True)[1]
    return codes.reshape(-1).astype(np.int32)


def _suspect(offer: Offer, observed: str, expected: str, severity: Severity = Severity.WARNING) -> Finding:
    action = "look at the seller's price before renting"
    found = _finding(offer, Code.PRICE_SUSPECT, severity, observed, action)
    return replace(found, expected=expected)


def _finding(offer: Offer, code: Code, severity: Severity, observed: str, action: str) -> Finding:
    return Finding(
        code=code, subject=offer.id, severity=severity, observed=observed, action=action, source=offer.source
    )
