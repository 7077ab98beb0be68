"""The use case ``gpu``: fact cards with sources, what cards suit and hold, and what they and their results cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from rackrate.app.cheapest import Cheap, cheapest_by_market
from rackrate.app.context import Context, context
from rackrate.app.documents import finding_docs, header
from rackrate.app.wire.gpus import GpuDoc, GpuDocument, PriceDoc, RatioDoc
from rackrate.app.wire.parts import FactDoc
from rackrate.evidence import Fact
from rackrate.facts.accelerator import Accelerator, Interconnect
from rackrate.facts.names import resolve_card
from rackrate.facts.suits import lacks
from rackrate.money import Money, currency_code
from rackrate.offers.offer import Offer
from rackrate.plan.cheapest import ON_DEMAND
from rackrate.problems import Code, Finding, Refused
from rackrate.values import replace


def gpu(cards: str | Sequence[str] = (), *, currency: str = "USD", at: date | None = None) -> GpuDocument:
    """Fact cards of ``cards`` (one or several ids or names; all known cards when empty), prices in ``currency``.

    Raises:
        Refused: a name is unknown or can mean several cards, or the currency has no rate.

    >>> from rackrate import api
    >>> [card.memory_sold_gb for card in api.gpu(["a100-pcie-40", "a40"]).gpus]
    [40.0, 48.0]
    """
    here = context(at)
    cards = (cards,) if isinstance(cards, str) else cards
    currency = currency_code(currency)
    _check_currency(currency, here)
    found = [here.book.accelerators[i] for i in _ids(cards, here)]
    gpus = []
    for card in found:
        cheapest = cheapest_by_market(_rentable(card, here), here, currency)
        gpus.append((_doc(card, cheapest), card, cheapest))
    if not cards:
        whole = [doc for doc, _, _ in gpus]
        return GpuDocument(**header("gpu", here), gpus=whole, reference=[], warnings=finding_docs(here.findings))
    return _in_full(gpus, here, currency)


def _in_full(gpus: Sequence[tuple[GpuDoc, Accelerator, Sequence[Cheap]]], here: Context, currency: str) -> GpuDocument:
    """The cards that were asked for, with what they reached, hold, suit and cost per result."""
    from rackrate.app.card_documents import measured_docs, render_docs, slice_docs, suit_docs, variants_of
    from rackrate.app.card_work import Works
    from rackrate.facts import bundled

    works, figures, profiles = Works(here), bundled.baselines(), bundled.mig_profiles()
    renders = bundled.render_scores()
    rows = bundled.table("accelerator_facts.csv")
    full: list[GpuDoc] = []
    for doc, card, cheapest in gpus:
        priced = next((cheap for cheap in cheapest if cheap.offer.market in ON_DEMAND), None)
        whole = replace(
            doc,
            measured=measured_docs(card, figures),
            renders=render_docs(card, gpus[0][1], renders),
            slices=slice_docs(card, profiles),
            suits=suit_docs(card),
            sizes=works.sizes(card),
            results=works.results(card, priced, currency),
            variants=[_fact_doc(name, fact) for name, fact in variants_of(card, rows)],
        )
        full.append(replace(whole, ratios=_ratios(whole, full[0]) if full else []))
    told = finding_docs(here.findings)
    return GpuDocument(**header("gpu", here), gpus=full, reference=works.references(), warnings=told)


def _ratios(gpu: GpuDoc, first: GpuDoc) -> list[RatioDoc]:
    """The numbers of a card over those of the first: what both have."""
    mine, firsts = _numbers(gpu), _numbers(first)
    return [RatioDoc(quantity=name, ratio=value / firsts[name]) for name, value in mine.items() if firsts.get(name)]


def _numbers(gpu: GpuDoc) -> dict[str, float]:
    """Everything of a card that can be compared, by name."""
    facts = {fact.quantity: fact.value for fact in gpu.facts}
    demand = next((price for price in gpu.prices if price.market in ON_DEMAND), None)
    prices = {} if demand is None else {"per_gpu_hour": demand.per_gpu_hour, "per_gb_hour": demand.per_gb_hour_as_sold}
    costs = {result.result: result.cost for result in gpu.results if result.cost}
    return {
        "memory_sold_gb": gpu.memory_sold_gb,
        **facts,
        **{name: float(amount) for name, amount in {**prices, **costs}.items()},
    }


def _rentable(card: Accelerator, here: Context) -> tuple[Offer, ...]:
    """Current offers that are surely this card, priced in full and without a commitment of unstated length."""
    table = here.catalog.table
    current = table.surely(card.id) & table.priced & ~table.superseded
    return table.records(current & ~table.commitment_unknown & ~table.price_is_from & ~table.excludes_host)


def _ids(cards: Sequence[str], here: Context) -> list[str]:
    known = here.book.accelerators
    if not cards:
        return list(known)
    found, problems = [], []
    for text in cards:
        ids = resolve_card(text, known)
        if len(ids) == 1:
            found.append(ids[0])
        else:
            problems.append(_unclear(text, ids, known))
    if problems:
        raise Refused(problems)
    return list(dict.fromkeys(found))


def _unclear(text: str, ids: Sequence[str], known: Mapping[str, Accelerator]) -> Finding:
    if ids:
        action = f"say which: {', '.join(ids)}"
        return Finding(code=Code.AMBIGUOUS_CARD, subject="card", observed=repr(text), action=action)
    from rackrate.facts.loose_names import suggest_cards

    close = suggest_cards(text, known)
    action = f"did you mean {', '.join(close)}? " if close else ""
    return Finding(
        code=Code.UNKNOWN_NAME, subject="card", observed=repr(text), action=f"{action}`rackrate gpu` lists all cards"
    )


def _check_currency(currency: str, here: Context) -> None:
    rates = here.book.rates
    if not rates.knows(currency):
        expected = ", ".join(sorted({rates.base, *rates.per_base}))
        action = "choose a currency with a known rate"
        raise Refused(
            [Finding(code=Code.BAD_VALUE, subject="--currency", observed=currency, expected=expected, action=action)]
        )


def _doc(card: Accelerator, cheapest: Iterable[Cheap]) -> GpuDoc:
    total = card.facts.get("memory_total_bytes")
    capability = card.compute_capability
    return GpuDoc(
        id=card.id,
        vendor=card.vendor,
        product=card.product,
        architecture=card.architecture,
        form_factor=card.form_factor,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else "",
        launch_year=card.launch_year,
        memory_type=card.memory_type,
        memory_sold_gb=card.memory_sold_gb,
        memory_total_bytes=total.value if total else None,
        ecc=card.ecc,
        ecc_default=card.ecc_default,
        cooling=card.cooling,
        nvlink=_nvlink(card),
        nvswitch=card.nvswitch,
        mig_instances=card.mig_instances,
        rt_cores=card.rt_cores,
        sparsity_2_4=card.sparsity_2_4,
        modified=card.modified,
        recalled=sorted(card.recalled),
        pair=_pair(card),
        lacks=list(lacks(card)),
        notes=_notes(card),
        facts=[_fact_doc(name, fact) for name, fact in sorted(card.facts.items())],
        prices=[_price_doc(card, cheap) for cheap in cheapest],
        measured=[],
        renders=[],
        slices=[],
        suits=[],
        sizes=[],
        results=[],
        ratios=[],
        variants=[],
    )


def _fact_doc(name: str, fact: Fact) -> FactDoc:
    return FactDoc(
        quantity=name,
        value=fact.value,
        unit=fact.unit,
        condition=fact.condition,
        kind=str(fact.kind),
        source=fact.source,
        note=fact.note,
    )


def _nvlink(card: Accelerator) -> str:
    fact = card.facts.get("nvlink_bytes_per_s_one_way")
    if fact is None or not fact.value:
        return "none"
    each_way = f"{fact.value / 1e9:g} GB/s each way"
    bridge = f"bridge of up to {card.nvlink_bridge_max_gpus}" if card.nvlink_bridge_max_gpus else "no switch"
    name = f"NVLink {card.nvlink_version}" if card.nvlink_version[:1].isdigit() else card.nvlink_version
    return f"{name}, {each_way}, {'switched' if card.nvswitch else bridge}"


def _pair(card: Accelerator) -> str:
    """What two of these cards are: never one larger card."""
    link = {
        Interconnect.NVSWITCH: "NVSwitch",
        Interconnect.NVLINK_BRIDGE: "an NVLink bridge",
        Interconnect.PCIE: "PCIe",
    }.get(card.interconnect(2), "the vendor's link")
    return f"two devices over {link}"


def _notes(card: Accelerator) -> list[str]:
    """What the card cannot do, and how its rates are meant."""
    notes = (
        ["tensor rates are dense; 2:4 sparsity doubles the peak for pruned models only"] if card.sparsity_2_4 else []
    )
    if "fp8" in lacks(card):
        notes.append("no FP8 compute; FP8 weights run as weight-only where the engine can")
    if card.modified:
        notes.append("third-party memory modification, not a vendor product")
    return [*notes, *([card.notes] if card.notes else [])]


def _price_doc(card: Accelerator, cheap: Cheap) -> PriceDoc:
    sold = Decimal(repr(card.memory_sold_gb))
    offer, per_card = cheap
    return PriceDoc(
        market=offer.market,
        provider=offer.provider,
        offer=offer.name,
        offer_id=offer.id,
        gpus=offer.gpus,
        per_gpu_hour=str(per_card.rounded(6).amount),
        per_gb_hour_as_sold=str(Money(per_card.amount / sold, per_card.currency).rounded(6).amount),
        currency=per_card.currency,
        observed_at=offer.observed_on.isoformat(),
    )
