"""A measured speed in requests: what it changes in answers, and what it leaves alone."""

from datetime import date

import pytest

from rackrate import api
from rackrate.problems import Refused

AT = date(2026, 11, 30)
CHAT = {"model": "meta-llama/Llama-2-13b-hf", "task": "inference"}
CARDS = {"limits.gpus": ["l40s", "a40"], "limits.gpu_counts": [1, 2]}


def rates(document):
    return {
        (card.accelerator, each.gpus): each.per_user_tokens_per_s.likely
        for card in document.cards
        for each in card.machines
    }


def test_a_measured_speed_corrects_its_card_alone():
    before = rates(api.speed(CHAT, CARDS, at=AT))
    found = api.speed(CHAT, {**CARDS, "measured": "12 tok/s on 1 x l40s"}, at=AT)
    after = rates(found)
    assert after["l40s", 1] == pytest.approx(12)
    assert after["l40s", 2] < before["l40s", 2]
    assert after["a40", 1] == before["a40", 1]
    assert after["a40", 2] == before["a40", 2]
    assert found.judged.standing == "slow"
    assert found.judged.share_of_expected == pytest.approx(12 / before["l40s", 1])


def test_what_was_measured_as_a_time_is_told_as_one():
    found = api.speed(CHAT, {"limits.gpus": ["l40s"], "measured": "80 ms/token"}, at=AT).judged
    assert (found.value, found.unit) == (pytest.approx(0.08), "s a token of one request")
    assert found.ceiling < found.expected.low < found.expected.high < found.value


def test_an_impossible_speed_corrects_nothing():
    before = rates(api.speed(CHAT, CARDS, at=AT))
    found = api.speed(CHAT, {**CARDS, "measured": "900 tok/s on l40s"}, at=AT)
    assert found.judged.standing == "impossible"
    assert found.judged.corrections == []
    assert found.judged.share_of_ceiling > 1
    assert rates(found) == before


def test_the_least_number_of_cards_is_the_one_that_was_measured():
    flags = {"limits.gpus": ["l40s"], "limits.gpu_counts": [4, 2], "measured": "30 tok/s"}
    assert api.speed(CHAT, flags, at=AT).judged.gpus == 2
    assert api.speed(CHAT, {**flags, "measured": "12 tok/s on 1 x l40s"}, at=AT).judged.gpus == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"measured": "32 tok/s"}, "no card named"),
        ({**CARDS, "measured": "32 tok/s"}, "2 cards named"),
        ({"measured": "32 tok/s on rtx4090"}, "does not fit"),
        ({"measured": "32 tok/s on 0 x a40"}, "0 cards"),
    ],
)
def test_a_machine_that_cannot_be_told_is_refused_with_what_to_do(flags, said):
    with pytest.raises(Refused) as refused:
        api.speed(CHAT, flags, at=AT)
    (finding,) = refused.value.findings
    assert said in finding.observed
    assert finding.action


def test_a_plan_counts_on_it():
    only = {"limits.gpus": ["a40"], "limits.gpu_counts": [1]}
    before = api.plan(CHAT, only, at=AT)
    after = api.plan(CHAT, {**only, "measured": "9 tok/s"}, at=AT)
    assert before.judged is None
    assert after.judged.standing == "slow"
    assert after.plans[0].speed.per_user_tokens_per_s.likely == pytest.approx(9)
    assert before.plans[0].speed.per_user_tokens_per_s.likely > 12
