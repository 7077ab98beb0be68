"""The door to the bundled price list: CSV in, an offer table and its findings out.

The files and their columns are described in ``data/README.md``. Only what the
columns need is read at once; an exact record is made when it is asked for.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.book import FactBook
from rackrate.facts.names import resolve_card
from rackrate.money import Money
from rackrate.offers.conflicts import DATE_IS_SURE
from rackrate.offers.offer import MachineShape, Offer, Term, is_bridged
from rackrate.offers.table import OfferRow, OfferTable, Place
from rackrate.problems import Code, Finding
from rackrate.units import GIB
from rackrate.values import Value, replace

if TYPE_CHECKING:
    from rackrate.offers.own import OwnLine, OwnPrices
    from rackrate.offers.own_standing import Standing

DATA = Path(__file__).parent / "data"


class Record(NamedTuple):
    """One line of a price list, as text; the fields are its columns."""

    provider: str
    name: str
    product: str
    card_label: str
    memory_gb: str
    form_factor: str
    gpus: str
    share: str
    vcpus: str
    host_memory_gb: str
    region: str
    market: str
    price: str
    currency: str
    term: str
    hours_in_term: str
    prepaid: str
    minimum_terms: str
    validity_days: str
    includes_disk_gb: str
    excludes: str
    flags: str
    doubts: str
    observed_on: str
    observed_how: str
    source: str
    note: str


class Catalog(Value, frozen=True, kw_only=True):
    """A price list: the table, the lines that could not be read, and the SHA-256 of the files in hex.

    ``own`` says what became of each of a user's own prices.
    """

    table: OfferTable
    findings: tuple[Finding, ...]
    digest: str
    own: tuple[Standing, ...] = ()


_OBSERVED_ON = -4
_FOR_EVER = "9999-12-31"


def load(book: FactBook, *, at: date | None = None, data: Path = DATA, own: OwnPrices | None = None) -> Catalog:
    """The price lists in ``data``, with cards and billing rules of ``book``, and a user's ``own`` prices over them.

    ``at`` is the day whose billing rules count and after which nothing was seen
    yet (None: the latest of each). A line that cannot be read becomes a finding
    and never sinks the rest.
    """
    reader = _Reader(book.accelerators, _places(data, own))
    last = at.isoformat() if at is not None else _FOR_EVER
    digest = hashlib.sha256((data / "regions.csv").read_bytes())
    lines: list[list[str]] = []
    rows: list[OfferRow] = []
    findings: list[Finding] = []
    for path in sorted(data.glob("offers-*.csv")):
        content = path.read_bytes()
        digest.update(content)
        for number, line in _lines(path.name, content, findings):
            if len(line) > -_OBSERVED_ON and line[_OBSERVED_ON] > last:
                continue  # nobody had seen it on the day of the question
            try:
                rows.append(reader.row(line))
                lines.append(line)
            except (ValueError, ArithmeticError) as problem:
                findings.append(_unreadable(f"{path.name}:{number}", problem))
    ours = [line for line in _own_lines(own, book, lines) if line.cells[_OBSERVED_ON] <= last] if own else []
    rows.extend(reader.row(line.cells) for line in ours)
    lines.extend(line.cells for line in ours)
    make = partial(_offer, lines, rows, _ids(lines), book.accelerators)
    table = OfferTable.from_rows(rows, make, book.rules_of, at=at)
    found = Catalog(table=table, findings=tuple(findings), digest=digest.hexdigest())
    return _with_own(found, ours, rows) if ours else found


def regions(data: Path = DATA) -> int:
    """How many places are described."""
    return len(_places(data))


def _own_lines(own: OwnPrices, book: FactBook, listed: Sequence[Sequence[str]]) -> list[OwnLine]:
    from rackrate.offers.own import completed  # few have prices of their own

    return completed(own, listed, Record._fields, book)


def _with_own(found: Catalog, ours: Sequence[OwnLine], rows: Sequence[OfferRow]) -> Catalog:
    from rackrate.offers.own_standing import settled

    table, standings = settled(found.table, ours, [row.dated for row in rows])
    return replace(found, table=table, own=standings)


def _lines(name: str, content: bytes, findings: list[Finding]) -> Iterator[tuple[int, list[str]]]:
    """Each line under the header with its place in the file; nothing, and a finding, if the header is another."""
    lines = csv.reader(content.decode("utf-8").split("\n"))  # no field holds a newline
    header = next(lines, [])
    if tuple(header) != Record._fields:
        expected, seen = ", ".join(Record._fields), ", ".join(header)
        findings.append(Finding(code=Code.BAD_SYNTAX, subject=f"{name}:1", observed=seen, expected=expected))
        return
    for line in lines:
        if line:
            yield lines.line_num, line


def _places(data: Path, own: OwnPrices | None = None) -> dict[tuple[str, str], Place]:
    """Country and groups of each (provider, region); the provider ``*`` stands for any, an own place for a bundled."""
    with (data / "regions.csv").open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        places = {
            (provider, region): (region, country, tuple(groups.split("|")))
            for provider, region, country, groups in lines
        }
    return places | own.places if own else places


class _Reader:
    """Turns lines into rows; looks each machine, place and date up once."""

    def __init__(self, accelerators: Mapping[str, Accelerator], places: Mapping[tuple[str, str], Place]) -> None:
        self._accelerators = accelerators
        self._places = places
        self._machines: dict[tuple[str, ...], tuple[tuple[MachineShape, ...], int, float]] = {}
        self._found: dict[tuple[str, str], Place] = {}
        self._days: dict[str, int] = {}

    def row(self, line: Sequence[str]) -> OfferRow:
        """The columns' share of ``line``; unpacked by position, which is much faster than by name."""
        provider, name, product, label, memory, form, gpus, share, _, _, region, market, price, currency, *rest = line
        term, hours, prepaid, terms, days, disk, excludes, flags, _, observed_on, observed_how, _, _ = rest
        machine = (label, memory, form, gpus, share)
        shapes, count, part = self._machines.get(machine) or self._machine(machine)
        return OfferRow(
            provider,
            name,
            product or f"{provider}/{name}",
            label,
            shapes,
            count,
            part,
            self._found.get((provider, region)) or self._place(provider, region),
            market,
            currency,
            float(price),
            term,
            float(hours),
            _truth(prepaid),
            int(terms or 1),
            24.0 * int(days) if days else float("inf"),
            "interruptible" in flags,
            "commitment_unknown" in flags,
            "price_is_from" in flags,
            "host" in excludes,
            self._days.get(observed_on) or self._day(observed_on),
            observed_how in DATE_IS_SURE,
            float(disk) if disk else 0.0,
        )

    def _machine(self, machine: tuple[str, ...]) -> tuple[tuple[MachineShape, ...], int, float]:
        label, memory, form, gpus, share = machine
        cards = resolve_card(label, self._accelerators, float(memory) if memory else None, form)
        count, part = int(gpus), _share(share)
        bridged = is_bridged(form)
        shapes = tuple(MachineShape(accelerator=card, gpus=count, share=part, bridged=bridged) for card in cards)
        self._machines[machine] = (shapes, count, part)
        return self._machines[machine]

    def _place(self, provider: str, region: str) -> Place:
        parts = [self._places.get((provider, one)) or self._places.get(("*", one)) for one in region.split("|")]
        known = [part for part in parts if part is not None]
        countries = "|".join(dict.fromkeys(country for _, country, _ in known if country))
        groups = tuple(dict.fromkeys(group for _, _, those in known for group in those))
        self._found[provider, region] = (region, countries, groups)
        return self._found[provider, region]

    def _day(self, text: str) -> int:
        self._days[text] = date.fromisoformat(text).toordinal()
        return self._days[text]


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"neither true nor false: {text!r}")
    return text == "true"


