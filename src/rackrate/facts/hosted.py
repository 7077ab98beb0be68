"""What hosted APIs charge for models by the token, and which price of a model holds when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from rackrate.facts.cells import is_number, is_whole
from rackrate.units import parse_day
from rackrate.values import Value

COLUMNS = (
    *("provider", "model", "names", "currency"),
    *("input_per_million", "output_per_million", "cached_input_per_million", "per_thousand_requests"),
    *("processing", "effective_from", "hours_utc", "context_tokens", "state", "source", "seen_at"),
)
"""The columns of hosted_prices.csv; the first six are those that a row needs."""

BATCH = "batch"
DEPRECATED = "deprecated"
MINUTES_PER_DAY = 24 * 60


class Tiered(Value, frozen=True, kw_only=True):
    """A price of a million tokens that may depend on the length of the prompt.

    ``steps`` are (tokens, price), ascending: a prompt of more tokens pays that
    price for all of its tokens, not only for those above.
    """

    base: Decimal
    steps: tuple[tuple[int, Decimal], ...] = ()

    def at(self, prompt_tokens: int) -> Decimal:
        """The price under a prompt of this length."""
        return next((price for above, price in reversed(self.steps) if prompt_tokens > above), self.base)


class HostedPrice(Value, frozen=True, kw_only=True):
    """One price of one model at one provider, as seen.

    ``names``: other names of the model; one that ends with ``*`` is how names
    begin. ``processing`` is ``batch`` where answers come within a day;
    ``effective_from`` is None where no day is known; ``hours_utc`` are minutes
    of the day (begin, end) in which the price holds. ``context_tokens`` is what
    the API takes, ``state`` is ``deprecated`` where its end is announced.
    """

    provider: str
    model: str
    names: tuple[str, ...]
    currency: str
    input_per_million: Tiered
    output_per_million: Tiered
    cached_input_per_million: Tiered | None
    per_thousand_requests: Decimal
    processing: str
    effective_from: date | None
    hours_utc: tuple[int, int] | None
    context_tokens: int | None
    state: str
    source: str
    seen_at: date

    def holds_at(self, minute: int) -> bool:
        """Whether the price holds in this minute of a day in UTC."""
        if self.hours_utc is None:
            return True
        begin, end = self.hours_utc
        return begin <= minute < end if begin <= end else minute >= begin or minute < end


class Timed(Value, frozen=True, kw_only=True):
    """A price and the share of the day for which it holds."""

    price: HostedPrice
    share: Decimal


def in_force(prices: Iterable[HostedPrice], at: date) -> tuple[Timed, ...]:
    """What of the ``prices`` of one model, provider and processing holds on a day; empty when nothing does yet.

    Of several that hold at one time the last one counts, as in genai-prices
    (github.com/pydantic/genai-prices, ``ModelInfo.get_prices``).
    """
    begun = [price for price in prices if price.effective_from is None or price.effective_from <= at]
    turns = sorted({0, *(minute for price in begun for minute in price.hours_utc or ())})
    shares: dict[HostedPrice, int] = {}
    for begin, end in zip(turns, (*turns[1:], MINUTES_PER_DAY), strict=True):
        for price in [one for one in begun if one.holds_at(begin)][-1:]:
            shares[price] = shares.get(price, 0) + end - begin
    return tuple(Timed(price=price, share=Decimal(held) / MINUTES_PER_DAY) for price, held in shares.items() if held)


def hosted_price(row: Mapping[str, str]) -> HostedPrice:
    """One row of hosted_prices.csv.

    Raises:
        ValueError: a cell cannot be read.
    """
    return HostedPrice(
        provider=row["provider"],
        model=row["model"],
        names=tuple(filter(None, row["names"].split("|"))),
        currency=row["currency"],
        input_per_million=tiered(row["input_per_million"]),
        output_per_million=tiered(row["output_per_million"]),
        cached_input_per_million=tiered(cached) if (cached := row["cached_input_per_million"]) else None,
        per_thousand_requests=_amount(row["per_thousand_requests"] or "0"),
        processing=row["processing"],
        effective_from=parse_day(begun) if (begun := row["effective_from"]) else None,
        hours_utc=minutes(hours) if (hours := row["hours_utc"]) else None,
        context_tokens=int(row["context_tokens"]) if row["context_tokens"] else None,
        state=row["state"],
        source=row["source"],
        seen_at=parse_day(row["seen_at"]),
    )


def tiered(text: str) -> Tiered:
    """A price such as ``0.4``, or with steps ``1.25|200000:2.5``.

    Raises:
        ValueError: it is no such price.
    """
    base, *more = text.split("|")
    steps = tuple((_tokens(above), _amount(price)) for above, _, price in (step.partition(":") for step in more))
    if list(steps) != sorted(steps, key=_above):
        raise ValueError(f"steps must ascend: {text!r}")
    return Tiered(base=_amount(base), steps=steps)


def _above(step: tuple[int, Decimal]) -> int:
    return step[0]


def _tokens(text: str) -> int:
    if not is_whole(text):
        raise ValueError(f"not a number of tokens: {text!r}")
    return int(text)


def _amount(text: str) -> Decimal:
    amount = Decimal(text) if is_number(text) else Decimal("nan")
    if not amount.is_finite() or amount < 0 or 0 < amount < _LEAST:
        raise ValueError(f"not a price: {text!r}")
    return amount


_LEAST = Decimal("1e-9")
"""A smaller price is 0 or a slip."""


def minutes(text: str) -> tuple[int, int]:
    """Minutes of the day at which a span such as ``00:30-16:30`` begins and ends.

    Raises:
        ValueError: it is no such span.
    """
    begin, dash, end = text.partition("-")
    span = (_minute(begin), _minute(end))
    if not dash or span[0] == span[1]:
        raise ValueError(f"not a span of hours: {text!r}")
    return span


def _minute(text: str) -> int:
    hour, _, minute = text.partition(":")
    if len(hour) != 2 or len(minute) != 2 or int(hour) >= 24 or int(minute) >= 60:  # noqa: PLR2004 - a clock
        raise ValueError(f"not a time of day: {text!r}")
    return int(hour) * 60 + int(minute)


def by_model(prices: Iterable[HostedPrice]) -> dict[tuple[str, str], Sequence[HostedPrice]]:
    """The prices of each model of each provider, in their order."""
    found: dict[tuple[str, str], list[HostedPrice]] = {}
    for price in prices:
        found.setdefault((price.provider, price.model), []).append(price)
    return dict(found.items())
