"""A user's own facts laid over the bundled ones.

What wins, and stays written down in docs/decisions/0012:

- a number of a card: as in ``rows``, with one step more: after the condition,
  an own row goes before a bundled one, whatever their kinds and dates;
- a billing rule: for one key and state an own rule that is in force goes before
  a bundled one (``BillingRules.find``);
- a card, model, engine, format or provider of the same id: the own record, whole;
- an exchange rate: the own one;
- the price of a hosted model: all own prices of one model at one provider.

Of several folders the first goes before the others in the same way. What loses
stays in its file and is shown by ``rackrate facts show``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from rackrate.evidence import Fact
from rackrate.facts import rows
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.billing import BillingRule, BillingRules
from rackrate.facts.book import FactBook
from rackrate.facts.engine import versioned
from rackrate.facts.hosted import HostedPrice, hosted_price
from rackrate.facts.lazy import LazyMapping
from rackrate.facts.own_rows import OwnRow
from rackrate.facts.validate_own import Base, OwnFacts
from rackrate.facts.validate_rows import Row
from rackrate.money import ExchangeRates
from rackrate.units import parse_day
from rackrate.values import replace

T = TypeVar("T")
_RULED = "rule "
"""What the source of a memory total that nobody read off a driver begins with (``rows.ruled_memory``)."""


def laid_over(base: Base, own: OwnFacts) -> FactBook:
    """The bundled book with ``own`` over it; its digest stays that of the bundled files."""
    book = base.book
    models = _first(own.rows["models.csv"], rows.model)
    engines = {each.engine.id: each.engine for each in reversed(own.engines)}
    return replace(
        book,
        accelerators=_cards(base, own),
        formats={**book.formats, **_first(own.rows["formats.csv"], rows.weight_format)},
        billing=_billing(book, own),
        provider_ids=_provider_ids(book, own),
        model_ids=tuple(dict.fromkeys((*book.model_ids, *models))),
        model=_either(models, book.model),
        engine_ids=tuple(dict.fromkeys((*book.engine_ids, *engines))),
        engine=versioned(_either(engines, book.engine)),
        rates=_rates(book.rates, own.rows["exchange_rates.csv"]),
    )


def _first(found: Iterable[OwnRow], make: Callable[[Row], T]) -> dict[str, T]:
    """The records by id, in the order of the rows; the first row of an id counts."""
    made: dict[str, T] = {}
    for row in found:
        if row.cells["id"] not in made:
            made[row.cells["id"]] = make(row.cells)
    return made


def _either(own: Mapping[str, T], bundled: Callable[[str], T]) -> Callable[[str], T]:
    return lambda name: own[name] if name in own else bundled(name)


# ---------------------------------------------------------------- cards


def fact_rank(layer: int, cells: Row) -> tuple[bool, int, int, int]:
    """The precedence of an own fact row: the lowest wins (see the module's docstring)."""
    condition, kind, newest = rows.rank([cells[column] for column in rows.FACT_COLUMNS])
    return (condition, layer, kind, newest)


def _cards(base: Base, own: OwnFacts) -> dict[str, Accelerator]:
    cards = dict(base.book.accelerators)
    described = _first(own.rows["accelerators.csv"], lambda cells: cells)
    facts = _own_facts(own.rows["accelerator_facts.csv"])
    for name in dict.fromkeys((*described, *facts)):
        known = cards.get(name)
        over = _merged(known.facts if known else {}, facts.get(name, {}))
        if name in described:
            known = rows.accelerator(described[name], {})
            over = _with_total(described[name], over, base)
        assert known is not None  # a fact of a card that nobody describes is no valid row
        cards[name] = replace(known, facts=over)
    return cards


def _own_facts(found: Iterable[OwnRow]) -> dict[str, dict[str, Fact]]:
    """The own facts that win among themselves, by card and loaded quantity."""
    won: dict[str, dict[str, Fact]] = {}
    for row in sorted(found, key=lambda r: fact_rank(r.layer, r.cells)):
        name = rows.QUANTITIES[row.cells["quantity"]][1]
        fact = rows.fact([row.cells[column] for column in rows.FACT_COLUMNS])
        won.setdefault(row.cells["accelerator"], {}).setdefault(name, fact)
    return won


def _merged(bundled: Mapping[str, Fact], own: Mapping[str, Fact]) -> dict[str, Fact]:
    """An own fact wins unless it holds under a condition and the bundled one under none."""
    merged = dict(bundled.items())
    for name, fact in own.items():
        known = merged.get(name)
        if known is None or known.condition or not fact.condition:
            merged[name] = fact
    return merged


def _with_total(card: Row, facts: dict[str, Fact], base: Base) -> dict[str, Fact]:
    """With a memory total by rule where no driver's reading is known: the own label may be another."""
    total = facts.get("memory_total_bytes")
    if total is None or total.source.startswith(_RULED):
        cells = rows.ruled_memory(card, base.memory_rules, base.book.seen_at.isoformat())
        facts["memory_total_bytes"] = rows.fact(cells)
    return facts


# ---------------------------------------------------------------- hosted models


def own_hosted(found: Iterable[OwnRow]) -> tuple[HostedPrice, ...]:
    """The own prices of hosted models; of one model at one provider those of the folder that wins."""
    made = [(row.layer, hosted_price(row.cells)) for row in found]
    first: dict[tuple[str, str], int] = {}
    for layer, price in made:
        key = (price.provider.casefold(), price.model.casefold())
        first[key] = min(layer, first.get(key, layer))
    return tuple(p for layer, p in made if layer == first[p.provider.casefold(), p.model.casefold()])


def with_own_hosted(own: Sequence[HostedPrice], bundled: Iterable[HostedPrice]) -> list[HostedPrice]:
    """Own prices and the bundled ones of other models or providers."""
    replaced = {(price.provider.casefold(), price.model.casefold()) for price in own}
    return [*own, *(p for p in bundled if (p.provider.casefold(), p.model.casefold()) not in replaced)]


# ---------------------------------------------------------------- providers, rules, rates


def _billing(book: FactBook, own: OwnFacts) -> Mapping[str, BillingRules]:
    found = own.rows["billing_rules.csv"]
    layers = 1 + max((row.layer for row in found), default=0)
    by_provider: dict[str, list[BillingRule]] = {}
    for row in found:
        rule = replace(rows.billing_rule(row.cells), own=layers - row.layer)
        by_provider.setdefault(rule.provider, []).append(rule)
    if not by_provider:
        return book.billing

    def make(provider: str) -> BillingRules:
        bundled = book.billing[provider].rules if provider in book.billing else ()
        return BillingRules(provider=provider, rules=(*by_provider.get(provider, ()), *bundled))

    return LazyMapping({name: name for name in (*book.billing, *by_provider)}, make)


def _provider_ids(book: FactBook, own: OwnFacts) -> Mapping[str, str]:
    ids = dict(book.provider_ids)
    for row in reversed(own.rows["providers.csv"]):
        ids |= {alias: row.cells["id"] for alias in row.cells["aliases"].split("|") if alias}
    return ids


def _rates(bundled: ExchangeRates, found: Iterable[OwnRow]) -> ExchangeRates:
    """The bundled rates with the own ones among them; the source says which are own, and of which day."""
    own = {row.cells["currency"]: row.cells for row in reversed(tuple(found))}
    if not own:
        return bundled
    rates = {code: bundled.factor(bundled.base, row["base"]) * Decimal(row["per_base"]) for code, row in own.items()}
    days = {code: parse_day(row["on"]) for code, row in own.items()}
    said = "; ".join(f"{code} of {days[code]}: {own[code]['source']}" for code in sorted(own))
    complete = set(bundled.per_base) <= set(own)
    return replace(
        bundled,
        per_base=bundled.per_base | rates,
        on=min(days.values()) if complete else bundled.on,
        source=said if complete else f"{bundled.source}; {said}",
    )
