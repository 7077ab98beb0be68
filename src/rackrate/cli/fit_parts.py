"""Parts of the screen of ``fit`` beyond the account: other counts, largest sizes, slices, cheaper cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import Part, Table, drawn, pairs
from rackrate.cli.numbers import small_money
from rackrate.units import GIB, format_bytes

if TYPE_CHECKING:
    from rackrate.app.wire.fit import FitDocument, FitOnDoc, LargestDoc, SliceFitDoc

_SIZES = {
    "serving.context_tokens": "context",
    "serving.concurrency": "requests at once",
    "training.sequence_tokens": "sequence",
    "training.micro_batch": "micro-batch",
    "images.at_once": "images at once",
}
_OF_THE_MODEL = frozenset({"context", "sequence"})


def counts(document: FitDocument) -> Iterator[Part]:
    """Every number of cards that was asked for, where there are several."""
    if len(document.counts) < 2:  # noqa: PLR2004 - one is what the rest of the screen is about
        return
    heads = ("n", "layout", "verdict", "peak GiB", "usable GiB", "headroom GiB", "sequences")
    rows = tuple(map(_count, document.counts))
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({0, 3, 4, 5, 6})))
    yield ""


def _count(on: FitOnDoc) -> tuple[str, ...]:
    if on.peak_bytes is None or on.usable_bytes is None or on.headroom_bytes is None:
        return (str(on.gpus), on.layout or "-", words.word(words.REASONS, on.reason or ""), "-", "-", "-", "-")
    numbers = (f"{size / GIB:.1f}" for size in (on.peak_bytes.likely, on.usable_bytes, on.headroom_bytes))
    held = "-" if on.full_sequences is None else str(on.full_sequences)
    return (str(on.gpus), on.layout or "-", words.word(words.VERDICTS, on.verdict or ""), *numbers, held)


def more(document: FitDocument) -> Iterator[Part]:
    """The largest sizes, copies on one card, slices of it, and cheaper cards that hold the same."""
    rows = [("Largest", "; ".join(map(_largest, document.largest)) + _as_full(document))] if document.largest else []
    copies = document.copies_per_card
    if copies is not None and copies > 1:
        rows.append(("Copies", f"{copies} of the whole work on one card by memory; they share its speed"))
    if document.slices:
        rows.append(("MIG slices", "; ".join(map(_slice, document.slices))))
    if rows:
        yield pairs(rows)
        yield ""
    yield from _cheapest(document)


def _largest(size: LargestDoc) -> str:
    name = _SIZES[size.knob]
    if not size.value:
        return f"no {name} fits"
    more = "" if not size.capped else ", the model's most" if name in _OF_THE_MODEL else " and more"
    step = "" if size.global_batch is None else f", in a global batch of {size.global_batch:,}"
    return f"{name} {size.value:,}{more} (now {size.now:,}){step}"


def _as_full(document: FitDocument) -> str:
    """Why a service that fits may have less room than requests: they are seldom all at their longest."""
    short = any(size.value < size.now for size in document.largest)
    return "; both with every request at its longest" if short and document.cache is not None else ""


def _slice(held: SliceFitDoc) -> str:
    word = "" if held.verdict == "fits" else f", {words.word(words.VERDICTS, held.verdict)}"
    each = "one" if held.at_most == 1 else f"each of {held.at_most}"
    return f"{each} {held.profile} holds it ({format_bytes(held.unused_bytes)} of it unused{word})"


def _cheapest(document: FitDocument) -> Iterator[Part]:
    if not document.cheapest:
        yield f"No machine of {document.gpus} by the hour in the catalogue surely holds it."
        yield ""
        return
    heads = ("cheapest that hold it", "n", "provider", "offer", f"{document.cheapest[0].price_currency}/h", "seen")
    rows = tuple(
        (c.accelerator, str(c.gpus), c.provider, c.offer, small_money(c.price_per_hour), c.price_observed_at)
        for c in document.cheapest
    )
    yield drawn(Table(keys=heads, titles=heads, rows=rows, right=frozenset({1, 4})))
    yield f"Seen in {'; '.join(dict.fromkeys(c.price_source for c in document.cheapest))}."
    yield ""
