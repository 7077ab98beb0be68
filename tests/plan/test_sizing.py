"""Sizing and cost of results: properties that hold for every card."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.evidence import Unknown
from rackrate.facts import bundled
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Verdict
from rackrate.money import Money
from rackrate.plan.answer import Reason
from rackrate.plan.results import NoRate, Rate, cost_of, rate_on
from rackrate.plan.sizing import Ladder, ladder_models
from rackrate.plan.slices import slice_of
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_table

BOOK = bundled.load()
MODELS = ladder_models(map(BOOK.model, BOOK.model_ids))
CHAT = {"model": "meta-llama/Meta-Llama-3.1-8B", "task": "inference", "context": 4096}
TUNE = {"model": "meta-llama/Meta-Llama-3.1-8B", "task": "lora"}


def workload(table):
    return parse(request_from_table(table), BOOK).workload


def ladder(table, models=MODELS):
    work = workload(table)
    return Ladder(work, BOOK.engine(work.engine_id), models)


LADDERS = {"chat": ladder(CHAT), "tune": ladder(TUNE)}


@pytest.mark.parametrize("kind", LADDERS)
@pytest.mark.parametrize("card", ["rtx3060-12", "a40", "h200-sxm-141"])
def test_no_larger_model_of_the_list_surely_fits(kind, card):
    steps, accelerator = LADDERS[kind], BOOK.accelerators[card]
    sized = steps.on(accelerator)
    for model in steps.models[steps.models.index(sized.largest.model) + 1 :]:
        memory = estimate(replace(steps.work, model=model), accelerator, Layout(), steps.engine)
        assert isinstance(memory, Unknown) or memory.verdict is not Verdict.FITS, model.id


@given(st.sampled_from(sorted(BOOK.accelerators)), st.floats(0.2, 1.0))
def test_a_share_of_a_card_never_holds_more_than_the_card(name, share):
    card = BOOK.accelerators[name]
    for steps in LADDERS.values():
        whole, part = steps.on(card), steps.on(slice_of(card, share))
        if part.largest is not None:
            assert part.largest.model.params_total <= whole.largest.model.params_total


def test_a_card_that_holds_nothing_says_which_model_is_too_large():
    tiny = slice_of(BOOK.accelerators["m60"], 0.02)
    sized = LADDERS["chat"].on(tiny)
    assert sized.largest is None
    assert sized.half_empty is None
    assert sized.too_small_for == LADDERS["chat"].models[0]


def test_models_with_a_shorter_context_are_left_out():
    steps = ladder({**CHAT, "context": 65536})
    assert all(model.max_context is None or model.max_context >= 65536 for model in steps.models)
    assert len(steps.models) < len(LADDERS["chat"].models)


def test_the_list_has_dense_text_models_only():
    assert len(MODELS) > 150
    assert not [model for model in MODELS if model.is_moe or model.modality != "text"]


def test_a_card_of_unknown_memory_is_unknown():
    card = replace(BOOK.accelerators["a40"], facts={})
    assert isinstance(LADDERS["chat"].on(card), Unknown)


# ---------------------------------------------------------------- results


def test_the_cost_of_tokens_is_their_time_at_the_price():
    # A million tokens at 100 a second take 10,000 s = 2.7 h; at 1.80 an hour that is 5.00.
    assert cost_of(1e6, 100.0, Money(Decimal("1.80"), "USD")).rounded(4) == Money(Decimal("5.0000"), "USD")


@pytest.mark.parametrize(
    ("card", "table", "reason"),
    [
        ("p40", CHAT, Reason.ENGINE_UNSUPPORTED),
        ("t4", CHAT, Reason.DOES_NOT_FIT),
        ("ascend-910b-64", CHAT, Reason.SPEED_UNKNOWN),
        ("mlu370-x8", TUNE, Reason.ENGINE_UNSUPPORTED),
    ],
)
def test_why_a_card_has_no_rate(card, table, reason):
    work = workload(table)
    found = rate_on(BOOK.accelerators[card], work, BOOK.engine(work.engine_id))
    assert isinstance(found, NoRate)
    assert found.reason is reason


def test_a_rate_of_one_stream_is_of_one_sequence():
    work = workload(CHAT)
    found = rate_on(BOOK.accelerators["a40"], work, BOOK.engine("vllm"))
    assert isinstance(found, Rate)
    assert found.sequences == 1
    assert found.tokens_per_s.low < found.tokens_per_s.likely < found.tokens_per_s.high
    # 16 GB of weights at 696 GB/s: 43 tokens a second at most.
    assert found.tokens_per_s.high <= 695.8e9 / (2 * 7.5e9)
