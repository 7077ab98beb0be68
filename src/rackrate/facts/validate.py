"""What is wrong with rows of the fact files, as findings.

Run before every release by ``tools/check_facts.py``; at run time rows are
trusted. A finding's subject is ``file:line column``, so that an editor opens it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction

from rackrate.evidence import Kind
from rackrate.facts import rows
from rackrate.facts.accelerator import Precision
from rackrate.facts.validate_baselines import Limits, baseline_faults
from rackrate.facts.validate_engines import engine_faults
from rackrate.facts.validate_rows import Fault, Row, findings
from rackrate.problems import Code, Finding, nearest
from rackrate.units import GIB, MIB

Tables = Mapping[str, Sequence[Row]]

# Bounds in the unit of the file: from the smallest card of 2014 to ten times the largest announced one.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "memory_total": (1_000, 1_000_000),
    "memory_reserved": (1, 10_000),
    "bandwidth": (50, 25_000),
    **{f"peak_{precision}": (0.01, 100_000) for precision in Precision},
    "power_limit": (5, 5_000),
    "power_min": (5, 5_000),
    "power_max": (5, 5_000),
    "pcie_gen": (1, 7),
    "pcie_lanes": (1, 16),
    "nvlink_total_bidir": (20, 10_000),
    "devices_per_card": (1, 8),
}
LEAST_SHARE_OF_SOLD = 0.9
PARAMS_TOLERANCE = 0.002
HEADS_OVER_HIDDEN = (0.2, 20)
BILLING_KEYS = frozenset({
    "auto_release_days", "currency", "deposit", "disk_price", "egress_free_gb", "egress_price_tiers", "free_disk_gb",
    "granularity_s", "ingress_price", "ip_price", "minimum_balance", "minimum_charge_s", "minimum_scope",
    "network_volume_price", "prepaid_lost_on_stop", "refund_rule", "restart_guaranteed", "snapshot_price",
    "spot_discount", "spot_notice_s", "spot_protection_s", "stopped_bills_compute", "stopped_bills_disk",
    "stopped_disk_multiplier", "tax_included",
})  # fmt: skip
CONFIDENCES = frozenset({"low", "medium", "high"})
VERDICTS = frozenset({"right", "wrong", "conditional", "unsupported"})
DEAREST = {"disk_price": 10.0, "snapshot_price": 10.0, "ip_price": 100.0, "ingress_price": 10.0, "spot_discount": 100.0}


def validate(tables: Tables, engines: Mapping[str, Mapping[str, object]]) -> list[Finding]:
    """All faults of the fact files: ``tables`` by file name, engine documents by file name."""
    known = Known(tables)
    found = [finding for name, check in CHECKS.items() for finding in findings(name, tables.get(name), check(known))]
    for name, document in engines.items():
        found += engine_faults(name, document, formats=known.formats, vendors=known.vendors)
    return found


class Known:
    """What rows refer to, gathered from the other files."""

    def __init__(self, tables: Tables) -> None:
        self.cards = {row.get("id", ""): row for row in tables.get("accelerators.csv", ())}
        self.formats = {row.get("id", "") for row in tables.get("formats.csv", ())}
        self.vendors = {row.get("vendor", "") for row in tables.get("accelerators.csv", ())}
        self.providers = {row.get("id", "") for row in tables.get("providers.csv", ())}
        self.names = Counter(
            name
            for row in tables.get("providers.csv", ())
            for name in (row.get("id", ""), *filter(None, row.get("aliases", "").split("|")))
        )
        self.limits = Limits(tables.get("accelerator_facts.csv", ()), as_float)
        self.sold_mib = {name: as_float(row.get("memory_sold_gb")) * GIB / MIB for name, row in self.cards.items()}
        self.seen_mib = {
            row["accelerator"]: as_float(row.get("value"))
            for row in tables.get("accelerator_facts.csv", ())
            if row.get("quantity") == "memory_total" and not row.get("condition")
        }


def as_float(text: str | None) -> float:
    """The number in a cell, or 0 where there is none (which its own check reports)."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


Check = Callable[[Row], Iterator[Fault]]


# ---------------------------------------------------------------- cells


def number(row: Row, column: str, low: float, high: float) -> Iterator[Fault]:
    """The cell is a number within bounds."""
    try:
        value = float(row[column])
    except ValueError:
        yield Fault(Code.BAD_VALUE, column, row[column], "a number", "write it without unit or thousands separator")
        return
    if not low <= value <= high:
        yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"{low:g} to {high:g}", "check its unit")


