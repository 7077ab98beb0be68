"""``fit`` without a card answers for the cheapest that surely holds the work."""

from decimal import Decimal

import pytest

from rackrate import api
from rackrate.app.context import context
from rackrate.evidence import Unknown
from rackrate.problems import Refused

LLAMA7, LLAMA70, DEEPSEEK = "meta-llama/Llama-2-7b-hf", "meta-llama/Meta-Llama-3.1-70B", "deepseek-ai/DeepSeek-V3"


def assumed(document):
    return {a.key: a for a in document.assumptions}


def test_the_cheapest_card_that_holds_it_is_answered_for():
    found = api.fit({"model": LLAMA70})
    assert found.verdict == "fits"
    prices = [Decimal(c.price_per_hour) for c in found.cheapest]
    assert prices == sorted(prices)
    assert (found.cheapest[0].accelerator, found.cheapest[0].gpus) == (found.accelerator, found.gpus)
    made = assumed(found)
    assert (made["limits.gpus"].value, made["limits.gpu_counts"].value) == (found.accelerator, str(found.gpus))


def test_no_cheaper_one_of_any_count_was_left_out():
    """Asked with each count alone, none is cheaper than the one that was chosen."""
    best = Decimal(api.fit({"model": LLAMA70}).cheapest[0].price_per_hour)
    each = [api.fit({"model": LLAMA70, "limits": {"gpu_counts": [n]}}) for n in (1, 2, 4, 8)]
    assert min(Decimal(found.cheapest[0].price_per_hour) for found in each if found.cheapest) == best
    assert all("limits.gpu_counts" not in assumed(found) for found in each)


def test_a_named_card_gives_the_same_account():
    free = api.fit({"model": LLAMA7})
    named = api.fit({"model": LLAMA7, "limits": {"gpus": [free.accelerator], "gpu_counts": [free.gpus]}})
    assert (named.verdict, named.components, named.layout) == (free.verdict, free.components, free.layout)
    assert "limits.gpus" not in assumed(named)


def test_limits_choose_among_cards():
    assert api.fit({"model": LLAMA7, "limits": {"vendors": ["AMD"]}}).product.startswith("Instinct")
    wanted = api.fit({"model": LLAMA7, "limits": {"require": ["fp8_compute"], "max_gpus": 1}})
    assert wanted.gpus == 1
    assert wanted.accelerator != "a40"


def test_a_division_asked_for_says_how_many_cards():
    found = api.fit({"model": LLAMA70, "parallel": {"tensor": 4}})
    assert found.gpus >= 4
    assert found.layout.startswith("tp4")


def test_what_nothing_holds_is_answered_for_the_largest_card():
    found = api.fit({"model": DEEPSEEK, "task": "full_finetune"})
    assert found.verdict == "does_not_fit"
    assert found.cheapest == []
    assert assumed(found)["limits.gpus"].why == "largest_rented"


def test_a_card_that_nobody_rents_out_is_no_answer():
    """The card with most memory in the facts is announced only."""
    cards = context().book.accelerators.values()
    announced = max(
        (card for card in cards if not isinstance(card.memory_total_bytes, Unknown)), key=lambda c: c.memory_total_bytes
    )
    assert announced.id == "mi455x-432"
    found = api.fit({"model": DEEPSEEK, "task": "full_finetune"})
    assert found.accelerator != announced.id


def test_several_names_are_refused():
    with pytest.raises(Refused):
        api.fit({"model": LLAMA7, "limits": {"gpus": ["a40", "l40s"]}})