def _share(text: str) -> float:
    """The part of a card in a text such as ``1/8``; a whole card when empty."""
    part, _, whole = text.partition("/")
    return float(part or 1) / float(whole or 1)


def _ids(lines: Sequence[Sequence[str]]) -> list[str]:
    """A name for each line that stays the same as long as lines are only appended."""
    seen: dict[str, int] = {}
    ids = []
    for line in lines:
        base = f"{line[0]}/{line[1]}/{line[10] or '-'}/{line[11]}/{line[23]}"
        seen[base] = seen.get(base, 0) + 1
        ids.append(base if seen[base] == 1 else f"{base}~{seen[base]}")
    return ids


def _offer(
    lines: Sequence[Sequence[str]],
    rows: Sequence[OfferRow],
    ids: Sequence[str],
    accelerators: Mapping[str, Accelerator],
    index: int,
) -> Offer:
    """The exact offer of line ``index`` with what its gates say."""
    from rackrate.offers.gates import row_findings  # only what is shown is judged

    record, row = Record(*lines[index]), rows[index]
    flags = _words(record.flags)
    offer = Offer(
        id=ids[index],
        provider=record.provider,
        name=record.name,
        product=row.product,
        card_label=record.card_label,
        cards=tuple(shape.accelerator for shape in row.shapes),
        gpus=row.gpus,
        share=row.share,
        memory_sold_gb=float(record.memory_gb) if record.memory_gb else None,
        form_factor=record.form_factor,
        region=record.region,
        country=row.place[1],
        region_groups=row.place[2],
        market=record.market,
        price=Money(Decimal(record.price), record.currency),
        term=Term(unit=record.term, hours=Decimal(record.hours_in_term), prepaid=row.prepaid),
        minimum_terms=row.minimum_terms,
        validity_days=int(record.validity_days) if record.validity_days else None,
        observed_on=date.fromisoformat(record.observed_on),
        observed_how=record.observed_how,
        source=record.source,
        vcpus=int(record.vcpus) if record.vcpus else None,
        host_memory_bytes=float(record.host_memory_gb) * GIB if record.host_memory_gb else None,
        includes_disk_gb=Decimal(record.includes_disk_gb or 0),
        interruptible=row.interruptible,
        commitment_unknown=row.commitment_unknown,
        price_is_from="price_is_from" in flags,
        virtual_gpu="virtual_gpu" in flags,
        own="own" in flags,
        negotiated="negotiated" in flags,
        excludes=_words(record.excludes),
        doubts=_words(record.doubts),
        note=record.note,
    )
    return replace(offer, findings=row_findings(offer, accelerators))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()


def _unreadable(subject: str, problem: Exception) -> Finding:
    return Finding(
        code=Code.BAD_VALUE,
        subject=subject,
        observed=str(problem),
        expected="a line as data/README.md describes",
        action="correct the line",
    )
