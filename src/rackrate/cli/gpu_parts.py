"""Parts of the screen of ``gpu`` beyond facts: measurements, slices, suited work, sizes, cost of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.gpu_words import (
    BECAUSE,
    HOW,
    MEANINGS,
    NO_RESULT,
    QUANTITIES,
    RESULTS,
    SIZES,
    VERDICTS,
    WORKS,
)
from rackrate.cli.layout import PLAIN, Part, Table, drawn, pairs
from rackrate.cli.numbers import money, small_money
from rackrate.units import format_count

if TYPE_CHECKING:
    from rackrate.app.wire.gpus import (
        GpuDoc,
        HeldDoc,
        MeasuredDoc,
        ReferenceDoc,
        RenderDoc,
        ResultDoc,
        SizeDoc,
        SliceDoc,
        SuitDoc,
    )
    from rackrate.app.wire.parts import FactDoc

_WHOLE_FROM = 1000
_UNITS = {"flop/s": (1e12, "TFLOPS"), "bytes/s": (1e9, "GB/s"), "W": (1.0, "W")}


def per_cent(share: float) -> str:
    """A share as a whole number of per cent."""
    return f"{share * 100:,.0f} %"


def _short(value: float) -> str:
    """A number with four digits where it is small and none behind the point where it is large."""
    return f"{value:,.0f}" if value >= _WHOLE_FROM else f"{value:.4g}"


# ---------------------------------------------------------------- measured beside published


def measured(gpu: GpuDoc) -> Iterator[Part]:
    """What was reached with the card, beside what is published."""
    found = measured_table(gpu.measured)
    yield "No measurement that is surely of this card is known." if found is None else drawn(found)
    yield ""


def measured_table(figures: Iterable[MeasuredDoc]) -> Table | None:
    """Measurements that people read, in one order whatever the card; None where there are none."""
    shown = [doc for doc in figures if doc.kind in HOW and doc.quantity in QUANTITIES]
    order = {name: place for place, name in enumerate((*QUANTITIES, *HOW))}
    rows = tuple(map(_measured_row, sorted(shown, key=lambda doc: (order[doc.quantity], order[doc.kind], doc.gpus))))
    heads = ("measured by others", "how", "reached", "of published")
    return Table(keys=heads, titles=heads, rows=rows, right=frozenset({3})) if rows else None


def _measured_row(doc: MeasuredDoc) -> tuple[str, ...]:
    name = QUANTITIES[doc.quantity] + (f", {doc.gpus} cards" if doc.gpus > 1 else "")
    how = HOW[doc.kind] + (f" ({doc.figures})" if doc.figures > 1 else "")
    return (name, how, reached(doc), "" if doc.share_of_published is None else per_cent(doc.share_of_published))


def reached(doc: MeasuredDoc) -> str:
    """A figure or a span of figures with its unit."""
    scale, unit = _UNITS[doc.unit]
    low, high = (_short(value / scale) for value in (doc.low, doc.high))
    return f"{high} {unit}" if low == high else f"{low} to {high} {unit}"


def best_product(gpu: GpuDoc) -> str:
    """The best BF16 product that anyone reached, with its share of the published peak."""
    found = [m for m in gpu.measured if m.quantity == "matmul_bf16" and m.kind in {"best", "crowd"}]
    if not found:
        return "unknown"
    top = max(found, key=lambda doc: doc.high)
    share = "" if top.share_of_published is None else f" ({per_cent(top.share_of_published)} of published)"
    return f"{_short(top.high / 1e12)} TFLOPS{share}"


# ---------------------------------------------------------------- rendering


def renders(gpu: GpuDoc) -> Iterator[Part]:
    """Public rendering scores of the card, or that there is no data."""
    if not gpu.renders:
        yield "No rendering score of this card is known."
        yield ""
        return
    heads = ("rendering score", "version", "score", "unit", "runs")
    rows = tuple(
        (
            each.benchmark,
            _version(each),
            _short(each.value),
            each.unit,
            "" if each.results is None else str(each.results),
        )
        for each in gpu.renders
    )
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({2, 4})))
    yield "Comparable within one benchmark, version and backend alone; sources: --json."
    yield ""


def _version(each: RenderDoc) -> str:
    return ", ".join(filter(None, (each.version, each.backend)))


def best_render(gpu: GpuDoc) -> str:
    """The score of most runs, with its test, and how many times the first card's it is."""
    if not gpu.renders:
        return "no data"
    top = next((each for each in gpu.renders if each.times_first is not None), gpu.renders[0])
    times = "" if top.times_first is None else f" ({per_cent(top.times_first)})"
    return f"{_short(top.value)} {top.unit} ({top.benchmark} {_version(top)}){times}"


# ---------------------------------------------------------------- slices


def slices(gpu: GpuDoc) -> Iterator[Part]:
    """How the card can be cut, and what equal slices leave unused."""
    if not gpu.slices:
        return
    heads = ("MIG slice", "compute", "GB label", "at most", "compute unused", "memory unused")
    rows = tuple(_slice_row(each) for each in gpu.slices)
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({1, 2, 3, 4, 5})))
    yield "Unused: by as many equal slices as there can be. Slices can be mixed; each has less than its label."
    yield ""


def _slice_row(each: SliceDoc) -> tuple[str, ...]:
    unused = (per_cent(share) if share > 0 else "none" for share in (each.compute_unused, each.memory_unused))
    return (each.profile, per_cent(each.compute_share), f"{each.memory_label_gb:g}", str(each.at_most), *unused)


# ---------------------------------------------------------------- suited work


