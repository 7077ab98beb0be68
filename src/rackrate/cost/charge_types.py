"""What a bill, forecast or audited, says."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rackrate.money import Money, total
from rackrate.problems import Finding
from rackrate.values import Value, replace


class Line(Value, frozen=True, kw_only=True):
    """One named line: quantity x unit price = amount, with the rule that made it.

    ``name`` is a code: ``compute``, ``compute_stopped``, ``term`` (prepaid
    terms), ``disk_running``, ``disk_stopped``, ``data_in``, ``data_out``,
    ``ip``, ``one_time``. A line of 0 says that the part is free, and by which rule.
    """

    name: str
    quantity: Decimal
    unit: str
    unit_price: Money
    amount: Money
    rule: str = ""


class Charges(Value, frozen=True, kw_only=True):
    """All lines in one currency; ``unknown`` lists the parts of the bill that no rule was seen for."""

    lines: tuple[Line, ...]
    billed_seconds: Decimal
    currency: str
    unknown: tuple[Finding, ...] = ()

    @property
    def total(self) -> Money:
        """The exact sum of the lines (unknown parts are not in it)."""
        return total([line.amount for line in self.lines], self.currency)


def line(name: str, quantity: Decimal, unit: str, unit_price: Money, rule: str = "") -> Line:
    """A line whose amount is ``quantity`` x ``unit_price``."""
    return Line(name=name, quantity=quantity, unit=unit, unit_price=unit_price, amount=unit_price * quantity, rule=rule)


def combined(parts: Sequence[Charges], currency: str) -> Charges:
    """Parts of one bill as one bill."""
    return Charges(
        lines=tuple(one for part in parts for one in part.lines),
        billed_seconds=sum((part.billed_seconds for part in parts), Decimal(0)),
        currency=currency,
        unknown=tuple(finding for part in parts for finding in part.unknown),
    )


def times(one: Charges, machines: int) -> Charges:
    """The charges of ``machines`` that are each billed as ``one``."""
    if machines == 1:
        return one
    lines = tuple(replace(line, quantity=line.quantity * machines, amount=line.amount * machines) for line in one.lines)
    return replace(one, lines=lines, billed_seconds=one.billed_seconds * machines)


def part(currency: str, *lines: Line, unknown: Sequence[Finding] = (), billed_seconds: Decimal = Decimal(0)) -> Charges:
    """A part of a bill."""
    return Charges(lines=lines, billed_seconds=billed_seconds, currency=currency, unknown=tuple(unknown))
