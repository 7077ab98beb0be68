"""The screen of ``gpu``: one fact card, or several cards side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from rackrate.cli import gpu_parts, words
from rackrate.cli.gpu_words import RESULTS, SIZES, VERDICTS, WORKS
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.numbers import money, small_money
from rackrate.cli.sections import warnings
from rackrate.units import MIB

if TYPE_CHECKING:
    from rackrate.app.wire.gpus import GpuDoc, GpuDocument, PriceDoc
    from rackrate.app.wire.parts import FactDoc

_SIDE_BY_SIDE_MOST = 4


def table(document: GpuDocument, *, for_people: bool = False) -> Table:
    """A row for each card (several cards) or each fact (one card): numbers for machines, words for people."""
    if len(document.gpus) == 1:
        return _fact_table(document.gpus[0])
    if for_people:
        names = tuple(name for name, _ in _ALL_ROWS)
        rows = tuple(tuple(of(gpu) for _, of in _ALL_ROWS) for gpu in document.gpus)
        return Table(keys=names, titles=names, rows=rows)
    keys = (*_PLAIN_KEYS, *_QUANTITIES.values(), *_PRICE_KEYS, *_LARGEST_KEYS, *RESULTS)
    return Table(keys=keys, titles=keys, rows=tuple(_plain_row(gpu) for gpu in document.gpus))


_PLAIN_KEYS = (
    *("id", "vendor", "product", "architecture", "compute_capability", "form_factor", "memory_type", "memory_sold_gb"),
    *("ecc", "rt_cores", "mig_instances", "nvswitch", "launch_year"),
)
_LARGEST_KEYS = tuple(
    f"largest_{name}" for name in ("inference_16bit", "inference_4bit", "lora", "qlora", "full_finetune")
)
_PRICE_KEYS = ("per_gpu_hour", "per_gb_hour_as_sold", "currency", "provider", "market", "observed_at")


def _plain_row(gpu: GpuDoc) -> tuple[str, ...]:
    """The facts of a card in base units and its cheapest price; what is not known stays empty."""
    facts = (_fact(gpu, quantity) for quantity in _QUANTITIES.values())
    price = gpu.prices[0] if gpu.prices else None
    return (
        *(_plain(getattr(gpu, key)) for key in _PLAIN_KEYS),
        *("" if fact is None else f"{fact.value:.15g}" for fact in facts),
        *("" if price is None else str(getattr(price, key)) for key in _PRICE_KEYS),
        *(_largest(gpu, place) for place in range(len(_LARGEST_KEYS))),
        *(next((r.cost or "" for r in gpu.results if r.result == name), "") for name in RESULTS),
    )


def _largest(gpu: GpuDoc, place: int) -> str:
    held = gpu.sizes[place].largest if gpu.sizes else None
    return "" if held is None else held.model


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def screen(document: GpuDocument) -> Iterator[Part]:
    """One fact card, or a column for each card, or a short list of all."""
    if len(document.gpus) == 1:
        yield from _card(document)
    elif len(document.gpus) <= _SIDE_BY_SIDE_MOST:
        yield drawn(_columns(document.gpus))
        if document.reference:
            yield ""
            yield "In brackets: share of the first card's number. Measured figures and costs are of one card."
            yield gpu_parts.reference_line(document.reference)
        yield from _notes(document.gpus)
    else:
        yield drawn(_listing(document.gpus))
    if document.warnings:
        yield ""
        yield from warnings(document.warnings)
    yield f"Prices as of {document.as_of}; facts {document.facts_digest[:12]}, rackrate {document.rackrate_version}."


def _fact(gpu: GpuDoc, quantity: str) -> FactDoc | None:
    return next((f for f in gpu.facts if f.quantity == quantity), None)


def _rate(quantity: str, scale: float, unit: str) -> Callable[[GpuDoc], str]:
    def value(gpu: GpuDoc) -> str:
        fact = _fact(gpu, quantity)
        if fact is not None:
            return f"{fact.value / scale:,.4g} {unit}"
        return "none" if any(quantity.startswith(f"peak_{name}_") for name in gpu.lacks) else "unknown"

    return value


def _memory(gpu: GpuDoc) -> str:
    if gpu.memory_total_bytes is None:
        return "unknown"
    fact = _fact(gpu, "memory_total_bytes")
    derived = " (derived)" if fact is not None and fact.kind == "derived" else ""
    return f"{gpu.memory_total_bytes / MIB:,.0f} MiB{derived}"


def _price(of: Callable[[PriceDoc], str]) -> Callable[[GpuDoc], str]:
    def value(gpu: GpuDoc) -> str:
        for price in gpu.prices:
            return f"{money(of(price))} {price.currency} ({price.provider}, {words.word(words.MARKETS, price.market)})"
        return "no offer"

    return value


def _on_demand(of: Callable[[PriceDoc], str]) -> Callable[[GpuDoc], str]:
    """A number of the offer that results are priced by: the cheapest by the hour that nobody takes away."""

    def value(gpu: GpuDoc) -> str:
        used = {result.offer_id for result in gpu.results}
        price = next((price for price in gpu.prices if price.offer_id in used), None)
        return f"{money(of(price))} {price.currency}" if price else "no offer"

    return value


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _ecc(gpu: GpuDoc) -> str:
    """Whether memory corrects errors, how the card comes, and what that takes where it takes any."""
    takes = " (takes 1/16 of GDDR memory)" if gpu.memory_type.startswith("GDDR") else ""
    default = f", {gpu.ecc_default} by default{takes}" if gpu.ecc and gpu.ecc_default else ""
    return f"{_yes(gpu.ecc)}{default}{_recalled(gpu, 'ecc')}"


def _video(gpu: GpuDoc) -> str:
    encoders, decoders = _fact(gpu, "video_encoders"), _fact(gpu, "video_decoders")
    if encoders is None or decoders is None:
        return "unknown"
    return (
        f"{encoders.value:g} encoders, {decoders.value:g} decoders"
        if encoders.value
        else f"{decoders.value:g} decoders, no encoder"
    )


def _recalled(gpu: GpuDoc, key: str) -> str:
    return ", as recalled" if key in gpu.recalled else ""


def _fp16(gpu: GpuDoc) -> str:
    """The rate with FP32 accumulation, and that with FP16 accumulation where it is another."""
    faster = _fact(gpu, "peak_fp16_acc16_flop_per_s")
    own = _fact(gpu, "peak_fp16_flop_per_s")
    more = faster is not None and own is not None and faster.value > own.value
    said = _rate("peak_fp16_flop_per_s", 1e12, "TFLOPS")(gpu)
    return f"{said}, {faster.value / 1e12:,.4g} with FP16 sums" if more and faster is not None else said


_QUANTITIES = {
    "driver reports": "memory_total_bytes",
    "bandwidth": "bandwidth_bytes_per_s",
    "FP64": "peak_fp64_flop_per_s",
    "FP32": "peak_fp32_flop_per_s",
    "TF32 dense": "peak_tf32_flop_per_s",
    "FP16 dense": "peak_fp16_flop_per_s",
    "BF16 dense": "peak_bf16_flop_per_s",
    "FP8 dense": "peak_fp8_flop_per_s",
    "FP4 dense": "peak_fp4_flop_per_s",
    "INT8 dense": "peak_int8_flop_per_s",
    "power limit": "power_limit_w",
    "direct link": "nvlink_bytes_per_s_one_way",
}

Rows = tuple[tuple[str, Callable[["GpuDoc"], str]], ...]

_ROWS: Rows = (
    ("id", lambda g: g.id),
    ("product", lambda g: g.product),
    (
        "architecture",
        lambda g: f"{g.architecture} ({g.compute_capability})" if g.compute_capability else g.architecture,
    ),
    ("form factor", lambda g: g.form_factor),
    ("as sold", lambda g: f"{g.memory_sold_gb:g} GB {g.memory_type}"),
    ("driver reports", _memory),
    ("ECC", _ecc),
    ("bandwidth", _rate("bandwidth_bytes_per_s", 1e9, "GB/s")),
    ("FP64", _rate("peak_fp64_flop_per_s", 1e12, "TFLOPS")),
    ("FP32", _rate("peak_fp32_flop_per_s", 1e12, "TFLOPS")),
    ("TF32 dense", _rate("peak_tf32_flop_per_s", 1e12, "TFLOPS")),
    ("FP16 dense", _fp16),
    ("BF16 dense", _rate("peak_bf16_flop_per_s", 1e12, "TFLOPS")),
    ("FP8 dense", _rate("peak_fp8_flop_per_s", 1e12, "TFLOPS")),
    ("FP4 dense", _rate("peak_fp4_flop_per_s", 1e12, "TFLOPS")),
    ("INT8 dense", _rate("peak_int8_flop_per_s", 1e12, "TOPS")),
    ("video engines", _video),
    ("RT cores", lambda g: "unknown" if g.rt_cores is None else str(g.rt_cores or "none")),
    ("power limit", _rate("power_limit_w", 1, "W")),
    ("cooling", lambda g: f"{g.cooling or 'unknown'}{_recalled(g, 'cooling')}"),
    ("direct link", lambda g: g.nvlink),
    ("a pair is", lambda g: g.pair),
    ("MIG slices", lambda g: str(g.mig_instances or "none")),
)

_PRICE_ROWS: Rows = (
    ("cheapest, card-hour", _price(lambda p: p.per_gpu_hour)),
    ("per GB-hour as sold", _price(lambda p: p.per_gb_hour_as_sold)),
    ("on demand, card-hour", _on_demand(lambda p: p.per_gpu_hour)),
    ("on demand, GB-hour as sold", _on_demand(lambda p: p.per_gb_hour_as_sold)),
)


def _cost(result: str, gpu: GpuDoc) -> str:
    return next((gpu_parts.cost_text(r) for r in gpu.results if r.result == result), "unknown")


_WORK_ROWS: Rows = (
    ("BF16 product reached", gpu_parts.best_product),
    ("rendering score", gpu_parts.best_render),
    *((f"{name}, one card", partial(gpu_parts.largest, place)) for place, name in enumerate(SIZES)),
    *((name, partial(_cost, result)) for result, name in RESULTS.items()),
)
_ALL_ROWS: Rows = (*_ROWS, *_PRICE_ROWS, *_WORK_ROWS)

_RATIOS = {
    **{name: quantity for name, quantity in _QUANTITIES.items() if name != "direct link"},
    "as sold": "memory_sold_gb",
    "direct link": "nvlink_bytes_per_s_one_way",
    "on demand, card-hour": "per_gpu_hour",
    "on demand, GB-hour as sold": "per_gb_hour",
    **{name: result for result, name in RESULTS.items()},
}


def _columns(gpus: list[GpuDoc]) -> Table:
    """A row for each number, with its share of the first card's; then the work for which the cards differ."""
    rows = [
        (name, *(value(gpu) + _share(name, gpu) for gpu in gpus))
        for name, value in (*_ROWS[1:], *_PRICE_ROWS, *_WORK_ROWS)
    ]
    rows += [(WORKS[work], *(_suited(work, gpu) for gpu in gpus)) for work in _differing(gpus)]
    return Table(keys=("fact", *(g.id for g in gpus)), titles=("", *(g.id for g in gpus)), rows=tuple(rows))


