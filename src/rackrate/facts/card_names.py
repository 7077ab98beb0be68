"""The parts of a card's name, and the cards that a name without decoration can mean.

A name is split into a model ("A100"), a memory label ("80 GB") and a form
factor ("SXM4"). What the name leaves open stays open: all cards that fit come
back. A name that a driver prints ("NVIDIA H200") means the cards that print it.
A card changed by a third party (more memory soldered on) is meant only where
the name or the memory label says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rackrate.facts.accelerator import Accelerator

MEMORY_TOLERANCE = 0.10
"""B200 is sold as 179, 180 and 192 GB, L4 as 22 and 24: labels of one card differ by up to 8 %."""

_SAME_LABEL_GB = 0.5
_MEMORY = re.compile(r"(?<![0-9a-z.])(\d+(?:\.\d+)?)\s*(?:gib|gb|g)(?![0-9a-z])")
_NOT_MODEL = re.compile(r"\([^)]*\)|(?<![0-9a-z])(?:hbm|gddr)\d?[ex]?\b")
_FORM = re.compile(r"(?<![0-9a-z])(?:sxm\d?|pcie|nvl|nvlink|oam|hgx)(?![0-9a-z])")
_MAKERS = ("nvidia", "amd", "intel", "huawei", "geforce", "tesla", "instinct", "quadro", "radeon")
_VENDORS = {"google": ("googlecloud", "cloud"), "aws": ("amazon",), "intel": ("habana",)}
"""What else vendors are called before the names of their products."""

_DRIVER = "nvidia "
"""How the names begin that NVIDIA's driver prints since version 465."""

_LINES = ("quadro", "tesla", "geforce")
"""Product lines that stand in some products' own names."""

_MARKS = (" x", "_", "*", "[", "mig ", "grid ", " with ", " mod", "...", "modified", "modded", "passive", "active")
"""What stands around a name that is not plain, in lower case; a count (8x) or a vGPU's size (-8q) does, too."""


def name_key(text: str) -> str:
    """A name in lower case without makers' brands, blanks and punctuation: ``"NVIDIA GeForce RTX 4090"`` is rtx4090."""
    key = plain_key(text)
    while rest := next((key.removeprefix(maker) for maker in _MAKERS if key.startswith(maker)), ""):
        key = rest
    return key


def plain_key(text: str) -> str:
    """Letters and digits only, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def split_name(text: str) -> tuple[str, float | None, str]:
    """Model key, memory label in GB and form factor of a card's name."""
    bare = _NOT_MODEL.sub(" ", text.casefold())
    memory = _MEMORY.search(bare)
    model = name_key(_FORM.sub(" ", _MEMORY.sub(" ", bare)))
    return model, float(memory[1]) if memory else None, "-".join(_FORM.findall(bare))


def name_keys(product: str, aliases: Iterable[str]) -> frozenset[str]:
    """All keys under which a card can be looked up: its product, its model without memory and form, its aliases.

    Aliases that are a driver's name are kept as printed, too (in lower case).
    """
    known = [alias.casefold() for alias in aliases]
    verbatim = [alias for alias in known if alias.startswith(_DRIVER)]
    return frozenset({name_key(product), split_name(product)[0], *map(name_key, known), *verbatim})


def is_decorated(text: str) -> bool:
    """Whether a name may hold more than model, memory and form: counts, slices, notes, brackets."""
    lower = text.casefold()
    sliced = "-" in lower and lower[-1:] in "abcq"
    return not text.isascii() or lower[:1].isdigit() or sliced or any(mark in lower for mark in _MARKS)


