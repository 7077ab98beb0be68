"""Names as drivers, tables and sellers write them: with counts, slices, brackets, cut short, in Chinese.

Apart from ``names`` because price lists write plain names: a start does without this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.card_names import (
    cards_named,
    cards_of_memory,
    is_decorated,
    name_key,
    name_keys,
    plain_key,
    resolve_plain,
    split_name,
)
from rackrate.problems import nearest

_CUT = "..."
_DECORATION = (
    r"\bmig \d+g\.\S+|^\s*grid |-(?:\d+-)?\d+[abcq]$"  # a slice of a card: MIG 1g.5gb, GRID V100D-8C
    r"|^\s*\d{1,2}\s*[x*×]\s*|(?:\s+x|\s*[*×])\s*\d{1,2}\+?(?![0-9a-z])"  # a count: 8xA100, A40 x4, A100*8
    r"|\d*\s*[卡张块片台]|(?<=\s)(?:with|shown|of \d+|modified|modded|passive|active)(?![0-9a-z])|[\u2e80-\uffee]"
)
_MODIFIED = ("魔改", "改装", "modified", "modded")
"""Words by which sellers say that more memory was soldered on."""
_MODEL_DIGITS = 3
"""A number as long as this tells a model: 4090, 910, 300."""


def resolve_loose(
    text: str,
    found: list[Accelerator],
    accelerators: Mapping[str, Accelerator],
    memory_gb: float | None,
    form_factor: str | None,
) -> list[Accelerator]:
    """The cards that a decorated name can mean; ``found`` are those that it means as it stands.

    A name as it stands goes before the name without its decoration, except
    where it was cut short or says that the card was modified.
    """
    plain = undecorated(text)
    special = _modified_only(text, plain, accelerators) or _cut_short(plain, accelerators)
    return special or found or resolve_plain(plain, accelerators, memory_gb, form_factor)


def suggest_cards(text: str, accelerators: Mapping[str, Accelerator], *, limit: int = 4) -> tuple[str, ...]:
    """Ids that a name that means no card may have been meant for, best first.

    Those of the model where only its memory or form is unheard of
    (``A100 48GB``) or the letter O stands for a zero, else those whose names
    are spelt most alike, with the same number if any has it.
    """
    plain = undecorated(text).casefold()
    for model in (split_name(plain)[0], split_name(plain.replace("o", "0"))[0]):
        named = [card.id for card in cards_named(model, accelerators.values()) if not card.modified]
        if named:
            return tuple(named[:limit])
    number = max(re.findall(r"\d+", plain), key=len, default="")
    by_name: dict[str, list[str]] = {}
    for card in accelerators.values():
        for name in () if card.modified else (card.id, *(card.names or name_keys(card.product, ()))):
            by_name.setdefault(name, []).append(card.id)
    same = [name for name in by_name if number in name and len(number) >= _MODEL_DIGITS]
    close = _alike(plain, same) or sorted(same, key=len) or (_alike(plain, by_name) if number else [])
    return tuple(dict.fromkeys(card for name in close for card in by_name[name]))[:limit]


def _alike(plain: str, names: Iterable[str]) -> list[str]:
    """The names most like a name as written, then those most like its key."""
    known = list(names)
    return [name for spelt in (plain, name_key(plain)) for name in nearest(spelt, known)]


def undecorated(text: str) -> str:
    """A name without counts, slices, notes in Chinese and what stands around the brackets of ``lspci``."""
    if not is_decorated(text):
        return text
    lower = text.casefold()
    inside = re.search(r"\[([^\]]+)\]", lower)
    bare = _full_width((inside[1] if inside else lower).replace("_", " "))
    return " ".join(re.sub(_DECORATION, " ", re.sub(r"\([^)]*\)", " ", bare).strip()).split())


def _full_width(text: str) -> str:
    """Letters and digits of East Asian width as plain ones."""
    return text if text.isascii() else "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in text)


def _says_modified(text: str) -> bool:
    return any(word in text.casefold() for word in _MODIFIED)


def _modified_only(text: str, plain: str, accelerators: Mapping[str, Accelerator]) -> list[Accelerator]:
    """The changed cards of the model, where the name says that the card was changed but not how."""
    if not _says_modified(text):
        return []
    model, memory, _ = split_name(plain)
    return cards_of_memory([card for card in cards_named(model, accelerators.values()) if card.modified], memory)


def _cut_short(text: str, accelerators: Mapping[str, Accelerator]) -> list[Accelerator]:
    """The cards that a name can mean that a narrow table of ``nvidia-smi`` cut off: ``Tesla V100-SXM2...``."""
    if not text.endswith(_CUT):
        return []
    key = name_key(text)
    return [
        card
        for card in accelerators.values()
        if not card.modified
        and (plain_key(card.product).startswith(key) or any(name.startswith(key) for name in card.names))
    ]
