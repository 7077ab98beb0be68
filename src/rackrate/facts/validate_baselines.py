"""Faults of baselines.csv: a measurement cannot beat the card, and kinds must not be mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rackrate.facts.baselines import PCIE_BYTES_PER_S_PER_LANE, QUANTITIES, BaselineKind, Mark
from rackrate.facts.cells import is_number, is_whole
from rackrate.facts.validate_rows import Fault, Row
from rackrate.problems import Code
from rackrate.units import GB

PEAK_TOLERANCE = 1.03
"""Figures are rounded, and clocks vary by a step or two."""
MOST_ABOVE_PEAK = 1.2
"""Consumer cards run up to 20 % above the boost clock on their box."""
POWER_TOLERANCE = 1.01

LEAST = 1e-3
LARGEST: Mapping[str, float] = {
    "TFLOPS": 100_000,
    "GB/s": 25_000,
    "W": 5_000,
    "MiB": 1_000_000,
    "MHz": 5_000,
    "bits": 20_000,
}
_MATMUL_KINDS = frozenset({BaselineKind.BEST, BaselineKind.CROWD, BaselineKind.SUSTAINED})
_LINK = frozenset({"peer_one_way"})
_SLOT = frozenset({"host_to_device", "device_to_host", "host_link"})


class Limits:
    """What is published of each card, from the rows of accelerator_facts.csv: the most of each quantity.

    Rows under a condition count for power alone, which comes in variants; of
    rates they are what other pages print by mistake.
    """

    def __init__(self, facts: Iterable[Row], numbers: Callable[[str | None], float]) -> None:
        self._most: dict[tuple[str, str], float] = {}
        for row in facts:
            quantity, value = row.get("quantity", ""), numbers(row.get("value"))
            if not row.get("condition") or quantity in {"power_limit", "power_max", "memory_total"}:
                key = (row.get("accelerator", ""), quantity)
                self._most[key] = max(value, self._most.get(key, 0.0))
        self.totals = {
            (row.get("accelerator", ""), numbers(row.get("value")))
            for row in facts
            if row.get("quantity") == "memory_total"
        }

    def most(self, cards: Sequence[str], *quantities: str) -> float:
        """The most that is published for any of ``cards``, of the first quantity that is known; 0 for unknown."""
        for quantity in quantities:
            found = max((self._most.get((card, quantity), 0.0) for card in cards), default=0.0)
            if found:
                return found
        return 0.0


def baseline_faults(row: Row, cards: Iterable[str], limits: Limits) -> Iterator[Fault]:
    """Everything that is wrong with one figure."""
    if row["quantity"] not in QUANTITIES:
        yield Fault(Code.UNKNOWN_NAME, "quantity", row["quantity"], "a known quantity", "mend the spelling")
        return
    yield from _words(row, cards)
    yield from _unit(row)
    values = list(_numbers(row))
    faults = [value for value in values if isinstance(value, Fault)]
    yield from faults
    if not faults:
        highest = max(value for value in values if isinstance(value, float))
        yield from _against_card(row, highest, limits)


def _words(row: Row, cards: Iterable[str]) -> Iterator[Fault]:
    for column, known in (("kind", list(BaselineKind)), ("mark", list(Mark))):
        if row[column] not in known:
            expected = ", ".join(filter(None, known))
            yield Fault(Code.UNKNOWN_NAME, column, row[column], f"one of {expected}", "mend the spelling")
    for card in filter(None, row["accelerators"].split("|")):
        if card not in cards:
            yield Fault(Code.UNKNOWN_NAME, "accelerators", card, "an id of accelerators.csv", "mend the spelling")
    if not row["note"] and (row["mark"] or not row["accelerators"]):
        expected = "why the figure is marked, or why no card is named"
        yield Fault(Code.MISSING_VALUE, "note", "", expected, "say it in a few words")
    if not row["label"]:
        yield Fault(Code.MISSING_VALUE, "label", "", "what the source calls the card", "copy it from the source")
    floors = {BaselineKind.FLOOR, BaselineKind.TARGET, BaselineKind.STATED, BaselineKind.REPORTED}
    if row["quantity"].startswith("matmul_") and row["kind"] in floors:
        yield Fault(Code.CONFLICT, "kind", row["kind"], "a kind of measurement", "a floor is no matrix product")


def _unit(row: Row) -> Iterator[Fault]:
    expected = QUANTITIES[row["quantity"]][0]
    if row["unit"] != expected:
        yield Fault(Code.BAD_VALUE, "unit", row["unit"], expected, "convert the value")
    if not is_whole(row["gpus"]) or not 1 <= int(row["gpus"]) <= 1024:  # noqa: PLR2004 - cards of one collective
        yield Fault(Code.BAD_VALUE, "gpus", row["gpus"], "a whole number of cards", "write 1 for one card")


def _numbers(row: Row) -> Iterator[float | Fault]:
    largest = LARGEST[QUANTITIES[row["quantity"]][0]]
    low = LEAST
    for column in ("value", "value_to"):
        if column == "value_to" and not row[column]:
            continue
        if not is_number(row[column]):
            yield Fault(Code.BAD_VALUE, column, row[column], "a number", "write it without unit or thousands separator")
            return
        number = float(row[column])
        if not low < number <= largest:
            yield Fault(Code.OUT_OF_BOUNDS, column, row[column], f"over {low:g} to {largest:g}", "check its unit")
            return
        low = number
        yield number


def _against_card(row: Row, highest: float, limits: Limits) -> Iterator[Fault]:
    """A figure that is not marked is within what the card can do, and a mark is needed where it stands."""
    cards = tuple(filter(None, row["accelerators"].split("|")))
    if not cards or row["mark"] == Mark.SUSPECT:
        return
    most, tolerance = _most(row, cards, limits)
    if row["mark"] == Mark.UPCAST:
        most, tolerance = limits.most(cards, "peak_fp32"), PEAK_TOLERANCE
    above = bool(most) and highest > most * tolerance
    if row["mark"] == Mark.ABOVE_PEAK:
        if not most * PEAK_TOLERANCE < highest <= most * MOST_ABOVE_PEAK:
            expected = f"over {most * PEAK_TOLERANCE:.4g}, at most {most * MOST_ABOVE_PEAK:.4g}"
            yield Fault(Code.CONFLICT, "mark", row["value"], expected, "remove the mark, or mark it suspect")
    elif above:
        expected = f"at most {most * tolerance:.4g}, of {' or '.join(cards)}"
        yield Fault(Code.OUT_OF_BOUNDS, "value", row["value"], expected, "check the card; if it is right, mark it")
    if row["quantity"] == "memory_total" and not any((card, highest) in limits.totals for card in cards):
        expected = f"a reading of {' or '.join(cards)} in accelerator_facts.csv"
        yield Fault(Code.CONFLICT, "value", row["value"], expected, "add the reading there, or name another card")


def _most(row: Row, cards: Sequence[str], limits: Limits) -> tuple[float, float]:
    """The most that one figure can be, and by how much rounding may exceed it; (0, 1) where nothing is known."""
    quantity = row["quantity"]
    if quantity.startswith("matmul_") and row["kind"] in _MATMUL_KINDS:
        name = f"peak_{quantity.removeprefix('matmul_')}"
        # Without TF32 the same call computes in FP32.
        return limits.most(cards, name, *(["peak_fp32"] if name == "peak_tf32" else [])), PEAK_TOLERANCE
    if quantity.startswith("memory_") and QUANTITIES[quantity][0] == "GB/s":
        return limits.most(cards, "bandwidth"), 1.0
    if quantity in _SLOT:
        rates = [_slot(limits, card) for card in cards]
        return (max(rates), 1.0) if all(rates) and row["label"].find("C2C") < 0 else (0.0, 1.0)
    if quantity in _LINK:
        return limits.most(cards, "nvlink_total_bidir") / 2, 1.0
    if quantity == "power_target":
        return limits.most(cards, "power_max", "power_limit"), POWER_TOLERANCE
    return 0.0, 1.0


def _slot(limits: Limits, card: str) -> float:
    """GB/s of the card's slot in one direction."""
    generation = int(limits.most((card,), "pcie_gen"))
    return PCIE_BYTES_PER_S_PER_LANE.get(generation, 0.0) * limits.most((card,), "pcie_lanes") / GB
