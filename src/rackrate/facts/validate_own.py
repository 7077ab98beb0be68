"""A user's own facts: the rows and engine files that can be used, and what is wrong with the others.

They are held against the same checks as the bundled files (``validate``), row
by row, and against what the bundled files and the other own rows define.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rackrate.facts import rows
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.facts.engine_file import engine
from rackrate.facts.hosted import hosted_price
from rackrate.facts.own_rows import Columns, OwnRow, OwnTable, own_source, read_rows, told
from rackrate.facts.records import Provider, provider
from rackrate.facts.validate import CHECKS
from rackrate.facts.validate_cells import Known, as_float, member
from rackrate.facts.validate_engines import engine_faults
from rackrate.facts.validate_files import same_ids
from rackrate.facts.validate_rows import KEYS, Fault, Row
from rackrate.problems import Code, Finding
from rackrate.units import GIB, MIB
from rackrate.values import Value

NEEDED: Mapping[str, tuple[str, ...]] = {
    "accelerators.csv": (
        *("id", "vendor", "product", "architecture", "form_factor"),
        *("memory_type", "memory_sold_gb"),
    ),
    "accelerator_facts.csv": ("accelerator", "quantity", "value", "unit", "kind", "seen_at"),
    "formats.csv": ("id", "bits_per_weight"),
    "models.csv": ("id", "params_total"),
    "providers.csv": ("id",),
    "exchange_rates.csv": ("base", "currency", "per_base", "on"),
    "billing_rules.csv": ("provider", "rule_key", "value", "seen_at"),
    "hosted_prices.csv": ("provider", "model", "input_per_million", "output_per_million", "seen_at"),
}
"""The files of facts that a user may have, in the order in which they refer to each other, and what each needs."""

DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "accelerators.csv": {"nvswitch": "false", "modified": "false"},
    "formats.csv": {"embeddings_16bit": "false", "head_16bit": "false", "experts_alone": "false"},
    "models.csv": {"attention": "full", "modality": "text"},
    "billing_rules.csv": {"state": "any", "confidence": "high"},
    "hosted_prices.csv": {"currency": "USD"},
}
_UNDATED = ("models.csv", "formats.csv")
"""Whole records, of which the user's is used whatever its date: it may be left out."""


class Base(Value, frozen=True, kw_only=True):
    """What own facts are laid over: the bundled book, and what it does not hold.

    ``columns`` are those of each bundled file; ``sellers`` the providers whose
    prices the user has.
    """

    book: FactBook
    columns: Mapping[str, tuple[str, ...]]
    providers: tuple[Provider, ...]
    memory_rules: Sequence[Row]
    sellers: frozenset[str] = frozenset()


class OwnEngine(Value, frozen=True, kw_only=True):
    """A user's engine file: as it reads, and as the engine that it describes."""

    place: str
    document: Mapping[str, object]
    engine: Engine


class OwnFacts(Value, frozen=True, kw_only=True):
    """Own rows by file and own engines, each valid by itself; those of the folder that wins come first."""

    rows: Mapping[str, tuple[OwnRow, ...]]
    engines: tuple[OwnEngine, ...]
    findings: tuple[Finding, ...]


def own_facts(
    tables: Sequence[OwnTable], documents: Sequence[tuple[str, Mapping[str, object]]], base: Base
) -> OwnFacts:
    """The own rows and engine documents (place and content) that can be used, and what is wrong with the others."""
    found: list[Finding] = []
    known = OwnKnown(base)
    kept: dict[str, tuple[OwnRow, ...]] = {}
    for name in NEEDED:
        columns = Columns(base.columns[name], NEEDED[name], DEFAULTS.get(name, {}))
        read = [row for table in tables if table.name == name for row in read_rows(table, columns, found)]
        completed = [_completed(name, row, known) for row in read]
        known.learn(name, completed)
        kept[name] = tuple(_valid(name, completed, known, found))
        known.settle(name, kept[name])
    engines = tuple(_engines(documents, known, found))
    return OwnFacts(rows=kept, engines=engines, findings=tuple(found))


class OwnKnown(Known):
    """What own rows may refer to: what the bundled files define, and the own rows read before."""

    def __init__(self, base: Base) -> None:
        self.book = base.book
        self.cards = {name: {} for name in base.book.accelerators}
        self.formats = set(base.book.formats)
        self.vendors = {card.vendor for card in base.book.accelerators.values()}
        self.sold_mib = {card.id: card.memory_sold_gb * GIB / MIB for card in base.book.accelerators.values()}
        self.seen_mib = {}
        self._names = {one.id: (one.id, *one.aliases) for one in base.providers}
        self.providers = {*self._names, *base.sellers}
        self.provider_ids = dict(base.book.provider_ids)
        self.names = Counter()
        rates = base.book.rates
        self.currencies = {rates.base, *rates.per_base}
        self.own_currencies = {one.currency for one in base.providers}
        self.today = None

    def learn(self, name: str, found: Sequence[OwnRow]) -> None:
        """Take note of names in ``found`` that must be unambiguous together."""
        if name == "providers.csv":
            own = {row.cells["id"]: _provider_names(row.cells) for row in reversed(found)}
            self.names = Counter(one for names in (self._names | own).values() for one in names)

    def settle(self, name: str, kept: Sequence[OwnRow]) -> None:
        """Take note of what the valid rows of a file define."""
        for row in kept:
            if name == "accelerators.csv":
                self.cards[row.cells["id"]] = row.cells
                self.vendors.add(row.cells["vendor"])
                self.sold_mib[row.cells["id"]] = as_float(row.cells["memory_sold_gb"]) * GIB / MIB
            elif name == "exchange_rates.csv":
                self.currencies.add(row.cells["currency"])
            elif name == "formats.csv":
                self.formats.add(row.cells["id"])
            elif name == "providers.csv":
                self.providers.add(row.cells["id"])
                self.provider_ids |= dict.fromkeys(_provider_names(row.cells), row.cells["id"])