def _share(name: str, gpu: GpuDoc) -> str:
    """The share of the first card's number, for the cards after it that have another."""
    quantity = _RATIOS.get(name, "")
    ratio = next((r.ratio for r in gpu.ratios if r.quantity == quantity), None)
    return "" if ratio is None or ratio == 1 else f" ({gpu_parts.per_cent(ratio)})"


def _differing(gpus: list[GpuDoc]) -> list[str]:
    """The work that some of the cards suit and others do not."""
    verdicts = [{suit.work: suit.verdict for suit in gpu.suits} for gpu in gpus]
    return [work for work in verdicts[0] if len({found.get(work) for found in verdicts}) > 1]


def _suited(work: str, gpu: GpuDoc) -> str:
    suit = next(suit for suit in gpu.suits if suit.work == work)
    return f"{VERDICTS[suit.verdict].removesuffix(' for').lower()}: {gpu_parts.because(suit)}"


def _listing(gpus: list[GpuDoc]) -> Table:
    rows = tuple(
        (
            g.id,
            g.product,
            f"{g.memory_sold_gb:g}",
            _rate("bandwidth_bytes_per_s", 1e9, "")(g).strip(),
            small_money(g.prices[0].per_gpu_hour) if g.prices else "-",
        )
        for g in gpus
    )
    currency = next((price.currency for g in gpus for price in g.prices), "price")
    titles = ("id", "product", "GB as sold", "GB/s", f"from {currency}/h")
    return Table(keys=titles, titles=titles, rows=rows, right=frozenset({2, 3, 4}))


