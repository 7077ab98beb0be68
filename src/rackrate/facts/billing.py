"""Billing rules: dated records of how a provider turns time, disk and traffic into money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cached_property

from rackrate.values import Value


class BillingRule(Value, frozen=True, kw_only=True):
    """One rule as seen: a key, its value, the state in which it holds, and who said so.

    ``value`` stays the text of the source (a number, ``true``, tiers such as
    ``"10240:0.09|inf:0.05"``, or prose). ``state`` is ``running``, ``stopped``,
    ``spot``, ``prepaid`` ... or ``any``. ``own`` is 0 for a bundled rule; a
    user's own rule has more, the most in the folder that goes before the others.
    """

    provider: str
    key: str
    value: str
    unit: str
    state: str
    effective_from: date | None
    seen_at: date
    source: str
    confidence: str
    own: int = 0

    @property
    def number(self) -> Decimal | None:
        """The value as a Decimal, or None when it is prose."""
        try:
            return Decimal(self.value)
        except ArithmeticError:
            return None


class BillingRules(Value, frozen=True, kw_only=True, dict=True):
    """All rules of one provider; a rule that is absent is unknown, not zero."""

    provider: str
    rules: tuple[BillingRule, ...]

    @cached_property
    def newest(self) -> date:
        """When the last rule comes into force; the first day that there is when that is not said of any."""
        return max((rule.effective_from for rule in self.rules if rule.effective_from is not None), default=date.min)

    @cached_property
    def states(self) -> frozenset[str]:
        """The states that rules hold in, as written."""
        return frozenset(rule.state for rule in self.rules)

    @cached_property
    def _latest(self) -> Mapping[tuple[str, str], BillingRule]:
        return _winners(self.rules)

    def find(self, key: str, *states: str, at: date | None = None) -> BillingRule | None:
        """The rule that wins for ``key`` in the first of ``states`` that has one.

        Precedence: state in the order given (exact match, ``any`` last), in
        force at ``at``, a user's own before a bundled one, latest
        ``effective_from``, then highest confidence, then the coarsest billing
        (the value that costs the user more).
        """
        won = self._latest if at is None else _winners(rule for rule in self.rules if is_in_force(rule, at))
        for state in (*states, "any"):
            if (key, state) in won:
                return won[key, state]
        return None


_CONFIDENCE = {"low": 0, "medium": 1, "high": 2}


def _winners(rules: Iterable[BillingRule]) -> dict[tuple[str, str], BillingRule]:
    """The rule that wins for each key and state; of equals the first."""
    won: dict[tuple[str, str], BillingRule] = {}
    for rule in rules:
        held = won.setdefault((rule.key, rule.state), rule)
        if held is not rule and rank_of(rule) > rank_of(held):
            won[rule.key, rule.state] = rule
    return won


def is_in_force(rule: BillingRule, at: date | None) -> bool:
    """Whether a rule holds on a day (None: whenever it begins)."""
    return at is None or rule.effective_from is None or rule.effective_from <= at


def rank_of(rule: BillingRule) -> tuple[int, date, int, Decimal]:
    """The precedence of a rule among those of its key and state: the highest wins."""
    return (rule.own, rule.effective_from or date.min, _CONFIDENCE.get(rule.confidence, 0), rule.number or Decimal(0))
