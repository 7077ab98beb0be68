"""A price list: what a line of text holds, as a row of the table and as an exact offer.

The columns are described in ``data/README.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.names import resolve_card
from rackrate.money import Money
from rackrate.offers.arrays import Place
from rackrate.offers.conflicts import DATE_IS_SURE
from rackrate.offers.offer import MachineShape, Offer, Term, is_bridged
from rackrate.offers.rows import OfferRow
from rackrate.units import GIB, parse_day
from rackrate.values import replace


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


class Reader:
    """Turns lines into rows; looks each machine, place and date up once."""

    def __init__(self, accelerators: Mapping[str, Accelerator], places: Mapping[tuple[str, str], Place]) -> None:
        self._accelerators = accelerators
        self._places = places
        self._machines: dict[tuple[str, ...], tuple[tuple[MachineShape, ...], int, float]] = {}
        self._found: dict[tuple[str, str], Place] = {}
        self._days: dict[str, int] = {}
        self._hosts: set[tuple[str, str]] = set()

    def row(self, line: Sequence[str]) -> OfferRow:
        """The columns' share of ``line``; unpacked by position, which is much faster than by name."""
        provider, name, product, label, memory, form, gpus, share, *host, region, market, price, currency = line[:14]
        term, hours, prepaid, terms, days, disk, excludes, flags, _, observed_on, observed_how, _, _ = line[14:]
        shapes, count, part = self.machine((label, memory, form, gpus, share))
        self._check_host(*host)
        return OfferRow(
            provider,
            name,
            product or f"{provider}/{name}",
            label,
            shapes,
            count,
            part,
            self.place(provider, region),
            market,
            currency,
            price_of(price),
            term,
            hours_of(hours),
            truth_of(prepaid),
            int(terms or 1),
            24.0 * int(days) if days else float("inf"),
            "interruptible" in flags,
            "commitment_unknown" in flags,
            "price_is_from" in flags,
            "host" in excludes,
            self.day(observed_on),
            observed_how in DATE_IS_SURE,
            float(disk) if disk else 0.0,
        )

    def machine(self, machine: tuple[str, ...]) -> tuple[tuple[MachineShape, ...], int, float]:
        """Shapes, number of cards and part of a card that (label, memory, form factor, count, share) say."""
        found = self._machines.get(machine)
        if found is None:
            label, memory, form, gpus, share = machine
            cards = resolve_card(label, self._accelerators, float(memory) if memory else None, form)
            count, part, bridged = count_of(gpus), share_of(share), is_bridged(form)
            shapes = tuple(MachineShape(accelerator=card, gpus=count, share=part, bridged=bridged) for card in cards)
            found = self._machines[machine] = (shapes, count, part)
        return found

    def place(self, provider: str, region: str) -> Place:
        """Where a region of a provider lies; several joined by bars are one place in all their countries."""
        found = self._found.get((provider, region))
        if found is None:
            parts = [self._places.get((provider, one)) or self._places.get(("*", one)) for one in region.split("|")]
            known = [part for part in parts if part is not None]
            countries = "|".join(dict.fromkeys(country for _, country, _ in known if country))
            groups = tuple(dict.fromkeys(group for _, _, those in known for group in those))
            found = self._found[provider, region] = (region, countries, groups)
        return found

    def _check_host(self, vcpus: str, memory_gb: str) -> None:
        """Refuse what the exact offer could not be made of."""
        if (vcpus, memory_gb) not in self._hosts:
            int(vcpus or 0), float(memory_gb or 0)
            self._hosts.add((vcpus, memory_gb))

    def day(self, text: str) -> int:
        """The ordinal of a day, which must be written as in 2026-11-30."""
        found = self._days.get(text)
        if found is None:
            found = self._days[text] = parse_day(text).toordinal()
        return found


def truth_of(text: str) -> bool:
    """Whether a text says ``true``."""
    if text not in {"true", "false"}:
        raise ValueError(f"neither true nor false: {text!r}")
    return text == "true"


def share_of(text: str) -> float:
    """The part of a card in a text such as ``1/8``; a whole card when empty."""
    part, _, whole = text.partition("/")
    share = float(part or 1) / float(whole or 1)
    if not 0 < share <= 1:
        raise ValueError(f"no part of one card: {text!r}")
    return share


def count_of(text: str) -> int:
    """A number of cards, of which there is at least one."""
    if int(text) < 1:
        raise ValueError(f"not one card or more: {text!r}")
    return int(text)


def price_of(text: str) -> float:
    """A price; none is infinite. What is no price above 0 stays in the table, as one that is not valid."""
    price = float(text)
    if math.isinf(price):
        raise ValueError(f"no price: {text!r}")
    return price


def hours_of(text: str) -> float:
    """The hours of a term, more than none."""
    hours = float(text)
    if not 0 < hours < float("inf"):
        raise ValueError(f"no hours of a term: {text!r}")
    return hours


def base_id(line: Sequence[str]) -> str:
    """What a line is called, as far as no other is called the same."""
    return f"{line[0]}/{line[1]}/{line[10] or '-'}/{line[11]}/{line[23]}"


def ids_of(lines: Sequence[Sequence[str]]) -> list[str]:
    """A name for each line that stays the same as long as lines are only appended."""
    seen: dict[str, int] = {}
    ids = []
    for line in lines:
        base = base_id(line)
        seen[base] = seen.get(base, 0) + 1
        ids.append(base if seen[base] == 1 else f"{base}~{seen[base]}")
    return ids


def offer_of(line: Sequence[str], row: OfferRow, name: str, accelerators: Mapping[str, Accelerator]) -> Offer:
    """The exact offer of ``line``, called ``name``, with what its gates say."""
    from rackrate.offers.gates import row_findings  # only what is shown is judged

    record = Record(*line)
    flags = _words(record.flags)
    offer = Offer(
        id=name,
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
        observed_on=parse_day(record.observed_on),
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