def _card(document: GpuDocument) -> Iterator[Part]:
    gpu = document.gpus[0]
    yield f"{gpu.id}: {gpu.vendor} {gpu.product}"
    yield ""
    shown = [_fact(gpu, quantity) for quantity in _QUANTITIES.values()]
    sources = list(dict.fromkeys(fact.source for fact in shown if fact is not None))
    yield pairs([(f"  {name}", _with_source(value(gpu), gpu, name, sources)) for name, value in _ROWS[2:]])
    yield ""
    yield from gpu_parts.suits(gpu)
    yield from gpu_parts.sizes(gpu)
    yield from _offers(gpu)
    yield ""
    yield from gpu_parts.results(gpu, document.reference)
    yield from gpu_parts.measured(gpu)
    yield from gpu_parts.renders(gpu)
    yield from gpu_parts.slices(gpu)
    yield from gpu_parts.variants(gpu)
    yield from gpu_parts.meanings()
    yield from _notes([gpu])
    yield pairs([(f"  [{n}]", text) for n, text in enumerate(sources, start=1)])
    yield "Every fact with its unit, kind, condition and source: --csv, --md or --json."


def _with_source(text: str, gpu: GpuDoc, row: str, sources: list[str]) -> str:
    """The number of a row, how it is known when it was not published, and the number of its source."""
    fact = _fact(gpu, _QUANTITIES.get(row, ""))
    if fact is None:
        return text
    said = fact.kind == "published" or text.endswith(f"({fact.kind})")
    condition = f" ({fact.condition})" if fact.condition else ""
    return f"{text}{condition}{'' if said else f', {fact.kind}'} [{sources.index(fact.source) + 1}]"


