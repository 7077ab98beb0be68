"""What each filter of ``offers`` left out, and what to type to have it in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rackrate.cli import words
from rackrate.cli.layout import PLAIN, Part, pairs
from rackrate.cli.numbers import small_money
from rackrate.cli.offers_columns import card

if TYPE_CHECKING:
    from rackrate.app.wire.offers import OfferDoc, OfferDropDoc, OfferLeftOutDoc, OffersDocument
    from rackrate.app.wire.parts import ChangeDoc


_LEFT_OUT_AT_MOST = 12


def left_out(document: OffersDocument) -> Iterator[Part]:
    """What each test left out; with nothing listed, what to drop comes first."""
    groups = document.left_out
    if not groups:
        return
    if not document.offers:
        yield from _what_to_drop(document)
    yield "Left out:"
    rows = [(f"  {group.count:>4}", _said(group, document.currency)) for group in groups[:_LEFT_OUT_AT_MOST]]
    yield pairs(rows, style=PLAIN)
    yield ""


def _what_to_drop(document: OffersDocument) -> Iterator[Part]:
    """The filters of which one is to be dropped, and what then comes in."""
    if not document.drops:
        yield "Without any one filter there would still be none: drop two."
    rows = [(f"Drop {_asked(one)}", _comes_in(one, document.currency)) for one in document.drops]
    if rows:
        yield pairs(rows)
    yield ""


def _asked(one: OfferDropDoc) -> str:
    """A filter as it was typed."""
    asked = _words_of(one.asked)
    return _dropped(asked) if one.knob == "limits.require" else f"{flag_of(one.knob)} {_quoted(asked)}"


def _comes_in(one: OfferDropDoc, currency: str) -> str:
    return f"{one.found} come in, cheapest: {_cheap(one.nearest, currency)}"


def _cheap(offer: OfferDoc, currency: str) -> str:
    price = f", {small_money(offer.shown_per_gpu_hour)} {currency} per GPU-hour" if offer.shown_per_gpu_hour else ""
    return f"{offer.gpus} x {card(offer)}, {offer.provider}{price}"


_NOT_SAID = frozenset({"any", "none"})
"""What a limit is changed to by leaving it out."""

_MEMORY = "min_memory_gb="
"""How the property begins that --min-memory asks for."""

FLAGS = {
    "limits.gpus": "--gpu",
    "limits.vendors": "--vendor",
    "limits.require": "--require",
    "limits.gpu_counts": "--gpus",
    "limits.max_gpus": "--max-gpus",
    "limits.providers": "--provider",
    "limits.exclude_providers": "--exclude-provider",
    "limits.regions": "--region",
    "limits.markets": "--market",
    "limits.access": "--need",
    "currencies": "--priced-in",
}


def flag_of(knob: str) -> str:
    """The flag that a change is made with."""
    return FLAGS.get(knob, f"--{knob.replace('_', '-')}")


def _said(group: OfferLeftOutDoc, currency: str) -> str:
    text = words.word(words.REASONS, group.reason)
    near = group.nearest
    if near is None or group.change is None:
        return text
    return f"{text}; {group.alone} by this alone, cheapest: {_cheap(near, currency)}; in {_typed(group.change)}"


def _typed(change: ChangeDoc) -> str:
    """The change as the command line takes it."""
    if change.knob == "history":
        return "with --history"
    before, after = _words_of(change.before), _words_of(change.after)
    if change.knob == "limits.require":
        return f"without {_dropped([text for text in before if text not in after])}"
    flag = flag_of(change.knob)
    if change.after in _NOT_SAID:
        return f"without {flag} {_quoted(before)}"
    return f"with {flag} {_quoted(after)} instead of {_quoted(before)}"


def _dropped(requirements: Sequence[str]) -> str:
    """The flags that ask for these properties."""
    return " and ".join(
        f"--min-memory {text.removeprefix(_MEMORY)}" if text.startswith(_MEMORY) else f"--require {text}"
        for text in requirements
    )


def _words_of(text: str) -> list[str]:
    return text.split(", ")


def _quoted(texts: Sequence[str]) -> str:
    """A list as one word of a shell."""
    joined = ",".join(texts)
    return joined if all(c.isalnum() or c in "-_.,:/=" for c in joined) else f"'{joined}'"
