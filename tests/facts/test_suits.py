"""What cards suit: rules over facts, with no card named in them."""

import inspect

import pytest

from rackrate.facts import suits as rules
from rackrate.facts.suits import Verdict, lacks, suits
from rackrate.values import replace


def verdict(card, work):
    return next(suit for suit in suits(card) if suit.work == work)


def test_every_card_gets_an_answer_to_every_rule(book):
    works = [suit.work for suit in suits(book.accelerators["a40"])]
    assert len(works) == len(set(works)) == 15
    for card in book.accelerators.values():
        assert [suit.work for suit in suits(card)] == works


def test_no_rule_names_a_card(book):
    source = inspect.getsource(rules)
    assert not [name for name in book.accelerators if f'"{name}"' in source]


@pytest.mark.parametrize(
    "quantity", ["bandwidth_bytes_per_s", "peak_fp16_flop_per_s", "peak_fp64_flop_per_s", "power_limit_w"]
)
def test_a_missing_fact_is_unknown_and_never_a_pass(book, quantity):
    card = book.accelerators["a40"]
    bare = replace(card, facts={name: fact for name, fact in card.facts.items() if name != quantity})
    changed = [s for s, before in zip(suits(bare), suits(card), strict=True) if s != before]
    assert changed
    assert {suit.verdict for suit in changed} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("card", "work", "expected", "because"),
    [
        ("a100-sxm4-40", "text_generation", Verdict.SUITED, "high_bandwidth"),
        ("a40", "text_generation", Verdict.LIMITED, "low_bandwidth"),
        ("rtx5090", "text_generation", Verdict.SUITED, "high_bandwidth"),
        ("v100-sxm2-32", "bf16_arithmetic", Verdict.UNSUITED, "no_bf16"),
        ("l40s", "fp8_arithmetic", Verdict.SUITED, "has_fp8"),
        ("mi300x-192", "fp8_arithmetic", Verdict.SUITED, "has_fp8"),
        ("mi250x-128", "fp8_arithmetic", Verdict.UNKNOWN, "rate_unknown"),
        ("b200-180", "fp4_arithmetic", Verdict.SUITED, "has_fp4"),
        ("h200-sxm-141", "fp4_arithmetic", Verdict.UNSUITED, "no_fp4"),
        ("b300-270", "int8_arithmetic", Verdict.UNSUITED, "int8_cut"),
        ("b300-270", "double_precision", Verdict.UNSUITED, "slow_fp64"),
        ("p40", "half_precision", Verdict.UNSUITED, "slow_fp16"),
        ("p40", "int8_arithmetic", Verdict.SUITED, "fast_int8"),
        ("h800-sxm5-80", "double_precision", Verdict.UNSUITED, "slow_fp64"),
        ("a100-pcie-80", "double_precision", Verdict.SUITED, "fast_fp64"),
        ("a100-pcie-80", "training_over_eight", Verdict.LIMITED, "bridge"),
        ("l40s", "training_over_eight", Verdict.UNSUITED, "pcie_only"),
        ("mi300x-192", "training_over_eight", Verdict.LIMITED, "vendor_link"),
        ("rtx3090", "unattended_runs", Verdict.LIMITED, "no_ecc"),
        ("rtx3080-20-mod", "unattended_runs", Verdict.UNSUITED, "modified"),
        ("a30", "sharing", Verdict.SUITED, "mig"),
        ("a6000", "workstation", Verdict.SUITED, "fan"),
        ("h100-sxm5-80", "workstation", Verdict.UNSUITED, "socket"),
        ("l4", "tight_power", Verdict.SUITED, "low_power"),
        ("b200-180", "tight_power", Verdict.UNSUITED, "high_power"),
        ("gaudi3", "cuda_programs", Verdict.UNSUITED, "no_cuda"),
    ],
)
def test_what_decides(book, card, work, expected, because):
    suit = verdict(book.accelerators[card], work)
    assert (suit.verdict, suit.because) == (expected, because)


def test_what_a_card_lacks_is_sure(book):
    assert lacks(book.accelerators["a40"]) == ("fp8", "fp4")
    assert lacks(book.accelerators["t4"]) == ("bf16", "tf32", "fp8", "fp4")
    assert lacks(book.accelerators["mi300x-192"]) == ()


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((7, 5), ("bf16", "tf32", "fp8", "fp4")),
        ((8, 0), ("fp8", "fp4")),
        ((8, 6), ("fp8", "fp4")),
        ((8, 9), ("fp4",)),
        ((9, 0), ("fp4",)),
        ((10, 0), ()),
        (None, ()),
    ],
)
def test_a_card_of_the_first_capability_that_has_a_type_has_it(book, capability, expected):
    assert lacks(replace(book.accelerators["l4"], compute_capability=capability)) == expected


def test_cards_of_exactly_8_9_compute_in_fp8(book):
    ada = [card for card in book.accelerators.values() if card.compute_capability == (8, 9)]
    assert len(ada) > 5
    assert all("fp8" not in lacks(card) and "fp4" in lacks(card) for card in ada)
