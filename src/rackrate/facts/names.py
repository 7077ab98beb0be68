"""What people call cards, models and engines, and the ids that they can mean.

A card's name is split into a model ("A100"), a memory label ("80 GB") and a
form factor ("SXM4"). What the name leaves open stays open: all cards that fit
come back. A name that a driver prints ("NVIDIA H200") means the cards that
print it. A card changed by a third party (more memory soldered on) is meant
only where the name or the memory label says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rackrate.facts.accelerator import Accelerator
from rackrate.problems import Code, Finding, nearest

MEMORY_TOLERANCE = 0.10
"""B200 is sold as 179, 180 and 192 GB, L4 as 22 and 24: labels of one card differ by up to 8 %."""

_SAME_LABEL_GB = 0.5
_MODEL_DIGITS = 3
"""A number as long as this tells a model: 4090, 910, 300."""
_MEMORY = re.compile(r"(?<![0-9a-z.])(\d+(?:\.\d+)?)\s*(?:gib|gb|g)(?![0-9a-z])")
_NOT_MODEL = re.compile(r"\([^)]*\)|(?<![0-9a-z])(?:hbm|gddr)\d?[ex]?\b")
_FORM = re.compile(r"(?<![0-9a-z])(?:sxm\d?|pcie|nvl|nvlink|oam|hgx)(?![0-9a-z])")
_MAKERS = ("nvidia", "amd", "intel", "huawei", "geforce", "tesla", "instinct", "quadro", "radeon")
_DRIVER = "nvidia "
"""How the names begin that NVIDIA's driver prints since version 465."""

# What stands around a name: looked for only where one of these marks is seen, to keep a start short.
_MARKS = (" x", "_", "*", "[", "mig ", "grid ", " with ", " mod")
_SLICES = ("a", "b", "c", "q")
"""Series of NVIDIA vGPU profiles."""
_CUT = "..."
_DECORATION = (
    r"\bmig \d+g\.\S+|^\s*grid |-(?:\d+-)?\d+[abcq]$"  # a slice of a card: MIG 1g.5gb, GRID V100D-8C
    r"|^\s*\d{1,2}\s*[x*×]\s*|(?:\s+x|\s*[*×])\s*\d{1,2}\+?(?![0-9a-z])"  # a count: 8xA100, A40 x4, A100*8
    r"|\d*\s*[卡张块片台]|(?<=\s)(?:with|shown|of \d+|modified|modded)(?![0-9a-z])|[\u2e80-\uffee]"
)
_MODIFIED = ("魔改", "改装", "modified", "modded")
"""Words by which sellers say that more memory was soldered on."""

# Spellings of engines that no id contains.
_ENGINES = {
    "hf": "transformers",
    "huggingface": "transformers",
    "hftransformers": "transformers",
    "trtllm": "tensorrt-llm",
    "peft": "peft-trl",
    "trl": "peft-trl",
    "ggml": "llama.cpp",
    "torchfsdp": "fsdp",
    "fsdp2": "fsdp",
    "zero": "deepspeed",
}


def name_key(text: str) -> str:
    """A name in lower case without makers' brands, blanks and punctuation: ``"NVIDIA GeForce RTX 4090"`` is rtx4090."""
    key = _plain(text)
    while rest := next((key.removeprefix(maker) for maker in _MAKERS if key.startswith(maker)), ""):
        key = rest
    return key