def _provider_names(cells: Row) -> tuple[str, ...]:
    return (cells["id"], *filter(None, cells["aliases"].split("|")))


# ---------------------------------------------------------------- rows


def _completed(name: str, row: OwnRow, known: OwnKnown) -> OwnRow:
    """A row with what follows from its other cells, and its source marked as the user's own."""
    cells = dict(row.cells)
    derive = _DERIVED.get(name)
    derived = {column: value for column, value in (derive(cells) if derive else {}).items() if not cells[column]}
    cells |= derived
    if name == "billing_rules.csv":
        cells["provider"] = known.provider_ids.get(cells["provider"], cells["provider"])
    if "source" in cells:
        cells["source"] = own_source(cells["source"])
    return row._replace(cells=cells, filled=(*row.filled, *derived))


def _of_model(cells: Row) -> dict[str, str]:
    """All parameters are active, and all layers attend to everything, unless the row says otherwise."""
    layers = {"attn_layers_full": cells["layers"], "attn_layers_windowed": "0", "layers_linear_or_ssm": "0"}
    plain = cells["layers"] and cells["attention"] == "full"
    return {"params_active": cells["params_total"], **(layers if plain else {})}


_DERIVED: Mapping[str, Callable[[Row], dict[str, str]]] = {
    "models.csv": _of_model,
    "formats.csv": lambda cells: {"title": cells["id"]},
    "providers.csv": lambda cells: {"title": cells["id"]},
}

_MADE: Mapping[str, Callable[[Row], object]] = {
    "accelerators.csv": lambda cells: rows.accelerator(cells, {}),
    "accelerator_facts.csv": lambda cells: rows.fact([cells[column] for column in rows.FACT_COLUMNS]),
    "formats.csv": rows.weight_format,
    "models.csv": rows.model,
    "providers.csv": provider,
    "billing_rules.csv": rows.billing_rule,
    "exchange_rates.csv": lambda cells: rows.exchange_rates([cells]),
    "hosted_prices.csv": hosted_price,
}


def _valid(name: str, found: Sequence[OwnRow], known: OwnKnown, wrong: list[Finding]) -> Iterator[OwnRow]:
    """The rows without a fault; the faults of the others are added to ``wrong``."""
    seen: dict[tuple[object, ...], OwnRow] = {}
    for row in found:
        faults = list(_faults(name, row, known))
        key = (row.layer, *(row.cells[column] for column in KEYS[name]))
        first = seen.setdefault(key, row)
        if first is not row:
            same = f"a row unlike {first.place}:{first.line}"
            faults.append(Fault(Code.DUPLICATE, KEYS[name][0], row.cells[KEYS[name][0]], same, "remove one of them"))
        if faults:
            said = [fault for fault in faults if fault.column not in row.filled]
            wrong.extend(told(row, fault) for fault in said or faults)
        else:
            yield row


def _faults(name: str, row: OwnRow, known: OwnKnown) -> Iterator[Fault]:
    undated = name in _UNDATED
    found = [f for f in CHECKS[name](known)(row.cells) if not (undated and f.column == "seen_at" and not f.observed)]
    if name == "exchange_rates.csv":
        found += _rate_faults(row, known)
    yield from found
    if not found:
        yield from _unmade(name, row)


def _unmade(name: str, row: OwnRow) -> Iterator[Fault]:
    """What no check sees but the making of the record: the checks know the bundled files, users write others."""
    try:
        _MADE[name](row.cells)
    except (ValueError, ArithmeticError, LookupError) as problem:
        yield Fault(Code.BAD_VALUE, "row", str(problem), "cells as in the bundled file", "correct the row")


def _rate_faults(row: OwnRow, known: OwnKnown) -> Iterator[Fault]:
    """A rate must lead from a currency that the bundled rates know to another than their base."""
    rates, cells = known.book.rates, row.cells
    yield from member(cells, "base", sorted({rates.base, *rates.per_base}), "the currencies of the bundled rates")
    if cells["currency"] in {cells["base"], rates.base}:
        expected = f"another currency than {' and '.join(sorted({cells['base'], rates.base}))}"
        yield Fault(
            Code.BAD_VALUE, "currency", cells["currency"], expected, "swap base and currency and invert the rate"
        )


# ---------------------------------------------------------------- engines


def _engines(
    documents: Sequence[tuple[str, Mapping[str, object]]], known: OwnKnown, wrong: list[Finding]
) -> Iterator[OwnEngine]:
    twice = _of_one_id(documents)
    for place, document in documents:
        faults = [*engine_faults(place, document, formats=known.formats, vendors=known.vendors), *twice.get(place, ())]
        if faults:
            wrong.extend(faults)
        else:
            yield OwnEngine(place=place, document=document, engine=engine(document, place))


def _of_one_id(documents: Sequence[tuple[str, Mapping[str, object]]]) -> dict[str, list[Finding]]:
    """By place, files that say the id of an earlier one of their folder: one of another folder only stands behind."""
    folders: dict[str, list[tuple[str, object]]] = {}
    for place, document in documents:
        folders.setdefault(place.rpartition("/")[0], []).append((place, document.get("id")))
    found = [finding for engines in folders.values() for finding in same_ids(engines)]
    return {finding.subject.removesuffix(" id"): [finding] for finding in found}
