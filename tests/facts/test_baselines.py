"""Baselines: every row is carried, kinds stay apart, what is suspect is never used, and nothing beats the card."""

from collections import Counter

import pytest

from rackrate.facts import bundled
from rackrate.facts.baselines import BaselineKind, Mark, baseline, published, reached
from rackrate.units import GB, TERA


@pytest.fixture(scope="module")
def figures():
    return bundled.baselines()


@pytest.fixture(scope="module")
def written(tables):
    return [baseline(row) for row in tables["baselines.csv"]]


def test_every_row_is_carried(written):
    """774 figures of 173 labels were collected: each is here, of one card, of several, or of none with the reason."""
    assert len(written) == 774
    assert len({figure.label for figure in written}) == 173
    assert Counter(min(len(figure.accelerators), 2) for figure in written) == {0: 170, 1: 563, 2: 41}
    assert all(figure.note for figure in written if not figure.accelerators)
    assert Counter(figure.kind for figure in written) == {
        BaselineKind.CROWD: 411,
        BaselineKind.MEASURED: 98,
        BaselineKind.FLOOR: 95,
        BaselineKind.REPORTED: 72,
        BaselineKind.BEST: 49,
        BaselineKind.TARGET: 33,
        BaselineKind.SUSTAINED: 15,
        BaselineKind.STATED: 1,
    }


def test_what_is_suspect_is_kept_in_the_file_and_refused_by_the_reader(written, figures):
    assert Counter(figure.mark for figure in written) == {
        Mark.NONE: 688,
        Mark.ABOVE_PEAK: 57,
        Mark.UPCAST: 3,
        Mark.SUSPECT: 26,
    }
    assert len(figures) == 774 - 26
    assert not [figure for figure in figures if figure.mark is Mark.SUSPECT]
    labels = {(figure.label, figure.quantity) for figure in written if figure.mark is Mark.SUSPECT}
    assert {("H200", "memory_test"), ("A100-SXM4-40GB", "memory_test"), ("A40", "matmul_fp16")} <= labels


def test_a_row_arrives_in_base_units(written):
    (top,) = [f for f in written if f.label == "A100-SXM4-80GB" and f.quantity == "matmul_bf16" and f.kind == "best"]
    assert (top.value, top.unit, top.accelerators) == (pytest.approx(271.2 * TERA), "flop/s", ("a100-sxm4-80",))
    (floor,) = [f for f in written if f.label == "A40" and f.quantity == "memory_test"]
    assert (floor.value, floor.kind) == (pytest.approx(423.675 * GB), BaselineKind.FLOOR)  # 423,675 MB/s
    (idle,) = [f for f in written if f.label == "A40" and f.quantity == "power_idle"]
    assert (idle.value, idle.highest) == (21, 30)


def test_kinds_are_never_mixed(figures):
    found = {(r.quantity, r.kind): r for r in reached("h100-sxm5-80", figures)}
    best, sustained, crowd = (found["matmul_bf16", kind] for kind in ("best", "sustained", "crowd"))
    assert best.high == pytest.approx(794.5 * TERA)
    assert sustained.high == pytest.approx(730 * TERA)
    assert (crowd.low, crowd.high) == (pytest.approx(783.66 * TERA), pytest.approx(797.51 * TERA))
    assert crowd.figures == 2
    floors = {r.quantity for r in reached("h100-sxm5-80", figures) if r.kind is BaselineKind.FLOOR}
    assert floors == {"host_link", "peer_one_way", "allreduce_bus", "targeted_stress", "memory_test"}


def test_a_figure_that_may_be_of_another_card_counts_for_none(figures):
    """``A100-80GB`` is PCIe or SXM: its 237 TFLOPS stand for neither."""
    unclear = [f for f in figures if f.label == "A100-80GB" and f.quantity == "matmul_bf16"]
    assert unclear[0].accelerators == ("a100-pcie-80", "a100-sxm4-80")
    for card in unclear[0].accelerators:
        assert 237 * TERA not in [r.low for r in reached(card, figures) if r.quantity == "matmul_bf16"]


def test_the_negative_example_is_not_what_an_a40_reaches(figures):
    highest = {r.quantity: r.high for r in reached("a40", figures)}
    assert highest["matmul_fp16"] == pytest.approx(119.18 * TERA)
    assert highest["matmul_bf16"] == pytest.approx(122.29 * TERA)
    assert highest["memory_read"] == pytest.approx(680 * GB)


@pytest.mark.parametrize(
    ("card", "quantity", "value"),
    [
        ("a40", "matmul_bf16", 149.7 * TERA),
        ("a40", "memory_read", 695.8 * GB),
        ("a40", "host_to_device", 31.5077 * GB),  # PCIe 4.0 x16: 16 GT/s x 16 lanes x 128/130
        ("h100-sxm5-80", "host_link", 63.0154 * GB),
        ("t4", "host_link", 15.7538 * GB),
        ("h100-sxm5-80", "peer_one_way", 450 * GB),
        ("h100-sxm5-80", "peer_both_ways", 900 * GB),
        ("h100-sxm5-80", "power_burn", 700),
    ],
)
def test_what_a_figure_is_held_against(book, card, quantity, value):
    assert published(book.accelerators[card], quantity).value == pytest.approx(value, rel=1e-5)


def test_what_has_nothing_published_beside_it(book):
    assert published(book.accelerators["a40"], "matmul_fp8") is None
    assert published(book.accelerators["l4"], "peer_one_way") is None
    assert published(book.accelerators["a40"], "power_idle") is None


def test_measured_shares_of_the_published_peak_are_plausible(book, figures):
    """Sure, unmarked figures of matrix products on tensor cores: never above the peak, seldom under a third of it."""
    shares = []
    for figure in figures:
        if len(figure.accelerators) != 1 or figure.mark or not figure.quantity.startswith("matmul_"):
            continue
        fact = published(book.accelerators[figure.accelerators[0]], figure.quantity)
        if fact is not None:
            shares.append(figure.value / fact.value)
    assert len(shares) > 150
    assert max(shares) <= 1.03
    assert sorted(shares)[len(shares) // 10] > 0.5


def test_the_reader_is_not_on_the_way_of_a_start():
    import subprocess
    import sys

    code = "import sys; from rackrate.facts import bundled; bundled.load(); print('rackrate.facts.baselines' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
