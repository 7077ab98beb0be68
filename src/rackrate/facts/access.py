"""Access facts: what stands between a renter and a machine: verification, payment, quotas, stock that can be seen.

Dated and sourced as billing rules are; a key that is absent is not known, and
never means that nothing is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from rackrate.units import parse_day
from rackrate.values import Value

KEYS: Mapping[str, frozenset[str] | None] = {
    "real_name_verification": frozenset({"required", "not_required"}),
    "company_verification": frozenset({"required", "not_required"}),
    "payment_methods": frozenset({"card", "crypto", "paypal", "alipay", "wechat", "bank_transfer", "invoice"}),
    "minimum_balance": None,
    "quota": frozenset({"by_request"}),
    "regions": None,
    "stock_signal": frozenset({"api", "live_offers", "none"}),
    "waitlist": frozenset({"true", "false"}),
}
"""The keys and the words that each takes; a quota may be a number too, ``None`` takes any text."""

SEVERAL = frozenset({"payment_methods", "regions"})
"""Keys whose value may be several words joined by bars."""


class AccessFact(Value, frozen=True, kw_only=True):
    """One fact as seen: a key, its value, the condition under which it holds, and who said so."""

    provider: str
    key: str
    value: str
    unit: str
    condition: str
    seen_at: date
    source: str
    confidence: str


def access_fact(row: Mapping[str, str]) -> AccessFact:
    """One row of access.csv."""
    return AccessFact(**{**row, "seen_at": parse_day(row["seen_at"])})  # type: ignore[arg-type]