def _plain(text: str) -> str:
    """Letters and digits only, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _split(text: str) -> tuple[str, float | None, str]:
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
    return frozenset({name_key(product), _split(product)[0], *map(name_key, known), *verbatim})


def resolve_card(
    text: str,
    accelerators: Mapping[str, Accelerator],
    memory_gb: float | None = None,
    form_factor: str | None = None,
) -> tuple[str, ...]:
    """The ids that a card's name can mean, in the order of ``accelerators``; empty when none is known.

    ``memory_gb`` is the label of one whole card, not of a share of it.
    ``form_factor`` is what a price list writes: ``SXM4``, ``SXM``, ``PCIe``,
    ``PCIe-NVLink`` (bridged), ``NVL-PCIe``, ``NVLink``, ``OAM`` or nothing.
    """
    found = _resolved(text, accelerators, memory_gb, form_factor)
    if not found or text.endswith(_CUT) or (_says_modified(text) and not any(card.modified for card in found)):
        plain = _undecorated(text)
        mended = _cut_short(plain, accelerators) or _resolved(plain, accelerators, memory_gb, form_factor)
        found = _modified_only(text, plain, accelerators) or mended or found
    return tuple(card.id for card in found)


def suggest_cards(text: str, accelerators: Mapping[str, Accelerator], *, limit: int = 4) -> tuple[str, ...]:
    """Ids that a name that means no card may have been meant for, best first.

    Those of the model where only its memory or form is unheard of
    (``A100 48GB``) or the letter O stands for a zero, else those whose names
    are spelt most alike, with the same number if any has it.
    """
    plain = _undecorated(text).casefold()
    for model in (_split(plain)[0], _split(plain.replace("o", "0"))[0]):
        named = [card.id for card in _named(model, accelerators.values()) if not card.modified]
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


def _resolved(
    text: str, accelerators: Mapping[str, Accelerator], memory_gb: float | None, form_factor: str | None
) -> list[Accelerator]:
    """The cards that a name without decoration can mean."""
    lower = text.casefold()
    same = accelerators.get(lower)
    cards = accelerators.values()
    named = [same] if same else (_printed(lower, cards) if lower.startswith(_DRIVER) else [])
    named = named or _named(name_key(text), cards)
    memory_said, form_said = None, ""
    if not named:
        model, memory_said, form_said = _split(text)
        named = _named(model, cards)
    memory = memory_gb or memory_said
    found = _of_type(_of_form(_of_memory(named, memory), form_factor or form_said), lower)
    if any(not card.modified for card in found) and (memory is None or len(found) > 1):
        found = [card for card in found if not card.modified]
    return found


def _printed(lower: str, cards: Iterable[Accelerator]) -> list[Accelerator]:
    """The cards whose driver prints just this name."""
    return [card for card in cards if lower in card.names]


def _undecorated(text: str) -> str:
    """A name without counts, slices, notes in Chinese and what stands around the brackets of ``lspci``."""
    lower = text.casefold()
    sliced = "-" in lower and lower[-1:] in _SLICES
    if text.isascii() and not lower[:1].isdigit() and not sliced and not any(mark in lower for mark in _MARKS):
        return text
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
    model, memory, _ = _split(plain)
    return _of_memory([card for card in _named(model, accelerators.values()) if card.modified], memory)


def _cut_short(text: str, accelerators: Mapping[str, Accelerator]) -> list[Accelerator]:
    """The cards that a name can mean that a narrow table of ``nvidia-smi`` cut off: ``Tesla V100-SXM2...``."""
    if not text.endswith(_CUT):
        return []
    key = name_key(text)
    return [
        card
        for card in accelerators.values()
        if not card.modified
        and (_plain(card.product).startswith(key) or any(name.startswith(key) for name in card.names))
    ]


def _named(key: str, cards: Iterable[Accelerator]) -> list[Accelerator]:
    """The cards that go by ``key``; a bare number such as ``4090`` is a GeForce RTX (or GTX)."""
    keys = {key, f"rtx{key}", f"gtx{key}"} if key[:1].isdigit() else {key}
    return [card for card in cards if keys & (card.names or name_keys(card.product, ()))] if key else []


def _of_memory(cards: list[Accelerator], memory_gb: float | None) -> list[Accelerator]:
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


# ---------------------------------------------------------------- models and engines


def resolve_model(text: str, ids: Sequence[str]) -> str | Finding:
    """The model id that ``text`` means, or a finding with the ids that it can mean.

    In this order: the id, its last path part, that without ``-hf``, all of them
    without punctuation, then ids that go on after the text
    (``mistral-7b`` and ``Mistral-7B-v0.1``). Letter case never counts.
    """
    wanted = text.strip().casefold()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda i: i.casefold() == wanted,
        lambda i: _last(i) == wanted,
        lambda i: _last(i).removesuffix("-hf") == wanted,
        lambda i: _core(wanted) in {_core(_last(i)), _plain(i)},
        lambda i: _goes_on(_last(i), wanted.rpartition("/")[2]),
    )
    for test in tests:
        found = [i for i in ids if wanted and test(i)]
        if len(found) == 1:
            return found[0]
        if found:
            return _unclear("model", text, found)
    return _unclear("model", text, nearest(text, ids) or _nearest_last(text, ids), known=ids)


def resolve_engine(text: str, ids: Sequence[str]) -> str | Finding:
    """The engine id that ``text`` means (``llama-cpp``, ``TRT-LLM``, ``HF``), or a finding with suggestions."""
    wanted = _plain(text)
    by_key = {_plain(i): i for i in ids}
    known = _ENGINES.get(wanted, "")
    if wanted in by_key:
        return by_key[wanted]
    if known in ids:
        return known
    return _unclear("engine", text, nearest(text, ids) or list(ids))


def _last(model_id: str) -> str:
    return model_id.rpartition("/")[2].casefold()


def _core(name: str) -> str:
    """A model's name without the words that publishers add or leave out, letters and digits only."""
    return _plain(name.removeprefix("meta-").removesuffix("-hf"))


def _goes_on(last: str, wanted: str) -> bool:
    """Whether ``last`` is ``wanted`` and more words after it."""
    rest = last.removeprefix("meta-").removeprefix(wanted)
    return rest[:1] in {"-", "_", "."} and last.endswith(wanted + rest)


def _nearest_last(text: str, ids: Sequence[str]) -> list[str]:
    by_last = {_last(i): i for i in ids}
    return [by_last[name] for name in nearest(text.rpartition("/")[2], by_last)]


def _unclear(what: str, text: str, options: Sequence[str], *, known: Sequence[str] = ()) -> Finding:
    """An unknown name with what it may mean; failing that, a few of the known ones and where the rest are."""
    some = ", ".join(known[:: max(1, len(known) // 4)][:4])
    others = f"use one of {len(known)} known ids, such as {some}; docs/facts.md lists all" if known else ""
    return Finding(
        code=Code.UNKNOWN_NAME,
        subject=what,
        observed=text,
        expected=f"one known {what}",
        action=f"use {' or '.join(options[:8])}" if options else others or f"use a known {what} id",
    )