def suits(gpu: GpuDoc) -> Iterator[Part]:
    """What the card suits, is limited for, cannot do, and what nobody knows, each with the deciding fact."""
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for suit in gpu.suits:
        by_verdict[suit.verdict].append(f"{WORKS[suit.work]} ({because(suit)})")
    yield pairs([(f"  {VERDICTS[verdict]}", "; ".join(works)) for verdict, works in by_verdict.items() if works])
    yield ""


def because(suit: SuitDoc) -> str:
    """The fact that decides, in words."""
    number = "" if suit.value is None else f"{suit.value:,.15g}"
    rate = "" if suit.value is None else _short(suit.value / 1e9)
    return BECAUSE[suit.because].format(n=number, gb_per_s=rate)


# ---------------------------------------------------------------- sizes


def sizes(gpu: GpuDoc) -> Iterator[Part]:
    """The largest models that one card holds, by kind of work."""
    if not gpu.sizes:
        return
    yield "One card holds, of the dense models in the list:"
    yield pairs([(f"  {name}", _size(size)) for name, size in zip(SIZES, gpu.sizes, strict=True)])
    yield ""


def _size(size: SizeDoc) -> str:
    work = f"{size.weight_format}, {size.engine}, {size.batch} x {size.tokens} tokens"
    if size.reason is not None:
        return f"no engine of the list runs on it ({work})"
    above = f"too small for {_last(size.too_small_for)}" if size.too_small_for else "the largest of the list"
    half = f"half empty up to {held(size.half_empty)}; " if size.half_empty else ""
    return f"up to {held(size.largest)}; {half}{above} ({work})" if size.largest else f"none: {above} ({work})"


def held(model: HeldDoc | None) -> str:
    """A model with its size."""
    return "none" if model is None else f"{format_count(model.params)}, {_last(model.model)}"


def largest(place: int, gpu: GpuDoc) -> str:
    """The size of the largest model that fits for one kind of work."""
    if place >= len(gpu.sizes):
        return "unknown"
    size = gpu.sizes[place]
    if size.reason is not None:
        return "no engine known"
    return f"up to {format_count(size.largest.params)}" if size.largest else "none"


def _last(model: str) -> str:
    return model.rpartition("/")[2]


# ---------------------------------------------------------------- cost of results


def results(gpu: GpuDoc, reference: list[ReferenceDoc]) -> Iterator[Part]:
    """What results cost on the card at its cheapest price on demand."""
    if not gpu.results:
        return
    yield pairs([(f"  {RESULTS[result.result]}", _result(result)) for result in gpu.results])
    used = {result.offer_id for result in gpu.results}
    price = next((price for price in gpu.prices if price.offer_id in used), None)
    if price is not None:
        hour = f"{small_money(price.per_gpu_hour)} {price.currency} an hour and card"
        machine = f"{price.provider}, machines of {price.gpus}" if price.gpus > 1 else price.provider
        yield f"At the cheapest price on demand: {hour} ({machine}, seen {price.observed_at}), busy all the time."
    yield reference_line(reference)
    yield ""


def _result(result: ResultDoc) -> str:
    if result.tokens_per_s is None:
        return no_result(result)
    speed = f"{result.tokens_per_s.likely:,.0f} tokens/s"
    at_once = f", {result.sequences} at once" if result.result == "output_tokens_full_cache" else ""
    cost = cost_text(result, spread=True)
    return f"{cost}; {speed}{at_once}, limited by {words.word(words.BOUNDS, result.limited_by or '')}"


def cost_text(result: ResultDoc, *, spread: bool = False) -> str:
    """The cost of a result, or why there is none."""
    if result.cost is None or result.cost_low is None or result.cost_high is None:
        return no_result(result)
    span = f" ({money(result.cost_low)} to {money(result.cost_high)})" if spread else ""
    return f"{money(result.cost)} {result.currency}{span}"


def no_result(result: ResultDoc) -> str:
    """Why a result has no cost."""
    code = result.reason or "no_offer"
    return words.word(NO_RESULT, code).format(detail=result.detail)


def reference_line(reference: list[ReferenceDoc]) -> str:
    """The workloads behind the costs, in one sentence."""
    served = next(r for r in reference if r.prompt_tokens is not None)
    trained = next(r for r in reference if r.sequence_tokens is not None)
    chat = f"{served.prompt_tokens} tokens in and {served.output_tokens} out"
    tune = f"{trained.batch} x {trained.sequence_tokens} tokens"
    return (
        f"Reference: {served.model}, {served.weight_format} weights; {served.engine} with {chat}; "
        f"{words.word(words.TASKS, trained.task)} with {trained.engine}, {tune}."
    )


def variants(gpu: GpuDoc) -> Iterator[Part]:
    """Figures that hold under a condition only, or that others print of the card."""
    if not gpu.variants:
        return
    yield "Also seen, under a condition:"
    yield pairs([(f"  {_quantity(fact.quantity)}", _variant(fact)) for fact in gpu.variants], style=PLAIN)
    yield ""


def _quantity(name: str) -> str:
    for ending in ("_bytes_per_s_one_way", "_bytes_per_s", "_flop_per_s", "_bytes", "_w"):
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _variant(fact: FactDoc) -> str:
    scale, unit = (2**20, "MiB") if fact.unit == "bytes" else _UNITS.get(fact.unit, (1.0, fact.unit))
    note = f"; {fact.note}" if fact.note else ""
    return f"{_short(fact.value / scale)} {unit}: {fact.condition}{note}"


def meanings() -> Iterator[Part]:
    """What the numbers mean."""
    yield "What the numbers mean:"
    yield pairs([(f"  {name}", text) for name, text in MEANINGS], style=PLAIN)
