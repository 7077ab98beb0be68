"""Which arithmetic a card uses, and how two limits combine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, serve, with_fact, without_fact

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.speed.roofline import arithmetic, rates, smooth_max

TERA = 1e12
times = st.floats(min_value=0, max_value=1e6)


@given(times, times)
def test_overlapping_times_take_at_least_the_longer_and_at_most_a_quarter_more(left, right):
    longer = max(left, right)
    assert longer <= smooth_max(left, right) <= longer * 2 ** (1 / 3) * (1 + 1e-12)


def test_two_equal_times_take_26_per_cent_more():
    assert smooth_max(1.0, 1.0) == pytest.approx(1.2599, abs=1e-4)


@pytest.mark.parametrize(
    ("card", "form", "precision", "expected"),
    [
        ("a40", "bf16", Precision.BF16, (Precision.BF16, 149.7)),
        ("a40", "fp8", Precision.BF16, (Precision.BF16, 149.7)),  # Ampere has no FP8: the weights are expanded
        ("h100-sxm5-80", "fp8", Precision.BF16, (Precision.FP8, 1979)),
        ("h100-sxm5-80", "fp8-weight-only", Precision.BF16, (Precision.BF16, 989)),
        ("h100-sxm5-80", "awq-int4", Precision.FP16, (Precision.FP16, 989)),
        ("h100-sxm5-80", "nvfp4", Precision.BF16, (Precision.BF16, 989)),  # FP4 units come with Blackwell
        ("rtx4090", "gguf-q4_k_m", Precision.FP16, (Precision.FP16_ACC16, 330)),
        ("rtx4090", "fp16", Precision.FP16, (Precision.FP16, 165)),
        ("v100-sxm2-16", "bf16", Precision.BF16, (Precision.FP32, 15.7)),
        ("p40", "fp16", Precision.FP16, (Precision.FP32, 11.8)),
        ("a100-sxm4-80", "int8", Precision.BF16, (Precision.BF16, 312)),  # LLM.int8() is not faster than 16 bits
        ("a100-sxm4-80", "int8-w8a8", Precision.BF16, (Precision.INT8, 624)),
    ],
)
def test_arithmetic_follows_from_format_and_card(book, card, form, precision, expected):
    found = known(arithmetic(book.accelerators[card], serve(book, LLAMA_7B, form, precision=precision)))
    assert found == (expected[0], pytest.approx(expected[1] * TERA, rel=0.01))


def test_missing_16_bit_arithmetic_is_flagged_as_emulated(book):
    workload = serve(book, LLAMA_7B, "bf16", precision=Precision.BF16)
    assert known(rates(book.accelerators["t4"], workload)).emulated
    assert not known(rates(book.accelerators["l4"], workload)).emulated


@pytest.mark.parametrize("quantity", ["bandwidth_bytes_per_s", "peak_bf16_flop_per_s"])
def test_missing_facts_are_unknown_with_a_reason_and_never_zero(book, quantity):
    card = without_fact(without_fact(book.accelerators["a40"], quantity), "peak_fp32_flop_per_s")
    found = rates(card, serve(book, LLAMA_7B, "bf16", precision=Precision.BF16))
    assert isinstance(found, Unknown)
    assert "a40" in found.reason


def test_power_limit_holds_back_a_72_watt_card_and_not_a_bigger_one(book):
    workload = serve(book, LLAMA_7B, "bf16", precision=Precision.BF16)
    l4 = known(rates(book.accelerators["l4"], workload))
    assert 35 * TERA < l4.reached(0.62) < 70 * TERA < 0.62 * l4.flop_per_s  # torch matmul on L4: 65-70
    a100 = known(rates(book.accelerators["a100-sxm4-80"], workload))
    assert a100.reached(0.62) == pytest.approx(0.62 * a100.flop_per_s, rel=0.1)


def test_a_lower_power_limit_never_makes_a_card_faster(book):
    workload = serve(book, LLAMA_7B, "bf16", precision=Precision.BF16)
    reached = [
        known(rates(with_fact(book.accelerators["a40"], "power_limit_w", watts), workload)).reached(0.6)
        for watts in (100, 200, 300, 600)
    ]
    assert reached == sorted(reached)
