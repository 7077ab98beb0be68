"""Faults of billing_rules.csv: values that a bill would misread, by the kind of their key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from rackrate.facts.billing_terms import currency_of, period_of, tiers_in
from rackrate.facts.cells import is_number
from rackrate.facts.validate_cells import Check, Known, day, member, number, parsed
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code, nearest
from rackrate.units import parse_day

BILLING_KEYS = frozenset({
    "auto_release_days", "currency", "deposit", "disk_price", "egress_free_gb", "egress_price_tiers", "free_disk_gb",
    "granularity_s", "ingress_price", "ip_price", "minimum_balance", "minimum_charge_s", "minimum_scope",
    "network_volume_price", "one_time_fee", "prepaid_lost_on_stop", "refund_rule", "restart_guaranteed",
    "snapshot_price", "spot_discount", "spot_notice_s", "spot_protection_s", "stopped_bills_compute",
    "stopped_bills_disk", "stopped_disk_multiplier", "tax_included",
})  # fmt: skip
CONFIDENCES = frozenset({"low", "medium", "high"})
STATES = frozenset({
    "any", "arrears", "balance_zero", "deallocated", "expired", "fine-tune job", "host_offline", "paused",
    "plan_lapsed", "postpaid", "powered_off", "prepaid", "prepaid RI", "prepaid day", "prepaid hour", "prepaid month",
    "prepaid week", "running", "running before 2025-10", "spot", "spot block", "standby", "start", "stopped",
    "stopped, committed", "stopped, day/week/month subscription", "stopped, default", "stopped, economical mode",
    "stopped, no-charge mode", "stopped, not reserved", "stopped, prepaid", "stopped, reserved",
    "stopped, usage billing",
})  # fmt: skip
"""States as written, without the products in brackets that some are limited to."""

MOST_SECONDS = 4e8
"""More than ten years."""
BOUNDS: Mapping[str, tuple[float, float]] = {
    "granularity_s": (1e-6, MOST_SECONDS),
    "minimum_charge_s": (0, MOST_SECONDS),
    "spot_notice_s": (0, MOST_SECONDS),
    "spot_protection_s": (0, MOST_SECONDS),
    "auto_release_days": (0, 10_000),
    "free_disk_gb": (0, 1e6),
    "egress_free_gb": (0, 1e8),
    "disk_price": (0, 10),
    "snapshot_price": (0, 10),
    "network_volume_price": (0, 10),
    "ip_price": (0, 100),
    "ingress_price": (0, 10),
    "deposit": (0, 1e6),
    "minimum_balance": (0, 1e6),
    "one_time_fee": (0, 1e6),
    "spot_discount": (0, 100),
    "stopped_disk_multiplier": (0, 100),
}
"""What a number under a key can be; prices in the dearest unit that is usual."""

NUMBERS_ALONE = frozenset({"granularity_s", "minimum_charge_s", "spot_notice_s"})
YES_OR_NO = frozenset({"stopped_bills_compute", "stopped_bills_disk", "prepaid_lost_on_stop", "restart_guaranteed"})
SCOPES = frozenset({"per_resource", "per_start"})
PER_TIME = frozenset({"disk_price", "snapshot_price", "ip_price", "network_volume_price"})
IN_MONEY = PER_TIME | {"ingress_price", "egress_price_tiers", "one_time_fee"}
TIERED = frozenset({"egress_price_tiers", "network_volume_price"})
UNITS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(NUMBERS_ALONE | {"spot_protection_s"}, ("s",)),
    **dict.fromkeys(YES_OR_NO, ("bool",)),
    **dict.fromkeys(("free_disk_gb", "egress_free_gb"), ("GB", "GB/month")),
    "auto_release_days": ("days",),
    "spot_discount": ("%",),
    "stopped_disk_multiplier": ("x",),
}
"""The first word of the unit, where one is given."""


def billing_check(known: Known) -> Check:
    """What is wrong with a rule of billing_rules.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "provider", known.providers, "providers.csv")
        yield from member(row, "rule_key", BILLING_KEYS, "the known rule keys")
        yield from member(row, "confidence", CONFIDENCES, "low, medium, high")
        yield from _state(row)
        yield from day(row, "seen_at", known.today)
        yield from parsed(row, "effective_from", parse_day, "a date such as 2025-10-01")
        faults = list(_value(row))
        yield from faults
        if not faults:
            yield from _unit(row, known)

    return check


