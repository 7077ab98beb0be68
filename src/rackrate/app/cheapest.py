"""The cheapest offer of a card on each market."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rackrate.app.context import Context
from rackrate.money import Money
from rackrate.offers.offer import Offer


class Cheap(NamedTuple):
    """The cheapest offer of a market, and its price per card and hour in the currency of the answer."""

    offer: Offer
    per_hour: Money


def cheapest_by_market(offers: Iterable[Offer], here: Context, currency: str) -> list[Cheap]:
    """The cheapest whole-card offer of each market, per card and hour, cheapest market first."""
    cheapest: dict[str, Cheap] = {}
    for offer in offers:
        if offer.share < 1 or not here.book.rates.knows(offer.price.currency):
            continue
        hourly = here.book.rates.convert(offer.price_per_hour, currency)
        per_card = Money(hourly.amount / offer.gpus, currency)
        if offer.market not in cheapest or per_card < cheapest[offer.market].per_hour:
            cheapest[offer.market] = Cheap(offer, per_card)
    return sorted(cheapest.values(), key=lambda cheap: cheap.per_hour.amount)
