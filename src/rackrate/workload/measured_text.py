"""Measured speeds as text: ``32 tok/s on 2 x a40`` becomes a number, what it counts, and the machine."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from rackrate.facts.book import FactBook
from rackrate.facts.names import resolve_card
from rackrate.problems import Code
from rackrate.values import Value, replace
from rackrate.workload.draft import Draft
from rackrate.workload.measured import Counted, Measured
from rackrate.workload.workload import Task

LEAST, MOST = 1e-9, 1e10
"""Bounds of what is counted a second; nothing that computes is outside."""

_TEXT_AT_MOST = 100
_WORTH = (
    r"(?P<number>[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9][0-9_]*)?(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"(?P<scale>[kKM](?![a-zA-Z]))?"
)
_WHERE = r"(?:\s+on\s+(?:(?P<gpus>[0-9]{1,4})\s*[xX×]\s*)?(?P<card>\S.*))?"
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6}


class Unit(Value, frozen=True):
    """What a unit counts; ``seconds`` of each where it is a time."""

    counted: Counted
    seconds: float | None = None
    per_gpu: bool = False


def _times(counted: Counted, *names: str) -> dict[str, Unit]:
    """Seconds and milliseconds of each."""
    plain = {f"s{name}": Unit(counted, 1.0) for name in names}
    return plain | {f"ms{name}": Unit(counted, 1e-3) for name in names}


_TOKENS = ("tok/s", "tokens/s", "token/s", "t/s", "tps")
_PER_STEP = ("/it", "/step", "/iter", "/iteration")
_STEPS = ("it/s", "steps/s", "step/s", "its/s", "iterations/s")

SERVING: Mapping[str, Unit] = {
    **{name: Unit(Counted.TOKENS) for name in _TOKENS},
    **{f"output {name}": Unit(Counted.OUTPUT) for name in _TOKENS},
    **{f"{name}{tail}": Unit(Counted.EACH) for name in _TOKENS for tail in (" each", "/user", "/request", "/stream")},
    **{f"{kind} {name}": Unit(Counted.PROMPT) for name in _TOKENS for kind in ("prompt", "prefill", "input")},
    **{f"total {name}": Unit(Counted.ALL_TOKENS) for name in _TOKENS},
    **_times(Counted.EACH, "/token", "/tok", " tpot", " itl"),
    **_times(Counted.FIRST_TOKEN, "", " ttft", " to first token"),
    **{name: Unit(Counted.REQUESTS) for name in ("requests/s", "request/s", "req/s", "rps", "qps")},
}
TRAINING: Mapping[str, Unit] = {
    **{name: Unit(Counted.TRAINED) for name in _TOKENS},
    **{f"{name}/{card}": Unit(Counted.TRAINED, per_gpu=True) for name in _TOKENS for card in ("gpu", "card")},
    **_times(Counted.STEPS, "", *_PER_STEP),
    **{name: Unit(Counted.STEPS) for name in _STEPS},
    **{f"{name}/s": Unit(Counted.SAMPLES) for name in ("samples", "sample", "sequences", "rows", "examples")},
}
IMAGES: Mapping[str, Unit] = {
    **{f"{name}/s": Unit(Counted.IMAGES) for name in ("images", "image", "img", "imgs", "samples")},
    **_times(Counted.IMAGES, "/image", "/img"),
    **_times(Counted.IMAGE_STEPS, *_PER_STEP),
    **{name: Unit(Counted.IMAGE_STEPS) for name in _STEPS},
}
EXAMPLES = {
    "serving": "32 tok/s, 31 ms/token, 2,400 prompt tok/s, 350 ms TTFT or 1.2 requests/s",
    "training": "3,100 tok/s, 10.6 s/it, 0.09 it/s or 3 samples/s",
    "images": "0.14 images/s, 7.1 s/image or 4.2 it/s",
}


def read_measured(text: str, units: Mapping[str, Unit]) -> Measured:
    """What ``text`` says in one of ``units``; the card is the name as it was written.

    Raises:
        ValueError: it says no speed; the message tells what is wrong with it.

    >>> read_measured("31.25 ms/token on 2 x a40", SERVING).per_s
    32.0
    """
    found = re.fullmatch(rf"\s*{_WORTH}\s*(?P<unit>[^0-9]*?){_WHERE}\s*", text[:_TEXT_AT_MOST])
    if found is None or not any(map(str.isdigit, found["number"])):
        raise ValueError("no number with a unit")
    unit = units.get(plain_unit(found["unit"]))
    if unit is None:
        raise ValueError(f"{found['unit'].strip()} is no unit of this task" if found["unit"].strip() else "no unit")
    worth = float(found["number"].replace(",", "")) * _SCALES.get(found["scale"] or "", 1.0)
    if not worth > 0:
        raise ValueError("a speed is above 0")
    per_s = worth if unit.seconds is None else 1 / (worth * unit.seconds)
    if not LEAST <= per_s <= MOST or not math.isfinite(worth):
        raise ValueError("beyond what any machine does")
    return Measured(
        text=" ".join(text.split()),
        per_s=per_s,
        counted=unit.counted,
        is_time=unit.seconds is not None,
        per_gpu=unit.per_gpu,
        card=(found["card"] or "").strip(),
        gpus=int(found["gpus"]) if found["gpus"] else None,
    )


def plain_unit(text: str) -> str:
    """A unit as the tables spell it: ``Tokens per second`` is ``tokens/s``."""
    words = re.sub(r"\s+per\s+", "/", f" {text.casefold()} ").strip().rstrip(".")
    words = re.sub(r"\s*/\s*", "/", words)
    for long, short in (("milliseconds", "ms"), ("millisecond", "ms"), ("seconds", "s"), ("second", "s"), ("sec", "s")):
        words = re.sub(rf"\b{long}\b", short, words)
    for head in ("tokens/s", "tok/s", "t/s"):
        for kind in ("prompt", "prefill", "input", "output", "total"):
            if words in {f"{head} {kind}", f"{head} of {kind}"}:
                return f"{kind} {head}"
    return re.sub(r"\s+", " ", words)


def measured_in(draft: Draft, task: Task, book: FactBook) -> Measured | None:
    """The speed that ``measured`` says; None, with a finding, where it says none."""
    text = draft.text("measured")
    if text is None:
        return None
    kind = "training" if task.trains else "images" if task is Task.DIFFUSION else "serving"
    try:
        found = read_measured(text, {"training": TRAINING, "images": IMAGES, "serving": SERVING}[kind])
    except (ValueError, OverflowError) as wrong:
        expected = f"a number and its unit ({wrong})"
        draft.problem("measured", Code.BAD_VALUE, text[:_TEXT_AT_MOST], expected, f"write it as in {EXAMPLES[kind]}")
        return None
    if not found.card:
        return found
    cards = resolve_card(found.card, book.accelerators)
    if len(cards) != 1:
        action = f"say which: {', '.join(cards)}" if cards else "name it as `rackrate gpu` lists it"
        code = Code.AMBIGUOUS_CARD if cards else Code.UNKNOWN_NAME
        draft.problem("measured", code, found.card, "one card", action)
        return None
    return replace(found, card=cards[0])
