"""Faults of the files on providers: billing rules, access, names, exchange rates."""

from __future__ import annotations

from collections.abc import Iterator

from rackrate.facts import access
from rackrate.facts.validate_cells import Check, Known, day, member, number, parsed
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code
from rackrate.units import parse_day

BILLING_KEYS = frozenset({
    "auto_release_days", "currency", "deposit", "disk_price", "egress_free_gb", "egress_price_tiers", "free_disk_gb",
    "granularity_s", "ingress_price", "ip_price", "minimum_balance", "minimum_charge_s", "minimum_scope",
    "network_volume_price", "prepaid_lost_on_stop", "refund_rule", "restart_guaranteed", "snapshot_price",
    "spot_discount", "spot_notice_s", "spot_protection_s", "stopped_bills_compute", "stopped_bills_disk",
    "stopped_disk_multiplier", "tax_included",
})  # fmt: skip
CONFIDENCES = frozenset({"low", "medium", "high"})
DEAREST = {"disk_price": 10.0, "snapshot_price": 10.0, "ip_price": 100.0, "ingress_price": 10.0, "spot_discount": 100.0}


def billing_check(known: Known) -> Check:
    """What is wrong with a rule of billing_rules.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "provider", known.providers, "providers.csv")
        yield from member(row, "rule_key", BILLING_KEYS, "the known rule keys")
        yield from member(row, "confidence", CONFIDENCES, "low, medium, high")
        yield from day(row, "seen_at")
        yield from parsed(row, "effective_from", parse_day, "a date such as 2025-10-01")
        if row["rule_key"] in DEAREST and row["value"].replace(".", "", 1).isdigit():
            yield from number(row, "value", 0, DEAREST[row["rule_key"]])
        if row["rule_key"].endswith("_s") and row["value"].startswith("-"):
            yield Fault(Code.OUT_OF_BOUNDS, "value", row["value"], "0 or more seconds", "check the sign")

    return check


def access_check(known: Known) -> Check:
    """What is wrong with a condition of access.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "provider", known.providers, "providers.csv")
        yield from member(row, "key", access.KEYS, "the known keys")
        yield from member(row, "confidence", CONFIDENCES, "low, medium, high")
        yield from day(row, "seen_at")
        words = access.KEYS.get(row["key"])
        if row["key"] == "minimum_balance" or (row["key"] == "quota" and row["value"] not in (words or ())):
            yield from number(row, "value", 0, 1e6)
        elif words is not None:
            for word in row["value"].split("|") if row["key"] in access.SEVERAL else [row["value"]]:
                yield from member({"value": word}, "value", words, ", ".join(sorted(words)))

    return check


def providers_check(known: Known) -> Check:
    """What is wrong with a provider of providers.csv."""

    def check(row: Row) -> Iterator[Fault]:
        for name in (row["id"], *filter(None, row["aliases"].split("|"))):
            if known.names[name] > 1:
                yield Fault(Code.DUPLICATE, "aliases", name, "one provider for each name", "remove one")
        yield from parsed(row, "currency", _currency, "an ISO 4217 code")

    return check


def _currency(text: str) -> str:
    if len(text) != 3 or not text.isupper():  # noqa: PLR2004 - ISO 4217
        raise ValueError(text)
    return text


def rates_check(_known: Known) -> Check:
    """What is wrong with a rate of exchange_rates.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "per_base", 1e-6, 1e6)
        yield from day(row, "on")
        for column in ("base", "currency"):
            yield from parsed(row, column, _currency, "an ISO 4217 code")

    return check
