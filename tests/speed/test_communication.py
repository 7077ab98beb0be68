"""Links and what collectives over them cost."""

import pytest
from tests.speed.build import with_fact, without_fact

from rackrate.facts.accelerator import Interconnect
from rackrate.speed.communication import all_reduce_s, gather_s, link, tensor_parallel_s

MB = 1e6


def test_ring_moves_twice_n_minus_one_nths(book):
    eight = link(book.accelerators["a100-sxm4-80"], 8)
    assert all_reduce_s(eight, 8, 64 * MB) == pytest.approx(eight.latency_s + 2 * 7 / 8 * 64 * MB / eight.bytes_per_s)
    assert gather_s(eight, 8, 64 * MB) < all_reduce_s(eight, 8, 64 * MB)


def test_one_card_has_nothing_to_say(book):
    alone = link(book.accelerators["a40"], 1)
    assert all_reduce_s(alone, 1, MB) == gather_s(alone, 1, MB) == tensor_parallel_s(alone, 1, 32, MB) == 0


@pytest.mark.parametrize(
    ("card", "gpus", "kind", "published"),
    [
        ("a100-sxm4-80", 8, Interconnect.NVSWITCH, 174e9),  # microsoft/vidur, 67 MB
        ("h100-sxm5-80", 8, Interconnect.NVSWITCH, 337e9),  # the same
        ("a100-pcie-80", 2, Interconnect.NVLINK_BRIDGE, 193e9),  # Azure/azurehpc-health-checks
        ("l40s", 2, Interconnect.PCIE, 20e9),  # ai-dynamo/aiconfigurator
        ("mi300x-192", 8, Interconnect.OTHER, 313e9),  # stas00/ml-engineering
    ],
)
def test_bus_bandwidth_is_near_published_measurements(book, card, gpus, kind, published):
    found = link(book.accelerators[card], gpus)
    assert found.kind is kind
    assert found.bytes_per_s == pytest.approx(published, rel=0.2)


def test_a_third_card_falls_back_from_the_bridge_to_pcie(book):
    a40 = book.accelerators["a40"]
    assert link(a40, 2).kind is Interconnect.NVLINK_BRIDGE
    assert link(a40, 4).kind is Interconnect.PCIE
    assert link(a40, 2).bytes_per_s > 2 * link(a40, 4).bytes_per_s


def test_pcie_rate_doubles_with_the_generation_and_drops_with_more_cards(book):
    card = without_fact(book.accelerators["l40s"], "pcie_gen")
    fourth, fifth = (link(with_fact(card, "pcie_gen", generation), 4).bytes_per_s for generation in (4.0, 5.0))
    assert fifth == 2 * fourth
    assert link(card, 4).bytes_per_s == fourth
    assert [link(card, n).bytes_per_s for n in (2, 4, 8, 16)] == sorted(
        (link(card, n).bytes_per_s for n in (2, 4, 8, 16)), reverse=True
    )


def test_a_mesh_of_links_is_never_faster_than_the_links_of_one_card(book):
    card = book.accelerators["v100-sxm2-16"]
    one_way = card.number("nvlink_bytes_per_s_one_way")
    assert link(card, 8).kind is Interconnect.OTHER
    assert link(card, 2).bytes_per_s < link(card, 4).bytes_per_s <= one_way
    assert link(card, 8).bytes_per_s <= one_way
