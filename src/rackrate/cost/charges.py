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
    parts = (
        compute(held, offer, usage),
        disk(held, offer, usage),
        traffic(held, offer, usage),
        address(held, offer, usage),
        one_time(held, offer),
        omissions(held, offer),
    )
    return combined(parts, offer.price.currency)
