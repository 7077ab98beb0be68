"""The Python API as a type checker sees it: checked by mypy, and run by tests/app/test_typing.py."""

from datetime import date
from typing import assert_type

from rackrate import api
from rackrate.api import (
    Finding,
    FitDocument,
    GpuDocument,
    ModelDocument,
    OffersDocument,
    PlanDocument,
    Refused,
    SpeedDocument,
    to_json,
)

JOB = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "30M"}}


def plan() -> PlanDocument:
    """A plan, from a table of keys and from keys by path."""
    answer = api.plan(JOB, {"limits.max_gpus": 1}, rank="time", limit=2, at=date(2026, 11, 30))
    assert_type(answer, PlanDocument)
    best = answer.plans[0]
    assert_type(best.accelerator, str)
    assert_type(best.gpus, int)
    assert_type(best.fit.headroom_bytes, float)
    assert_type(best.hours.likely, float)
    assert_type(best.cost.likely, str)
    assert_type([line.amount for line in best.cost.lines], list[str])
    assert_type(best.speed.first_token_s is None, bool)
    for group in answer.rejected:
        assert_type(group.count, int)
        if group.nearest is not None and group.nearest.change is not None:
            assert_type(group.nearest.change.knob, str)
    return answer


def fit() -> FitDocument:
    """An account of memory."""
    answer = api.fit({**JOB, "limits": {"gpus": ["a40"]}})
    assert_type(answer, FitDocument)
    assert_type(answer.verdict, str)
    assert_type([part.bytes.likely for part in answer.components], list[float])
    return answer


def speed() -> SpeedDocument:
    """Two numbers of cards."""
    answer = api.speed(JOB, {"limits.gpus": ["a40"], "limits.gpu_counts": [1, 2]})
    assert_type(answer, SpeedDocument)
    assert_type([machine.gpus for card in answer.cards for machine in card.machines], list[int])
    assert_type(answer.cards[0].machines[0].parts[0].share_of_ceiling, float)
    return answer


def gpu() -> GpuDocument:
    """Facts of two cards."""
    answer = api.gpu(["a40", "a100-pcie-80"], currency="CNY")
    assert_type(answer, GpuDocument)
    assert_type([card.memory_sold_gb for card in answer.gpus], list[float])
    return answer


def model() -> ModelDocument:
    """One bundled model and one by its name."""
    answer = api.model(["Qwen/Qwen3-8B", "mistral-large-instruct-2407"])
    assert_type(answer, ModelDocument)
    assert_type([each.params_total for each in answer.models], list[int])
    assert_type([kept.contexts[0].bytes.likely for kept in answer.models[0].cache], list[float])
    return answer


def offers() -> OffersDocument:
    """A price list."""
    answer = api.offers({"gpus": ["a40"], "max_price": "2 USD"}, limit=3, at=date(2026, 11, 30))
    assert_type(answer, OffersDocument)
    assert_type([offer.shown_per_gpu_hour for offer in answer.offers], list[str | None])
    return answer


def refused() -> tuple[Finding, ...]:
    """What is wrong with a request."""
    try:
        api.plan({"model": "no such model"})
    except Refused as wrong:
        assert_type(wrong.findings, tuple[Finding, ...])
        assert_type(wrong.findings[0].action, str)
        return wrong.findings
    return ()


def text() -> str:
    """A document as JSON."""
    return assert_type(to_json(gpu()), str)


def wrong() -> None:
    """What a type checker must refuse: mypy reports an ignore that is not needed."""
    api.plan(JOB, rank=3)  # type: ignore[arg-type]
    api.fit(JOB, at="2026-11-30")  # type: ignore[arg-type]
    api.gpu(["a40"]).cards  # type: ignore[attr-defined]  # noqa: B018
    gpu().gpus[0].id = "a100"  # type: ignore[misc]
