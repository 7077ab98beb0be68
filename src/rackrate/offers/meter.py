"""The meter: how the time of an offer is turned into billed time.

The finest step in which time is billed (granularity) and the least that is
billed (minimum) are rules of the provider. Some hold for one product or until
a date only, and say so in their state: ``running (RENDER-S)``, ``running (GPU
except RENDER-S)``, ``running before 2025-10``.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.values import Value, replace

HOUR_S = Decimal(3600)

_QUALIFIED = re.compile(r"^(?P<state>[^(]+?) (?:\((?P<product>.+)\)|before (?P<until>\d{4}-\d{2}))$")


class Meter(Value, frozen=True, kw_only=True):
    """Granularity and minimum in seconds, and the rules they come from.

    Without a granularity rule the meter counts whole hours: an hourly price
    cannot be billed in steps coarser than its own unit, so this is the upper
    bound. Without a minimum rule, one step is the least. ``per_resource``: the
    minimum holds once for all starts of a machine, else for each start.
    ``lapses_on_stop``: stopping forfeits what is left of a prepaid term.
    """

    granularity_s: Decimal = HOUR_S
    minimum_s: Decimal = Decimal(0)
    per_resource: bool = False
    lapses_on_stop: bool = False
    granularity_rule: BillingRule | None = None
    minimum_rule: BillingRule | None = None

    @property
    def is_known(self) -> bool:
        """Whether the provider's granularity was seen."""
        return self.granularity_rule is not None


def meter_of(rules: BillingRules, name: str, *, interruptible: bool, at: date | None) -> Meter:
    """The meter of the offer ``name`` under ``rules`` in force at ``at``."""
    held = narrowed(rules, name, at)
    states = ("spot", "running", "postpaid") if interruptible else ("running", "postpaid")
    step = held.find("granularity_s", *states)
    least = held.find("minimum_charge_s", *states)
    scope = held.find("minimum_scope", *states)
    lapses = held.find("prepaid_lost_on_stop", "stopped", "prepaid")
    known_step = step if step is not None and step.number else None
    known_least = least if least is not None and least.number is not None else None
    return Meter(
        granularity_s=known_step.number or HOUR_S if known_step else HOUR_S,
        minimum_s=known_least.number or Decimal(0) if known_least else Decimal(0),
        per_resource=scope is not None and scope.value == "per_resource",
        lapses_on_stop=lapses is not None and lapses.value == "true",
        granularity_rule=known_step,
        minimum_rule=known_least,
    )


def is_qualified(rules: BillingRules) -> bool:
    """Whether any rule holds for some products or until some date only."""
    return any(_QUALIFIED.match(rule.state) for rule in rules.rules)


def narrowed(rules: BillingRules, name: str, at: date | None) -> BillingRules:
    """The rules that hold for the offer ``name`` at ``at`` (None: now and later), with plain states."""
    if not is_qualified(rules) and all(_has_begun(rule, at) for rule in rules.rules):
        return rules
    kept = (_plain(rule, name, at) for rule in rules.rules if _has_begun(rule, at))
    return replace(rules, rules=tuple(rule for rule in kept if rule is not None))


def _has_begun(rule: BillingRule, at: date | None) -> bool:
    return at is None or rule.effective_from is None or rule.effective_from <= at


def _plain(rule: BillingRule, name: str, at: date | None) -> BillingRule | None:
    match = _QUALIFIED.match(rule.state)
    if match is None:
        return rule
    product, until = match["product"], match["until"]
    if product is not None and not _is_meant(product, name):
        return None
    if until is not None and (at is None or f"{at:%Y-%m}" >= until):
        return None
    return replace(rule, state=match["state"])


def _is_meant(product: str, name: str) -> bool:
    """Whether a qualifier such as ``RENDER-S`` or ``GPU except RENDER-S`` covers the offer ``name``."""
    _, exception, excluded = product.partition("except ")
    return excluded not in name if exception else product in name