def _offers(gpu: GpuDoc) -> Iterator[Part]:
    if not gpu.prices:
        yield "No offer of this card in the catalogue."
        yield ""
        return
    rows = tuple(
        (
            words.word(words.MARKETS, p.market),
            p.provider,
            p.offer,
            small_money(p.per_gpu_hour),
            small_money(p.per_gb_hour_as_sold),
            p.observed_at,
        )
        for p in gpu.prices
    )
    heads = ("cheapest in", "provider", "offer", f"{gpu.prices[0].currency}/card-h", "/GB-h as sold", "seen")
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({3, 4})))


def _notes(gpus: list[GpuDoc]) -> Iterator[Part]:
    """What each card cannot do and how its rates are meant; a note that several cards share is said once."""
    by_note: dict[str, list[str]] = {}
    for gpu in gpus:
        for note in gpu.notes:
            by_note.setdefault(note, []).append(gpu.id)
    if by_note:
        yield ""
        whose = {note: f"{', '.join(ids)}: " if len(gpus) > 1 else "" for note, ids in by_note.items()}
        yield pairs([("  -", f"{cards}{note}") for note, cards in whose.items()], style=PLAIN)
    yield ""


def _fact_table(gpu: GpuDoc) -> Table:
    rows = tuple((f.quantity, f"{f.value:.15g}", f.unit, f.kind, f.condition, f.source, f.note) for f in gpu.facts)
    heads = ("quantity", "value", "unit", "kind", "condition", "source", "note")
    return Table(keys=heads, titles=heads, rows=rows, right=frozenset({1}))
