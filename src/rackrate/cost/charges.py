"""Charges: one function for the bill that a plan forecasts and for the bill that an invoice is held against."""

from __future__ import annotations

from datetime import date

from rackrate.cost.charge_types import Charges, combined
from rackrate.cost.compute import compute
from rackrate.cost.disk import disk
from rackrate.cost.extras import address, omissions, one_time
from rackrate.cost.traffic import traffic
from rackrate.cost.usage import Usage
from rackrate.facts.billing import BillingRules
from rackrate.offers.meter import narrowed
from rackrate.offers.offer import Offer


def charges(rules: BillingRules, offer: Offer, usage: Usage, at: date) -> Charges:
    """The bill for ``usage`` of one machine of ``offer`` under the provider's ``rules`` in force at ``at``.

    Every line is exact, in the currency of the offer, and cites its rule. A
    part that the usage needs and no rule prices is not in the total but in
    ``unknown``, as a warning; what was assumed on the careful side is in the
    total and in ``unknown``, as information.
    """
    held = narrowed(rules, offer.name, at)
    parts = (compute(held, offer, usage), *_others(held, offer, usage), omissions(held, offer))
    return combined(parts, offer.price.currency)


def beside_compute(rules: BillingRules, offer: Offer, usage: Usage, at: date) -> Charges:
    """The lines of ``charges`` that do not depend on the price of the offer: disk, traffic, address, fees.

    For one timeline but for its running seconds, and within one billing month
    of them, the total is linear in the running seconds.
    """
    return combined(_others(narrowed(rules, offer.name, at), offer, usage), offer.price.currency)


def _others(held: BillingRules, offer: Offer, usage: Usage) -> tuple[Charges, ...]:
    return (
        disk(held, offer, usage),
        traffic(held, offer, usage),
        address(held, offer, usage),
        one_time(held, offer),
    )
