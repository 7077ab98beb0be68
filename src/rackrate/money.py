"""Money: exact decimal amounts with a currency, converted only for display.

Amounts stay in the currency in which they were billed or quoted. Conversion
needs a dated rate with a source and yields a new amount; nothing is rounded
before it is printed.
"""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from rackrate.values import Value

_CALLED = {"RMB": "CNY", "元": "CNY", "人民币": "CNY"}


def currency_code(name: str) -> str:
    """The ISO 4217 code of a currency by its code, in any case, or by another name that no other currency has."""
    code = name.strip().upper()
    return _CALLED.get(code, code)


class Money(Value, frozen=True):
    """An exact amount in one currency (ISO 4217 code)."""

    amount: Decimal
    currency: str

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + self._same(other), self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(self.amount - self._same(other), self.currency)

    def __mul__(self, factor: Decimal | int) -> Money:
        return Money(self.amount * factor, self.currency)

    def __le__(self, other: Money) -> bool:
        return self.amount <= self._same(other)

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def _same(self, other: Money) -> Decimal:
        if self.currency != other.currency:
            raise ValueError(f"cannot combine {self.currency} with {other.currency}: convert one first")
        return other.amount

    def rounded(self, places: int = 2) -> Money:
        """The amount rounded half up to ``places`` decimals, for printing."""
        return Money(self.amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP), self.currency)

    def __str__(self) -> str:
        places = 2 if abs(self.amount) >= 1 or not self.amount else 4
        return f"{self.rounded(places).amount:,f} {self.currency}"


def total(amounts: list[Money], currency: str) -> Money:
    """The sum of amounts that are all in ``currency``; zero for an empty list."""
    result = Money(Decimal(0), currency)
    for amount in amounts:
        result = result + amount
    return result


class ExchangeRates(Value, frozen=True, kw_only=True):
    """Reference rates of one day: units of each currency per one ``base``.

    ``per_base`` maps an ISO 4217 code to a Decimal; ``base`` itself need not be listed.
    """

    base: str
    per_base: dict[str, Decimal]
    on: date
    source: str

    def knows(self, currency: str) -> bool:
        """Whether ``currency`` can be converted from and to."""
        return currency == self.base or currency in self.per_base

    def factor(self, origin: str, target: str) -> Decimal:
        """Units of ``target`` that one unit of ``origin`` buys.

        Raises:
            ValueError: no rate is known for one of the currencies.
        """
        return self._per_base(target) / self._per_base(origin)

    def convert(self, money: Money, target: str) -> Money:
        """``money`` in ``target`` at these rates (for display and comparison only)."""
        if money.currency == target:
            return money
        return Money(money.amount * self.factor(money.currency, target), target)

    def _per_base(self, currency: str) -> Decimal:
        if currency == self.base:
            return Decimal(1)
        if currency not in self.per_base:
            known = ", ".join(sorted({self.base, *self.per_base}))
            raise ValueError(f"no exchange rate for {currency} on {self.on} ({self.source}); known: {known}")
        return self.per_base[currency]
