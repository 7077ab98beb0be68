"""Billing rules: dated records of how a provider turns time, disk and traffic into money."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from rackrate.values import Value


class BillingRule(Value, frozen=True, kw_only=True):
    """One rule as seen: a key, its value, the state in which it holds, and who said so.

    ``value`` stays the text of the source (a number, ``true``, tiers such as
    ``"10240:0.09|inf:0.05"``, or prose). ``state`` is ``running``, ``stopped``,
    ``spot``, ``prepaid`` ... or ``any``.
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

    @property
    def number(self) -> Decimal | None:
        """The value as a Decimal, or None when it is prose."""
        try:
            return Decimal(self.value)
        except ArithmeticError:
            return None


class BillingRules(Value, frozen=True, kw_only=True):
    """All rules of one provider; a rule that is absent is unknown, not zero."""

    provider: str
    rules: tuple[BillingRule, ...]

    def find(self, key: str, *states: str, at: date | None = None) -> BillingRule | None:
        """The rule that wins for ``key`` in the first of ``states`` that has one.

        Precedence: state in the order given (exact match, ``any`` last), in
        force at ``at``, latest ``effective_from``, then highest confidence,
        then the coarsest billing (the value that costs the user more).
        """
        for state in (*states, "any"):
            found = [r for r in self.rules if r.key == key and r.state == state and _in_force(r, at)]
            if found:
                return max(found, key=_rank)
        return None


_CONFIDENCE = {"low": 0, "medium": 1, "high": 2}


def _in_force(rule: BillingRule, at: date | None) -> bool:
    return at is None or rule.effective_from is None or rule.effective_from <= at


def _rank(rule: BillingRule) -> tuple[date, int, Decimal]:
    return (rule.effective_from or date.min, _CONFIDENCE.get(rule.confidence, 0), rule.number or Decimal(0))