def resolve_plain(
    text: str, accelerators: Mapping[str, Accelerator], memory_gb: float | None, form_factor: str | None
) -> list[Accelerator]:
    """The cards that a name without decoration can mean."""
    lower = text.casefold()
    same = accelerators.get(lower)
    cards = accelerators.values()
    named = [same] if same else (_printed(lower, cards) if lower.startswith(_DRIVER) else [])
    named = named or cards_named(name_key(text), cards)
    memory_said, form_said = None, ""
    if not named:
        model, memory_said, form_said = split_name(text)
        named = cards_named(model, cards) or _without_vendor(model, cards)
    memory = memory_gb or memory_said
    named = _of_line(named, lower)
    found = _of_type(_of_form(cards_of_memory(named, memory), form_factor or form_said), lower)
    if any(not card.modified for card in found) and (memory is None or len(found) > 1):
        found = [card for card in found if not card.modified]
    return found


def _printed(lower: str, cards: Iterable[Accelerator]) -> list[Accelerator]:
    """The cards whose driver prints just this name."""
    return [card for card in cards if lower in card.names]


def cards_named(key: str, cards: Iterable[Accelerator]) -> list[Accelerator]:
    """The cards that go by ``key``; a bare number such as ``4090`` is a GeForce RTX (or GTX)."""
    keys = {key, f"rtx{key}", f"gtx{key}"} if key[:1].isdigit() else {key}
    return [card for card in cards if keys & (card.names or name_keys(card.product, ()))] if key else []


def _without_vendor(key: str, cards: Iterable[Accelerator]) -> list[Accelerator]:
    """The cards of a vendor whose name stands before the product (``Google TPU v4``, ``AWS Trainium2``)."""
    by_vendor: dict[str, list[Accelerator]] = {}
    for card in cards:
        by_vendor.setdefault(plain_key(card.vendor), []).append(card)
    called = {also: vendor for vendor, words in _VENDORS.items() for also in words} | {v: v for v in by_vendor}
    said = max((name for name in called if name and key.startswith(name)), key=len, default="")
    return cards_named(key.removeprefix(said), by_vendor.get(called[said], ())) if said else []


def cards_of_memory(cards: list[Accelerator], memory_gb: float | None) -> list[Accelerator]:
    """The cards sold with that label, else those whose label is nearest within the tolerance."""
    if memory_gb is None:
        return cards
    apart = {card.id: abs(card.memory_sold_gb - memory_gb) for card in cards}
    allowed = max(MEMORY_TOLERANCE * memory_gb, _SAME_LABEL_GB)
    best = min(apart.values(), default=allowed)
    return [card for card in cards if apart[card.id] <= min(max(best, _SAME_LABEL_GB), allowed)]


def _of_type(cards: list[Accelerator], text: str) -> list[Accelerator]:
    """The cards with the type of memory that the text names, if any has it: sellers often get it wrong."""
    if len(cards) < 2 or "hbm" not in text:  # noqa: PLR2004 - one card needs no choice
        return cards
    same = [card for card in cards if card.memory_type.casefold() in text.replace("(", " ").split()]
    return same or cards


def _of_line(cards: list[Accelerator], text: str) -> list[Accelerator]:
    """The cards whose products carry the line that the text names, if any does: others' names leave it out.

    ``Quadro RTX 6000`` is another card than the ``RTX 6000`` of the Ada generation.
    """
    line = next((line for line in _LINES if line in text), None)
    return cards if line is None else [card for card in cards if line in card.product.casefold()] or cards


def _of_form(cards: list[Accelerator], form: str) -> list[Accelerator]:
    wanted = form.casefold().strip()
    if not wanted:
        return cards
    exact = [card for card in cards if card.form_factor.casefold() == wanted]
    return exact if exact and wanted != "pcie" else [card for card in cards if _fits_form(card, wanted)]


def _fits_form(card: Accelerator, wanted: str) -> bool:
    mine = card.form_factor.casefold()
    socket = mine.startswith("sxm") or mine == "superchip"
    if "nvl" in wanted.split("-"):
        return "NVL " in f"{card.product} "
    if wanted.startswith(("sxm", "hgx")):
        return socket
    if wanted == "nvlink":
        return socket or card.nvlink_bridge_max_gpus > 0
    if "nvlink" in wanted:
        return mine == "pcie" and card.nvlink_bridge_max_gpus > 0
    if wanted == "pcie":
        return "pcie" in mine
    return mine.startswith(wanted)
