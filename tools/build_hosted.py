"""Write the bundled prices of hosted APIs from the installed library genai-prices; ``--check`` fails when they differ.

Decision 0016: the library is read when the data file is made, not when rackrate runs. Kept are
prices of text by the token; left out are prices of 0 (free tiers are limited in ways that no price
says), products of editors, and rules that fit names anywhere (``contains``, ``regex``): they say
nothing about the size of a model. ``SEEN_AT`` is the day on which this version was read.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from genai_prices.data import providers
from genai_prices.types import (
    ClauseEquals,
    ClauseOr,
    ClauseStartsWith,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    TieredPrices,
    TimeOfDateConstraint,
)

from rackrate.facts.hosted import COLUMNS

VERSION = "0.2.3"
SEEN_AT = date(2026, 11, 30)
FILE = Path(__file__).parents[1] / "src" / "rackrate" / "facts" / "data" / "hosted_prices.csv"
NO_APIS = frozenset({"cursor", "github-copilot"})
"""Credits of an editor, at prices by the token."""

_LIBRARY = "https://github.com/pydantic/genai-prices"
_NEEDED = ("input_mtok", "output_mtok")
_BESIDE = ("output_reasoning_mtok", "output_citation_mtok")
"""Tokens that are billed and that no size of a request tells."""

_BATCH = {"processing": "batch"}
_FULL_DAY = 24 * 60


def rows() -> Iterator[dict[str, str]]:
    """The rows of the data file: a row for each price of a model, later ones going before earlier ones."""
    for provider in sorted(providers, key=lambda one: one.id):
        if provider.id not in NO_APIS:
            for model in sorted(provider.models, key=lambda one: one.id):
                yield from _of_model(provider, model)


def _of_model(provider: Provider, model: ModelInfo) -> Iterator[dict[str, str]]:
    same = {
        "provider": provider.id,
        "model": model.id,
        "names": "|".join(name for name in dict.fromkeys(_names(model.match)) if name != model.id.lower()),
        "currency": "USD",
        "context_tokens": str(model.context_window or ""),
        "state": "deprecated" if model.deprecated else "",
        "source": f"{(provider.pricing_urls or [_LIBRARY])[0]} by genai-prices {VERSION}",
        "seen_at": SEEN_AT.isoformat(),
    }
    listed = model.prices if isinstance(model.prices, list) else [ConditionalPrice(prices=model.prices)]
    batch = [
        ConditionalPrice(constraint=variant.constraint, prices=variant.prices)
        for variant in reversed(model.price_variants or [])  # there the first one counts, here the last
        if variant.when == _BATCH
    ]
    for processing, prices in (("", listed), ("batch", batch)):
        sold = [_is_sold(price.prices) for price in prices]
        if any(sold) and not all(sold):
            raise ValueError(f"{provider.id} {model.id}: a price that ends needs a row that says so")
        for price in _distinct(prices):
            if all(sold):
                yield dict.fromkeys(COLUMNS, "") | same | {"processing": processing} | _cells(price)


def _distinct(prices: Sequence[ConditionalPrice]) -> Iterator[ConditionalPrice]:
    """Without prices that hold from the same day as a later one (the later one counts)."""
    for _, group in groupby(prices, key=_when):
        yield list(group)[-1]


def _when(price: ConditionalPrice) -> tuple[str, str]:
    return _from(price), _hours(price)


def _is_sold(price: ModelPrice) -> bool:
    """Whether text goes in and comes out for money, and for nothing beside."""
    found = [getattr(price, key) for key in _NEEDED]
    if any(getattr(price, key) is not None for key in _BESIDE):
        return False
    return all(one is not None for one in found) and any(_base(one) > 0 for one in found)


def _cells(price: ConditionalPrice) -> dict[str, str]:
    fee = price.prices.requests_kcount
    return {
        "input_per_million": _amount(price.prices.input_mtok),
        "output_per_million": _amount(price.prices.output_mtok),
        "cached_input_per_million": _amount(price.prices.cache_read_mtok),
        "per_thousand_requests": _amount(fee),
        "effective_from": _from(price),
        "hours_utc": _hours(price),
    }


def _from(price: ConditionalPrice) -> str:
    found = price.constraint
    return found.start_date.isoformat() if isinstance(found, StartDateConstraint) else ""


def _hours(price: ConditionalPrice) -> str:
    found = price.constraint
    if not isinstance(found, TimeOfDateConstraint):
        return ""
    return f"{_clock(found.start_time)}-{_clock(found.end_time)}"


def _clock(at: time) -> str:
    """A time of day in UTC, to the minute."""
    away = at.utcoffset()
    minutes = at.hour * 60 + at.minute - (int(away.total_seconds()) // 60 if away else 0)
    return f"{minutes % _FULL_DAY // 60:02d}:{minutes % 60:02d}"


def _base(price: Decimal | TieredPrices) -> Decimal:
    return price.base if isinstance(price, TieredPrices) else price


def _amount(price: Decimal | TieredPrices | None) -> str:
    """An amount, and after bars the amounts above a number of prompt tokens: ``1.25|200000:2.5``."""
    if price is None:
        return ""
    if not isinstance(price, TieredPrices):
        return _plain(price)
    return "|".join([_plain(price.base), *(f"{tier.start}:{_plain(tier.price)}" for tier in price.tiers)])


def _plain(amount: Decimal) -> str:
    """In full, rounded to a millionth of a unit a million tokens: the library holds some floats."""
    return f"{round(amount, 6).normalize():f}"


def _names(rule: object) -> Iterator[str]:
    """Other names that the library's rule takes, whole or (with a star) the beginnings of names."""
    if isinstance(rule, ClauseOr):
        for part in rule.or_:
            yield from _names(part)
    elif isinstance(rule, ClauseEquals):
        yield rule.equals.lower()
    elif isinstance(rule, ClauseStartsWith):
        yield f"{rule.starts_with.lower()}*"


def text() -> str:
    """The data file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())
    return out.getvalue()


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the file would change")
    check = parser.parse_args().check
    installed = version("genai-prices")
    if installed != VERSION:
        print(f"genai-prices {installed} is installed; this tool is of {VERSION}: set VERSION and SEEN_AT")
        return 1
    made = text()
    if not check:
        FILE.write_text(made, "utf-8")
    elif not FILE.exists() or FILE.read_text("utf-8") != made:
        print(f"{FILE.name}: stale; run `python tools/build_hosted.py`", file=sys.stderr)
        return 1
    print(f"{FILE.name}: {made.count(chr(10)) - 1} prices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
