"""Networks as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.workload.network import Network, network_of


@pytest.mark.parametrize(
    ("text", "bits", "adapters"),
    [
        ("100 Gb/s", 100e9, 1),
        ("100Gbps", 100e9, 1),
        ("InfiniBand 400 Gb/s", 400e9, 1),
        ("8 x 400 Gb/s", 400e9, 8),
        ("8x400gbit/s", 400e9, 8),
        ("8 × RoCE 200 Gb/s", 200e9, 8),
        ("25 GbE", 25e9, 1),
        ("2.5G Ethernet", 2.5e9, 1),
        ("1000 Mb/s", 1e9, 1),
        ("50 GB/s", 400e9, 1),
        ("0.4 Tbps", 400e9, 1),
    ],
)
def test_spellings(text, bits, adapters):
    assert network_of(text) == Network(bits_per_s=pytest.approx(bits), adapters=adapters)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "fast", "400", "-1 Gb/s", "0 Gb/s", "0 x 100 Gb/s", "65 x 100 Gb/s", "1e9 Gb/s", "nan Gb/s", "100 gB",
        "100 Gb", "99999 Gb/s", "100 Gb/s; 1", "8 x 8 x 10 Gb/s", "inf Gb/s", "100 Kb/s", "١٠٠ Gb/s", "100 Gb/s\n2",
        "infiniband", "1" * 150 + " Gb/s",
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match="write"):
        network_of(text)


@given(st.text(max_size=40))
def test_no_text_does_more_than_be_refused(text):
    try:
        found = network_of(text)
    except ValueError:
        return
    assert network_of(found.text) == found


@given(st.integers(1, 64), st.integers(1, 10_000))
def test_what_is_written_is_read_again(adapters, gigabits):
    network = Network(bits_per_s=gigabits * 1e9, adapters=adapters)
    assert network_of(network.text) == network
    assert network.bytes_per_s == adapters * gigabits * 1e9 / 8
