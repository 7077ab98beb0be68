"""What can be asked of a list of offers: a workload's limits, and keys of its own, read as a workload's are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from rackrate.app.context import Context
from rackrate.app.listing_flags import LIMITS, OWN_KEYS, SELLERS
from rackrate.money import currency_code
from rackrate.plan.listing import Listing
from rackrate.plan.listing_words import SORT_WORDS
from rackrate.problems import Code, Finding, Refused, nearest
from rackrate.units import parse_day
from rackrate.values import replace
from rackrate.workload.key import Key
from rackrate.workload.parse import parse_limits
from rackrate.workload.request import request_from_flags
from rackrate.workload.values import read_value, shown
from rackrate.workload.workload import Budget, Limits


class Question(NamedTuple):
    """What to list and in which order."""

    listing: Listing
    sort: tuple[str, ...]
    group_by: str | None


def read_question(asked: Mapping[str, object], limit: int, here: Context) -> Question:
    """What ``asked`` means.

    Raises:
        Refused: with everything that is wrong with it.
    """
    reader = _Reader({key: value for key, value in asked.items() if value is not None and value not in ((), [])})
    if limit < 1:
        action = "ask for at least one offer"
        reader.found.append(Finding(code=Code.OUT_OF_BOUNDS, subject="limit", observed=str(limit), action=action))
    limits = reader.limits(here)
    currency = reader.currency("currency", here) or "USD"
    priced_in = tuple(reader.currencies(here))
    listing = Listing(
        limits=limits,
        offers=here.catalog.table,
        book=here.book,
        currency=currency,
        min_gpus=reader.whole("min_gpus"),
        max_price=reader.price("max_price", currency, here),
        max_price_per_gpu=reader.price("max_price_per_gpu", currency, here),
        currencies=priced_in,
        seen_since=reader.day("seen_since"),
        history=reader.value("history") is True,
    )
    sort, group_by = reader.texts("sort"), reader.value("group_by")
    if reader.found:
        raise Refused(reader.found)
    return Question(listing, sort, group_by if isinstance(group_by, str) else None)


class _Reader:
    """What was said, key by key; what is wrong with it goes into ``found``."""

    def __init__(self, asked: Mapping[str, object]) -> None:
        self.found: list[Finding] = []
        self._limits = {name: asked[name] for name in (*LIMITS, *SELLERS) if name in asked}
        self._own = {name: value for name, value in asked.items() if name in OWN_KEYS}
        for name in asked.keys() - self._limits.keys() - self._own.keys():
            known = [*LIMITS, *SELLERS, *OWN_KEYS]
            close = nearest(name, known, limit=2)
            action = f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(known)}"
            self.found.append(Finding(code=Code.UNKNOWN_KEY, subject=shown(name), observed=shown(name), action=action))

    def limits(self, here: Context) -> Limits:
        """The limits, ``min_memory`` among them; markets that can be interrupted are on offer too."""
        asked = request_from_flags({f"limits.{name}": value for name, value in self._limits.items()})
        limits = parse_limits(asked, here.book)
        if not isinstance(limits, Limits):
            self.found.extend(limits)
            return Limits()
        least = self.value("min_memory")
        require = (*limits.require, f"min_memory_gb={least:g}") if isinstance(least, float) else limits.require
        return replace(limits, require=require, interruptible=True)

    def value(self, name: str) -> object:
        """The value of a key, or None."""
        if name not in self._own:
            return None
        key = OWN_KEYS[name]
        value = read_value(key, self._own[name], key.flag)
        if isinstance(value, Finding):
            self.found.append(value)
            return None
        return value

    def whole(self, name: str) -> int | None:
        """A whole number, or None."""
        value = self.value(name)
        return value if isinstance(value, int) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Texts; those that the key does not know are refused."""
        value = self.value(name)
        texts = tuple(one for one in value if isinstance(one, str)) if isinstance(value, tuple) else ()
        if name == "sort":
            self.found.extend(_not_among(OWN_KEYS[name], texts, SORT_WORDS))
        return texts

    def day(self, name: str) -> date | None:
        """A day, or None."""
        value = self.value(name)
        try:
            return parse_day(value) if isinstance(value, str) else None
        except ValueError:
            key, action = OWN_KEYS[name], f"write it as in {OWN_KEYS[name].example}"
            wrong = Finding(
                code=Code.BAD_VALUE, subject=key.flag, observed=shown(value), expected="a day", action=action
            )
            self.found.append(wrong)
            return None

    def currency(self, name: str, here: Context) -> str | None:
        """A currency with a rate, or None."""
        value = self.value(name)
        return self._known(name, value, here) if isinstance(value, str) else None

    def currencies(self, here: Context) -> Iterator[str]:
        """The currencies that sellers may price in."""
        for text in self.texts("priced_in"):
            known = {*here.catalog.table.currencies, *here.book.rates.per_base, here.book.rates.base}
            yield self._known("priced_in", text, here, known)

    def _known(self, name: str, text: str, here: Context, known: set[str] | None = None) -> str:
        code, rates = currency_code(text), here.book.rates
        words = known or {rates.base, *rates.per_base}
        if code not in words:
            expected = f"one of {', '.join(sorted(words))}"
            action = "use one of them, or give a rate in your own exchange_rates.csv"
            self.found.append(
                Finding(
                    code=Code.UNKNOWN_NAME,
                    subject=OWN_KEYS[name].flag,
                    observed=shown(text),
                    expected=expected,
                    action=action,
                )
            )
        return code

    def price(self, name: str, currency: str, here: Context) -> float | None:
        """A price per hour in ``currency``, or None; an amount without a currency is in it."""
        said = self._own.get(name)
        if isinstance(said, (int, float)) or (isinstance(said, str) and said.strip().replace(".", "", 1).isdigit()):
            self._own[name] = f"{said} {currency}"
        budget = self.value(name)
        if not isinstance(budget, Budget):
            return None
        key, rates = OWN_KEYS[name], here.book.rates
        if (
            budget.period not in {"total", "hour"}
            or not rates.knows(budget.money.currency)
            or not rates.knows(currency)
        ):
            expected = f"an amount for an hour, in one of {', '.join(sorted({rates.base, *rates.per_base}))}"
            wrong = Finding(
                code=Code.BAD_VALUE,
                subject=key.flag,
                observed=shown(said),
                expected=expected,
                action=f"write it as in {key.example}",
            )
            self.found.append(wrong)
            return None
        return float(rates.convert(budget.money, currency).amount)


def _not_among(key: Key, texts: Sequence[str], known: Sequence[str]) -> Iterator[Finding]:
    for text in texts:
        if text not in known:
            close = nearest(text, known)
            action = f"did you mean {' or '.join(close)}?" if close else "use one of them"
            expected = f"one of {', '.join(known)}"
            yield Finding(code=Code.BAD_VALUE, subject=key.flag, observed=shown(text), expected=expected, action=action)