def _state(row: Row) -> Iterator[Fault]:
    if row["state"]:
        yield from member({"state": row["state"].partition(" (")[0]}, "state", STATES, "the known states")


def _value(row: Row) -> Iterator[Fault]:
    key, value = row["rule_key"], row["value"]
    if not value.strip():
        yield Fault(Code.MISSING_VALUE, "value", "", "a value", "write what the provider says")
    elif key in NUMBERS_ALONE or (key in BOUNDS and is_number(value)):
        yield from number(row, "value", *BOUNDS[key])
    elif key in YES_OR_NO:
        if value not in {"true", "false"}:
            yield Fault(Code.BAD_VALUE, "value", value, "true or false", "write one of the two")
    elif key == "minimum_scope":
        yield from member(row, "value", SCOPES, "per_resource, per_start")
    elif key in TIERED and (":" in value or is_number(value)):
        yield from _tiers(value)
    elif value.casefold().strip("+-") in {"nan", "inf", "infinity"}:
        yield Fault(Code.BAD_VALUE, "value", value, "a finite number or a text", "write the number")
    elif key == "tax_included" and value not in {"true", "false"} and nearest(value, ("true", "false")):
        yield Fault(Code.BAD_VALUE, "value", value, "true, false or a text", "write one of the two")


def _tiers(value: str) -> Iterator[Fault]:
    """Limits that rise to ``inf``, and prices from 0: traffic above a last limit would cost nothing."""
    tiers = tiers_in(value)
    if tiers is None:
        yield Fault(Code.BAD_VALUE, "value", value, "tiers such as 10240:0.09|inf:0.05", "write upper GB:price")
        return
    uppers = [upper for upper, _ in tiers]
    if any(not price.is_finite() or not 0 <= price <= Decimal(str(BOUNDS["ingress_price"][1])) for _, price in tiers):
        yield Fault(Code.OUT_OF_BOUNDS, "value", value, "prices of a GB from 0 to 10", "check their unit")
    if any(upper.is_nan() or upper <= 0 for upper in uppers):
        yield Fault(Code.OUT_OF_BOUNDS, "value", value, "limits above 0", "write the GB at which a tier ends")
    elif uppers != sorted(set(uppers)):
        yield Fault(Code.CONFLICT, "value", value, "limits that rise", "put the tiers in order, each limit once")
    elif uppers[-1].is_finite():
        yield Fault(Code.MISSING_VALUE, "value", value, "a last tier inf:price", "say what all further GB cost")


def _unit(row: Row, known: Known) -> Iterator[Fault]:
    """A unit that the bill can read: an amount without a currency or a period would be left out of every total."""
    key, unit = row["rule_key"], row["unit"]
    if key in UNITS and unit and unit.split()[0].strip(";,") not in UNITS[key]:
        yield Fault(Code.BAD_VALUE, "unit", unit, " or ".join(UNITS[key]), "convert the value, or mend the spelling")
    if key not in IN_MONEY or not _costs(row["value"]):
        return
    currency = currency_of(unit)
    currencies = {*known.currencies, *known.own_currencies, OWN_CURRENCY} - {""}
    if currency not in currencies:
        expected = f"one of {', '.join(sorted(currencies))} before a slash"
        yield Fault(Code.BAD_VALUE, "unit", unit, expected, "write it as in USD/GB-month")
    if key in PER_TIME and not period_of(unit):
        yield Fault(Code.BAD_VALUE, "unit", unit, "a price per month, day or hour", "write it as in USD/GB-month")


OWN_CURRENCY = "DCU"
"""The unit of account of one provider (AladdinEdu), which no rate converts: such a rule is read and never summed."""


def _costs(value: str) -> bool:
    """Whether a value is an amount of money above 0; 0 needs no unit, and prose has none."""
    tiers = tiers_in(value) or []
    return any(price > 0 for _, price in tiers)
