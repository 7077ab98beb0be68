"""The meter: how the time of an offer is turned into billed time.

The finest step in which time is billed (granularity) and the least that is
billed (minimum) are rules of the provider. Some hold for one product or until
a date only, and say so in their state: ``running (RENDER-S)``, ``running (GPU
except RENDER-S)``, ``running before 2025-10``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.values import Value, replace

HOUR_S = Decimal(3600)

STOPPED = (
    "stopped",
    "deallocated",
    "powered_off",
    "paused",
    "stopped, no-charge mode",
    "stopped, economical mode",
    "stopped, usage billing",
    "stopped, default",
    "standby",
)
"""States of a machine that is stopped and kept, in the order in which a rule is looked for: the way of
stopping that gives the machine back comes before those that hold it."""

_QUALIFIED = re.compile(r"^(?P<state>[^(]+?) (?:\((?P<product>.+)\)|before (?P<until>\d{4}-\d{2}))$")


class Meter(Value, frozen=True, kw_only=True):
    """Granularity and minimum in seconds, and the rules they come from.

    Without a granularity rule the meter counts whole hours: an hourly price
    cannot be billed in steps coarser than its own unit, so this is the upper
    bound. Without a minimum rule, one step is the least. ``per_resource``: the
    minimum holds once for all starts of a machine, else for each start.
    ``lapses_on_stop``: stopping forfeits what is left of a prepaid term.
    ``bills_stopped``: compute is known to be billed while stopped and kept.
    """

    granularity_s: Decimal = HOUR_S
    minimum_s: Decimal = Decimal(0)
    per_resource: bool = False
    lapses_on_stop: bool = False
    bills_stopped: bool = False
    granularity_rule: BillingRule | None = None
    minimum_rule: BillingRule | None = None

    @property
    def is_known(self) -> bool:
        """Whether the provider's granularity was seen."""
        return self.granularity_rule is not None


class SoldTerm(Value, frozen=True):
    """The period that one price buys (see ``offer.Term``), the least number sold and the life of a credit pack."""

    unit: str
    hours: float
    prepaid: bool
    minimum_terms: int = 1
    validity_hours: float = math.inf


class BillingClass(Value, frozen=True):
    """All that decides how an offer is billed but its price.

    ``name`` is one of those that the same rules hold for (see ``Namesakes``), empty for any.
    """

    provider: str
    name: str
    interruptible: bool
    currency: str
    includes_disk_gb: float
    term: SoldTerm


class OtherClass(Value, frozen=True):
    """What of a billing class decides about disk, traffic, address and fees."""

    provider: str
    name: str
    currency: str
    includes_disk_gb: float
    prepaid: bool


class Clock(Value, frozen=True):
    """How running time becomes billed hours: by the whole ``term``, or without one by the meter, in seconds."""

    currency: str
    term: SoldTerm | None
    lapses_on_stop: bool = False
    granularity_s: float = 0.0
    minimum_s: float = 0.0
    minimum_once: bool = False
    bills_stopped: bool = False


def clock_of(billing: BillingClass, meter: Meter) -> Clock:
    """The clock of a billing class; classes that bill time alike have the same."""
    if billing.term.prepaid:
        return Clock(billing.currency, billing.term, meter.lapses_on_stop)
    step, least = float(meter.granularity_s), float(meter.minimum_s)
    return Clock(billing.currency, None, False, step, least, meter.per_resource, meter.bills_stopped)  # noqa: FBT003


def bills_stopped(rules: BillingRules) -> bool:
    """Whether compute is known to be billed while a machine is stopped and kept."""
    rule = rules.find("stopped_bills_compute", *STOPPED)
    return rule is not None and rule.value == "true"


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
        bills_stopped=bills_stopped(held),
        granularity_rule=known_step,
        minimum_rule=known_least,
    )


def meters_of(
    classes: Sequence[BillingClass], rules_of: Callable[[str], BillingRules] | None, at: date | None
) -> tuple[Meter, ...]:
    """The meter of each class under the rules in force at ``at``."""
    made: dict[tuple[str, str, bool], Meter] = {}
    for one in classes:
        key = (one.provider, one.name, one.interruptible)
        if key not in made:
            rules = rules_of(one.provider) if rules_of else BillingRules(provider=one.provider, rules=())
            made[key] = meter_of(rules, one.name, interruptible=one.interruptible, at=at)
    return tuple(made[one.provider, one.name, one.interruptible] for one in classes)


class Namesakes:
    """Finds, for an offer's name, the first name seen that the same rules of the provider hold for."""

    def __init__(self, rules_of: Callable[[str], BillingRules] | None) -> None:
        self._rules_of = rules_of
        self._products: dict[str, tuple[str, ...]] = {}
        self._first: dict[tuple[str, tuple[bool, ...]], str] = {}

    def products(self, provider: str) -> tuple[str, ...]:
        """The qualifiers of the provider's rules that are about products."""
        found = self._products.get(provider)
        if found is None:
            rules = self._rules_of(provider).rules if self._rules_of else ()
            matches = (_QUALIFIED.match(rule.state) for rule in rules if " " in rule.state)
            products = (match["product"] for match in matches if match is not None)
            found = self._products[provider] = tuple(dict.fromkeys(p for p in products if p is not None))
        return found

    def of(self, provider: str, name: str) -> str:
        """The namesake; empty where rules do not differ by product."""
        products = self.products(provider)
        if not products:
            return ""
        return self._first.setdefault((provider, tuple(_is_meant(product, name) for product in products)), name)


def is_qualified(rules: BillingRules) -> bool:
    """Whether any rule holds for some products or until some date only."""
    return any(" " in state and _QUALIFIED.match(state) for state in rules.states)


def narrowed(rules: BillingRules, name: str, at: date | None) -> BillingRules:
    """The rules that hold for the offer ``name`` at ``at`` (None: now and later), with plain states."""
    if not is_qualified(rules) and (at is None or rules.newest <= at):
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
