"""Faults of the files on cards: their facts, memory, slices and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rackrate.evidence import Kind
from rackrate.facts import rows
from rackrate.facts.accelerator import Precision
from rackrate.facts.cells import fraction
from rackrate.facts.validate_baselines import baseline_faults
from rackrate.facts.validate_cells import Check, Known, as_float, day, member, missing, number, parsed, whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code

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
    "nvenc": (0, 16),
    "nvdec": (0, 16),
}
MOST_SLICES = 7
WHOLE: Mapping[str, tuple[int, int]] = {
    "launch_year": (2010, 2050),
    "nvlink_bridge_max_gpus": (0, 8),
    "mig_instances": (0, MOST_SLICES),
    "rt_cores": (0, 1_000),
}
LEAST_SHARE_OF_SOLD = 0.9
MIG_LABELS_OVER_SOLD = 1.03
"""Labels of slices are rounded up: four of 47 GB in a card of 186."""


def accelerators_check(_known: Known) -> Check:
    """What is wrong with a card of accelerators.csv."""

    def check(row: Row) -> Iterator[Fault]:
        needed = ("id", "vendor", "product", "architecture", "form_factor", "memory_sold_gb", "nvswitch", "modified")
        yield from missing(row, *needed)
        if row["memory_sold_gb"]:
            yield from number(row, "memory_sold_gb", 1, 1_000)
        for column in ("nvswitch", "sparsity_2_4", "modified", "ecc"):
            yield from parsed(row, column, rows.flag, "true or false")
        yield from parsed(row, "compute_capability", rows.capability, "a compute capability such as 8.6")
        if row["compute_capability"] and row["vendor"] != "NVIDIA":
            yield Fault(Code.BAD_VALUE, "compute_capability", row["compute_capability"], "empty for others", "use isa")
        for column in filter(None, row["recalled"].split("|")):
            yield from member({"recalled": column}, "recalled", ("ecc", "cooling"), "ecc, cooling")
        yield from member(row, "ecc_default", ("", "on", "off"), "on, off, or nothing")
        for column, (low, high) in WHOLE.items():
            yield from whole(row, column, low, high)

    return check


def facts_check(known: Known) -> Check:
    """What is wrong with a number of accelerator_facts.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from member(row, "accelerator", known.cards, "accelerators.csv")
        yield from member(row, "kind", list(Kind), "measured, published, derived, assumed")
        yield from day(row, "seen_at", known.today)
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


def memory_rules_check(known: Known) -> Check:
    """What is wrong with a rule of memory_rules.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from number(row, "fraction", LEAST_SHARE_OF_SOLD, 1)
        yield from member(row, "kind", list(Kind), "measured, published, derived, assumed")
        for sibling in filter(None, row["siblings"].split("|")):
            if sibling not in known.seen_mib:
                yield Fault(Code.UNKNOWN_NAME, "siblings", sibling, "a card with a driver reading", "add the reading")
            elif as_float(row["fraction"]) * known.sold_mib.get(sibling, 0) > known.seen_mib[sibling]:
                yield Fault(Code.CONFLICT, "fraction", row["fraction"], f"no more than {sibling} shows", "lower it")

    return check


def baselines_check(known: Known) -> Check:
    """What is wrong with a figure of baselines.csv."""

    def check(row: Row) -> Iterator[Fault]:
        yield from baseline_faults(row, known.cards, known.limits)
        yield from day(row, "seen_at", known.today)

    return check


def mig_check(known: Known) -> Check:
    """What is wrong with a slice of mig_profiles.csv."""

    def check(row: Row) -> Iterator[Fault]:
        for card in row["accelerators"].split("|"):
            if card not in known.cards:
                yield Fault(Code.UNKNOWN_NAME, "accelerators", card, "an id of accelerators.csv", "mend the spelling")
        faults = [
            *missing(row, "sm_fraction", "max_instances"),
            *parsed(row, "sm_fraction", fraction, "a part of the card such as 1/7"),
            *number(row, "memory_label_gb", 1, 1_000),
            *whole(row, "max_instances", 1, MOST_SLICES),
        ]
        yield from faults or _mig_sums(row, known)
        yield from day(row, "seen_at", known.today)

    return check


def _mig_sums(row: Row, known: Known) -> Iterator[Fault]:
    """Slices together are no more than the card, and a profile's name says its memory."""
    count, share, label = int(row["max_instances"]), fraction(row["sm_fraction"]), float(row["memory_label_gb"])
    if f"{label:g}gb" not in row["profile"]:
        yield Fault(Code.CONFLICT, "memory_label_gb", row["memory_label_gb"], row["profile"], "copy it from the name")
    if count * share > 1:
        yield Fault(Code.CONFLICT, "sm_fraction", row["sm_fraction"], f"{count} of them in one card", "count again")
    cards = [known.cards[card] for card in row["accelerators"].split("|") if card in known.cards]
    smallest = min((as_float(card.get("memory_sold_gb")) for card in cards), default=0.0)
    if smallest and count * label > smallest * MIG_LABELS_OVER_SOLD:
        expected = f"{count} of them in {smallest:g} GB"
        yield Fault(Code.CONFLICT, "max_instances", row["max_instances"], expected, "count again")
