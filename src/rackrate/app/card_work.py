"""What one card can hold, and what its results cost: reference workloads held against cards and their offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from rackrate.app.cheapest import Cheap
from rackrate.app.context import Context
from rackrate.app.documents import plain, span
from rackrate.app.wire.gpus import HeldDoc, ReferenceDoc, ResultDoc, SizeDoc
from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.engine import Engine
from rackrate.facts.model import Model
from rackrate.facts.suits import lacks
from rackrate.plan.filters import runs_on
from rackrate.plan.results import NoRate, Rate, cost_of, rate_on
from rackrate.plan.sizing import Held, Ladder, Sized, ladder_models
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table
from rackrate.workload.workload import Workload

MODEL = "meta-llama/Meta-Llama-3.1-8B"
"""Of the size that is served and tuned most; every card that can do the work at all can do it."""

Table = Mapping[str, object]


class Kind(NamedTuple):
    """A kind of work that cards are sized for: by the first engine that runs on the card, in its format."""

    task: str
    engines: Mapping[str, str]
    sizes: Table


_SERVED: Table = {"serving": {"context_tokens": 4096, "concurrency": 1}}
_TRAINED: Table = {"training": {"sequence_tokens": 2048, "micro_batch": 1}}
_KINDS: tuple[Kind, ...] = (
    Kind("inference", MappingProxyType({"vllm": "", "llama.cpp": "fp16", "transformers": ""}), _SERVED),
    Kind("inference", MappingProxyType({"vllm": "awq-int4", "llama.cpp": "gguf-q4_k_m"}), _SERVED),
    Kind("lora", MappingProxyType({"peft-trl": ""}), _TRAINED),
    Kind("qlora", MappingProxyType({"peft-trl": "nf4-dq"}), _TRAINED),
    Kind("full_finetune", MappingProxyType({"fsdp": "", "peft-trl": ""}), _TRAINED),
)

_CHAT = {"prompt_tokens": 1024, "output_tokens": 256}
_CHATS: Table = {"task": "inference", "engine": "vllm"}
_RESULTS: Mapping[str, tuple[Table, float]] = {
    "output_tokens_one_stream": ({**_CHATS, "serving": {**_CHAT, "concurrency": 1}}, 1e6),
    "output_tokens_full_cache": (
        {"task": "inference", "engine": "vllm", "serving": {**_CHAT, "concurrency": 256}},
        1e6,
    ),
    "trained_tokens_lora": ({"task": "lora", "engine": "peft-trl", **_TRAINED}, 1e9),
}
"""The reference workloads, and the tokens that a price is given for. 256 is the most that vLLM batches by default."""


class Works:
    """The reference workloads of one answer; what cards share is computed once."""

    def __init__(self, here: Context) -> None:
        self._here = here
        self._ladders: dict[tuple[int, str, str], Ladder] = {}
        self._works: dict[tuple[str, str], Workload] = {}

    @cached_property
    def _models(self) -> list[Model]:
        return ladder_models(map(self._here.book.model, self._here.book.model_ids))

    # ------------------------------------------------------------ sizes

    def sizes(self, card: Accelerator) -> list[SizeDoc]:
        """What one ``card`` is large enough for, by kind of work."""
        return [self._size(card, place, kind) for place, kind in enumerate(_KINDS)]

    def _size(self, card: Accelerator, place: int, kind: Kind) -> SizeDoc:
        engine = next((e for e in map(self._here.book.engine, kind.engines) if runs_on(e, card)), None)
        if engine is None:
            first = self._here.book.engine(next(iter(kind.engines)))
            return _size_doc(self._ladder(place, kind, first, _precision(card)), Unknown("engine_unsupported"))
        ladder = self._ladder(place, kind, engine, _precision(card))
        return _size_doc(ladder, ladder.on(card))

    def _ladder(self, place: int, kind: Kind, engine: Engine, precision: str) -> Ladder:
        key = (place, engine.id, precision)
        if key not in self._ladders:
            asked = {"task": kind.task, "engine": engine.id, **kind.sizes}
            quantised = {"quantization": kind.engines[engine.id]} if kind.engines[engine.id] else {}
            work = self._parsed({**asked, **quantised}, precision)
            self._ladders[key] = Ladder(work, engine, self._models)
        return self._ladders[key]

    # ------------------------------------------------------------ results

    def results(self, card: Accelerator, priced: Cheap | None, currency: str) -> list[ResultDoc]:
        """What results cost on one ``card`` at the price of ``priced`` (none: speeds alone)."""
        return [self._result(card, name, priced, currency) for name in _RESULTS]

    def _result(self, card: Accelerator, name: str, priced: Cheap | None, currency: str) -> ResultDoc:
        work = self._work(name, _precision(card))
        found = rate_on(card, work, self._here.book.engine(work.engine_id))
        tokens = _RESULTS[name][1]
        rate = None if isinstance(found, NoRate) else found
        costs = _costs(rate, tokens, priced)
        return ResultDoc(
            result=name,
            tokens_per_s=span(rate.tokens_per_s) if rate else None,
            sequences=rate.sequences if rate else None,
            limited_by=rate.limited_by if rate else None,
            per_tokens=tokens,
            cost_low=costs[0],
            cost=costs[1],
            cost_high=costs[2],
            currency=currency,
            offer_id=priced.offer.id if priced else None,
            provider=priced.offer.provider if priced else None,
            reason=str(found.reason) if isinstance(found, NoRate) else None if priced else "no_offer",
            detail=found.detail if isinstance(found, NoRate) else "",
        )

    def references(self) -> list[ReferenceDoc]:
        """The workloads that results are reckoned for."""
        return [_reference_doc(name, self._work(name, "bf16")) for name in _RESULTS]

    def _work(self, name: str, precision: str) -> Workload:
        if (name, precision) not in self._works:
            self._works[name, precision] = self._parsed(_RESULTS[name][0], precision)
        return self._works[name, precision]

    def _parsed(self, asked: Table, precision: str) -> Workload:
        parsed = parse(request_from_table({"model": MODEL, "precision": precision, **asked}), self._here.book)
        if not isinstance(parsed, Parsed):
            raise ValueError(f"a reference workload is wrong: {parsed}")
        return parsed.workload


def _precision(card: Accelerator) -> str:
    """The 16-bit type that a card computes in."""
    return "fp16" if "bf16" in lacks(card) else "bf16"


def _costs(rate: Rate | None, tokens: float, priced: Cheap | None) -> Sequence[str | None]:
    """Low, likely and high cost: the fastest speed is the cheapest."""
    if rate is None or priced is None:
        return (None, None, None)
    speed = rate.tokens_per_s
    return [
        plain(cost_of(tokens, each, priced.per_hour).rounded(6).amount)
        for each in (speed.high, speed.likely, speed.low)
    ]


def _size_doc(ladder: Ladder, sized: Sized | Unknown) -> SizeDoc:
    work = ladder.work
    tokens, batch = (
        (work.training.sequence_tokens, work.training.micro_batch)
        if work.training
        else (work.serving.context_tokens, work.serving.concurrency)
        if work.serving
        else (0, 0)
    )
    known = None if isinstance(sized, Unknown) else sized
    return SizeDoc(
        task=str(work.task),
        engine=ladder.engine.id,
        weight_format=work.weights.id,
        tokens=tokens,
        batch=batch,
        largest=_held_doc(known.largest) if known else None,
        half_empty=_held_doc(known.half_empty) if known else None,
        too_small_for=known.too_small_for.id if known and known.too_small_for else None,
        reason=sized.reason if isinstance(sized, Unknown) else None,
    )


def _held_doc(held: Held | None) -> HeldDoc | None:
    if held is None:
        return None
    return HeldDoc(model=held.model.id, params=held.model.params_total, share_of_usable=held.fraction)


def _reference_doc(name: str, work: Workload) -> ReferenceDoc:
    training, serving = work.training, work.serving
    return ReferenceDoc(
        result=name,
        task=str(work.task),
        model=work.model.id,
        engine=work.engine_id,
        weight_format=work.weights.id,
        prompt_tokens=serving.prompt_tokens if serving else None,
        output_tokens=serving.output_tokens if serving else None,
        sequence_tokens=training.sequence_tokens if training else None,
        batch=training.micro_batch if training else None,
    )
