"""Charges: one function for the bill that a plan forecasts and for the bill that an invoice is held against."""

from __future__ import annotations

from datetime import date

from rackrate.cost.charge_types import Charges, combined, times
from rackrate.cost.compute import compute
from rackrate.cost.disk import disk
from rackrate.cost.extras import address, omissions, one_time
from rackrate.cost.traffic import traffic
from rackrate.cost.usage import Usage
from rackrate.facts.billing import BillingRules
from rackrate.offers.meter import narrowed
from rackrate.offers.offer import Offer


def charges(rules: BillingRules, offer: Offer, usage: Usage, at: date, machines: int = 1) -> Charges:
    """The bill for ``usage`` of each of ``machines`` of ``offer`` under the provider's ``rules`` in force at ``at``.

    Traffic is billed to an account: its free part and its tiers hold for the data of all machines together.

    Every line is exact, in the currency of the offer, and cites its rule. A
    part that the usage needs and no rule prices is not in the total but in
    ``unknown``, as a warning; what was assumed on the careful side is in the
    total and in ``unknown``, as information.
    """
    held = narrowed(rules, offer.name, at)
    running = times(compute(held, offer, usage), machines)
    return combined((running, *_others(held, offer, usage, machines), omissions(held, offer)), offer.price.currency)


def beside_compute(rules: BillingRules, offer: Offer, usage: Usage, at: date, machines: int = 1) -> Charges:
    """The lines of ``charges`` that do not depend on the price of the offer: disk, traffic, address, fees.

    For one timeline but for its running seconds, and within one billing month
    of them, the total is linear in the running seconds.
    """
    return combined(_others(narrowed(rules, offer.name, at), offer, usage, machines), offer.price.currency)


def _others(held: BillingRules, offer: Offer, usage: Usage, machines: int) -> tuple[Charges, ...]:
    return (
        times(disk(held, offer, usage), machines),
        traffic(held, offer, usage),
        times(address(held, offer, usage), machines),
        times(one_time(held, offer), machines),
    )