def member(row: Row, column: str, known: Iterable[str], where: str) -> Iterator[Fault]:
    """The cell is one of the known words."""
    if row[column] not in known:
        close = nearest(row[column], known)
        action = f"did you mean {' or '.join(close)}?" if close else f"add it to {where} or mend the spelling"
        yield Fault(Code.UNKNOWN_NAME, column, row[column], f"one of {where}", action)


def parsed(row: Row, column: str, parse: Callable[[str], object], expected: str) -> Iterator[Fault]:
    """The cell is empty or can be read."""
    try:
        rows.maybe(row[column], parse)
    except (ValueError, ArithmeticError):
        yield Fault(Code.BAD_VALUE, column, row[column], expected, f"write {expected}")


def day(row: Row, column: str) -> Iterator[Fault]:
    """The cell is a date."""
    if not row[column]:
        yield Fault(Code.MISSING_VALUE, column, "", "a date", "write the day on which the source was seen")
    yield from parsed(row, column, date.fromisoformat, "a date such as 2026-11-30")


# ---------------------------------------------------------------- files


def _accelerators(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        for column in ("vendor", "product", "architecture", "form_factor", "memory_sold_gb"):
            if not row[column]:
                yield Fault(Code.MISSING_VALUE, column, "", "a value", "fill it in from the source")
        if row["memory_sold_gb"]:
            yield from number(row, "memory_sold_gb", 1, 1_000)
        for column in ("nvswitch", "sparsity_2_4", "modified", "ecc"):
            yield from parsed(row, column, rows.flag, "true or false")
        yield from parsed(row, "compute_capability", rows.capability, "a compute capability such as 8.6")
        if row["compute_capability"] and row["vendor"] != "NVIDIA":
            yield Fault(Code.BAD_VALUE, "compute_capability", row["compute_capability"], "empty for others", "use isa")
        for column in ("launch_year", "nvlink_bridge_max_gpus", "mig_instances", "rt_cores"):
            yield from parsed(row, column, int, "a whole number")

    return check


def _facts(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "accelerator", known.cards, "accelerators.csv")
        yield from member(row, "kind", list(Kind), "measured, published, derived, assumed")
        yield from day(row, "seen_at")
        quantity = row["quantity"]
        if quantity not in rows.QUANTITIES:
            yield from member(row, "quantity", rows.QUANTITIES, "the known quantities")
            return
        if row["unit"] != rows.QUANTITIES[quantity][0]:
            expected = rows.QUANTITIES[quantity][0]
            yield Fault(Code.BAD_VALUE, "unit", row["unit"], expected, "convert the value")
        faults = list(number(row, "value", *BOUNDS[quantity]))
        yield from faults
        if quantity == "memory_total" and not faults and row["accelerator"] in known.cards:
            yield from _memory_total(row, known.sold_mib[row["accelerator"]])

    return check


def _memory_total(row: Row, sold_mib: float) -> Iterator[Fault]:
    """The driver's total is at most the GiB of the label, and not much less (unless the card is several devices)."""
    if row["condition"] or not sold_mib:
        return
    low = LEAST_SHARE_OF_SOLD * sold_mib / (2 if "one of the two devices" in row["note"] else 1)
    if not low <= float(row["value"]) <= sold_mib:
        yield Fault(Code.OUT_OF_BOUNDS, "value", row["value"], f"{low:.0f} to {sold_mib:.0f} MiB", "see the label")


def _memory_rules(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "fraction", LEAST_SHARE_OF_SOLD, 1)
        yield from member(row, "kind", list(Kind), "measured, published, derived, assumed")
        for sibling in filter(None, row["siblings"].split("|")):
            if sibling not in known.seen_mib:
                yield Fault(Code.UNKNOWN_NAME, "siblings", sibling, "a card with a driver reading", "add the reading")
            elif as_float(row["fraction"]) * known.sold_mib.get(sibling, 0) > known.seen_mib[sibling]:
                yield Fault(Code.CONFLICT, "fraction", row["fraction"], f"no more than {sibling} shows", "lower it")

    return check


def _baselines(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from baseline_faults(row, known.cards, known.limits)
        yield from day(row, "seen_at")

    return check


def _mig(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        for card in row["accelerators"].split("|"):
            if card not in known.cards:
                yield Fault(Code.UNKNOWN_NAME, "accelerators", card, "an id of accelerators.csv", "mend the spelling")
        yield from parsed(row, "sm_fraction", Fraction, "a fraction such as 1/7")
        yield from number(row, "memory_label_gb", 1, 1_000)
        yield from number(row, "max_instances", 1, 7)
        yield from day(row, "seen_at")

    return check


def _models(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        if set(row["id"]) & set(',"'):
            yield Fault(Code.BAD_VALUE, "id", row["id"], "no comma and no quote", "ids are looked up by line")
        faults = [f for c in ("params_total", "params_active") for f in number(row, c, 1e6, 1e14)]
        yield from faults
        if not faults:
            yield from _params(row)
        for column in ("layers", "attention_heads", "kv_heads", "head_dim", "vocab_size", "experts", "max_context"):
            yield from parsed(row, column, int, "a whole number")
        yield from _heads(row)
        yield from day(row, "seen_at")

    return check


def _params(row: Row) -> Iterator[Fault]:
    total, active = int(row["params_total"]), int(row["params_active"])
    if active > total:
        yield Fault(Code.CONFLICT, "params_active", row["params_active"], f"at most {total}", "count again")
    checked = row["params_check"]
    if checked and abs(int(checked) / total - 1) > PARAMS_TOLERANCE and "params_check" not in row["notes"]:
        expected = f"within {PARAMS_TOLERANCE:.1%} of params_total"
        yield Fault(Code.CONFLICT, "params_check", checked, expected, "mend it, or say why in notes: params_check ...")


def _heads(row: Row) -> Iterator[Fault]:
    """Heads x head dimension stays near the hidden size; there are no more KV heads than heads."""
    cells = [row[c] for c in ("attention_heads", "head_dim", "hidden_size")]
    if not all(c.isdigit() for c in cells):
        return
    heads, head_dim, hidden = map(int, cells)
    low, high = HEADS_OVER_HIDDEN
    if not low <= heads * head_dim / hidden <= high:
        yield Fault(
            Code.OUT_OF_BOUNDS, "head_dim", row["head_dim"], f"{low} to {high} x hidden / heads", "read it again"
        )
    if row["kv_heads"].isdigit() and int(row["kv_heads"]) > heads:
        yield Fault(Code.CONFLICT, "kv_heads", row["kv_heads"], f"at most {heads}", "read it again")


def _formats(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "bits_per_weight", 1, 32)
        yield from parsed(row, "computes_in", Precision, "a precision")
        yield from parsed(row, "min_compute_capability", rows.capability, "a compute capability such as 8.9")
        for column in ("embeddings_16bit", "head_16bit"):
            yield from parsed(row, column, rows.flag, "true or false")
        yield from day(row, "seen_at")

    return check


def _billing(known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "provider", known.providers, "providers.csv")
        yield from member(row, "rule_key", BILLING_KEYS, "the known rule keys")
        yield from member(row, "confidence", CONFIDENCES, "low, medium, high")
        yield from day(row, "seen_at")
        yield from parsed(row, "effective_from", date.fromisoformat, "a date such as 2025-10-01")
        if row["rule_key"] in DEAREST and row["value"].replace(".", "", 1).isdigit():
            yield from number(row, "value", 0, DEAREST[row["rule_key"]])
        if row["rule_key"].endswith("_s") and row["value"].startswith("-"):
            yield Fault(Code.OUT_OF_BOUNDS, "value", row["value"], "0 or more seconds", "check the sign")

    return check


def _providers(known: Known) -> Check:
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


def _rates(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "per_base", 1e-6, 1e6)
        yield from day(row, "on")
        for column in ("base", "currency"):
            yield from parsed(row, column, _currency, "an ISO 4217 code")

    return check


def _claims(_known: Known) -> Check:
    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "verdict", VERDICTS, "right, wrong, conditional, unsupported")
        if not row["right_answer"]:
            yield Fault(Code.MISSING_VALUE, "right_answer", "", "the right answer", "write what is right")

    return check


CHECKS: Mapping[str, Callable[[Known], Check]] = {
    "accelerators.csv": _accelerators,
    "accelerator_facts.csv": _facts,
    "memory_rules.csv": _memory_rules,
    "baselines.csv": _baselines,
    "mig_profiles.csv": _mig,
    "models.csv": _models,
    "formats.csv": _formats,
    "billing_rules.csv": _billing,
    "providers.csv": _providers,
    "exchange_rates.csv": _rates,
    "claims.csv": _claims,
}
