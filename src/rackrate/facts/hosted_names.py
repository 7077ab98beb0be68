"""Which names of hosted models mean a model: ``meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo`` and the like.

A name is taken apart into sizes (8b, 30b-a3b, 8x7b), dates of release (0324,
2507), words for tuning (instruct), words for numbers and speed (fp8, turbo),
and the rest, which must be the same. Another size never matches: a size that
only one name says is held against the number of parameters. A hosted name that
leaves one thing open (its size, its release, what was done for speed) is
unclear; one that leaves two open is no match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from rackrate.values import Value

SIZE_TOLERANCE = 0.25
"""Sizes in names are rounded: Mixtral 8x7B has 46.7 billion parameters, a 7B model 6.7 to 7.7."""

_BILLION, _MILLION = 1e9, 1e6
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(?:\d+x)?\d+(?:\.\d+)?[bmt]|[ae]\d+(?:\.\d+)?b|\d+e)(?![a-z0-9])")
_DATE = re.compile(
    r"20\d\d-[01]\d-[0-3]\d"
    r"|(?<![a-z0-9.])(?:20\d{6}|2[3-9](?:0[1-9]|1[0-2])(?:[0-3]\d)?|(?:0[1-9]|1[0-2])[0-3]\d)(?![a-z0-9])"
)
_DEPLOYED = re.compile(r"-v\d+:\d+(?::\w+)?$")
"""What a cloud's revision of a model ends with: ``llama3-1-8b-instruct-v1:0``."""

_OWNER = re.compile(r"^(?:[a-z]{2,5}\.)?[a-z]{3,}[a-z0-9]*\.(?=[a-z])")
_POINT = re.compile(r"(?<=\d)p(?=\d)")
_JOINED = re.compile(r"^([a-z]{2,}|v)(?=\d)")

_TUNING = frozenset({"instruct", "chat", "it", "base", "pt"})
_MEANINGLESS = frozenset({"meta", "hf", "v", "nvidia"})
_NUMBERS = frozenset(
    {"fp8", "fp4", "nvfp4", "mxfp4", "bf16", "fp16", "int4", "int8", "awq", "gptq", "gguf", "4bit", "8bit", "w4a16"}
)
_SPEED = frozenset({"turbo", "fast", "instant", "versatile", "specdec", "reference", "tput", "highspeed"})


class Match(StrEnum):
    """How surely a hosted model is the one in question."""

    SAME = "same"
    TUNED = "tuned"
    UNCLEAR = "unclear"


class Name(Value, frozen=True, kw_only=True):
    """A name taken apart."""

    plain: tuple[str, ...]
    sizes: tuple[str, ...]
    dates: tuple[str, ...]
    tuning: frozenset[str]
    speed: frozenset[str]


@lru_cache(maxsize=4096)
def parted(text: str) -> Name:
    """The parts of a model's name, its publisher left out."""
    last = _DEPLOYED.sub("", text.strip().casefold().rpartition("/")[2])
    last = _POINT.sub(".", _OWNER.sub("", last)).replace("_", "-")
    dates = tuple(re.sub(r"\D", "", found) for found in _DATE.findall(last))
    rest = _DATE.sub(" ", last)
    sizes = tuple(_SIZE.findall(rest))
    words = list(_words(_SIZE.sub(" ", rest)))
    return Name(
        plain=tuple(word for word in words if word not in _TUNING | _NUMBERS | _SPEED),
        sizes=sizes,
        dates=dates,
        tuning=frozenset(words) & _TUNING,
        speed=frozenset(words) & _SPEED,
    )


def _words(text: str) -> Iterable[str]:
    """Words and numbers: ``qwen2.5`` is qwen, 2, 5; a ``v`` before a number says nothing."""
    for chunk in re.split(r"[^a-z0-9]+", text):
        joined = None if chunk in _NUMBERS else _JOINED.match(chunk)
        for word in (joined[1], chunk[joined.end() :]) if joined else (chunk,):
            if word and word not in _MEANINGLESS:
                yield word


def matched(model: str, params: int, hosted: Iterable[str]) -> Match | None:
    """How surely one of the names of a hosted model means ``model`` of so many parameters; None: it does not.

    A name that ends with ``*`` is how names begin, whatever the release.
    """
    ours = parted(model)
    found = {_match(ours, params, name) for name in hosted}
    return next((level for level in Match if level in found), None)


def _match(ours: Name, params: int, name: str) -> Match | None:
    theirs = parted(name.removesuffix("*"))
    if not ours.plain or ours.plain != theirs.plain or not _may_be_of_size(ours, theirs, params):
        return None
    unsaid = bool(ours.sizes) and not theirs.sizes
    released = ours.dates == theirs.dates or (name.endswith("*") and not theirs.dates)
    paced = ours.speed == theirs.speed or bool(theirs.sizes)
    doubts = (unsaid, not released, not paced)
    if sum(doubts) > 1 or (not released and not theirs.sizes and ours.dates and theirs.dates):
        return None
    if any(doubts):
        return Match.UNCLEAR
    return Match.SAME if ours.tuning == theirs.tuning else Match.TUNED


def _may_be_of_size(ours: Name, theirs: Name, params: int) -> bool:
    """Whether the sizes in two names do not contradict; a name with fewer words for them contradicts too."""
    if not theirs.sizes or ours.sizes == theirs.sizes:
        return True
    return not ours.sizes and _is_size_of(theirs, params)


def _is_size_of(name: Name, params: int) -> bool:
    """Whether a name says about so many parameters; sizes of what is active are left out."""
    said = billions(name)
    return said is not None and abs(said * _BILLION / params - 1) <= SIZE_TOLERANCE


def billions(name: Name) -> float | None:
    """Parameters in a name, in billions; None when it says none."""
    found = [_billions(size) for size in name.sizes if size[0].isdigit() and size[-1] in "bmt"]
    return max(found, default=None)


def _billions(size: str) -> float:
    times, _, each = size.rpartition("x")
    unit = {"b": 1.0, "m": _MILLION / _BILLION, "t": 1000.0}[size[-1]]
    return float(times or 1) * float(each[:-1]) * unit


def family(text: str) -> str:
    """The first word of a name: ``llama``, ``qwen``; lines of a table that lack it need not be read."""
    return next(iter(parted(text).plain), "")


def is_named(wanted: str, provider: str, names: Iterable[str]) -> bool:
    """Whether someone who writes ``wanted`` names this: the whole name, its last part, or either with the provider."""
    text = wanted.strip().casefold()
    known = {name.removesuffix("*").casefold() for name in names}
    known |= {name.rpartition("/")[2] for name in known}
    return text in known or any(text == f"{provider.casefold()}:{name}" for name in known)
