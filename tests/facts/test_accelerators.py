"""Cards: which fact wins, what memory a card without a reading gets, and what joins several of them."""

import itertools
import sys

import pytest

from rackrate.evidence import Kind, Unknown
from rackrate.facts import rows
from rackrate.facts.accelerator import Interconnect, Precision
from rackrate.units import GB, GIB, MIB, TERA


def cells(value, *, kind="published", condition="", seen="2026-11-30", quantity="bandwidth", unit="GB/s"):
    return ("x", quantity, str(value), unit, condition, kind, "somewhere", seen, "")


def winner(*found):
    return rows.fact(rows.winners(found)["x"][rows.QUANTITIES[found[0][1]][1]])


# ---------------------------------------------------------------- precedence


def test_a_row_under_a_condition_never_wins_over_the_card_as_it_comes():
    assert winner(cells(1, kind="measured", condition="ecc off"), cells(2, kind="assumed")).value == 2 * GB
    assert winner(cells(2, kind="assumed"), cells(1, kind="measured", condition="ecc off")).value == 2 * GB


def test_a_reading_wins_over_print_and_print_over_arithmetic():
    order = ["measured", "published", "derived", "assumed"]
    for better, worse in itertools.pairwise(order):
        assert winner(cells(1, kind=worse), cells(2, kind=better)).value == 2 * GB
        assert winner(cells(2, kind=better), cells(1, kind=worse)).value == 2 * GB


def test_the_newest_wins_then_the_first():
    assert winner(cells(1, seen="2025-01-01"), cells(2, seen="2026-01-01")).value == 2 * GB
    assert winner(cells(2, seen="2026-01-01"), cells(1, seen="2025-01-01")).value == 2 * GB
    assert winner(cells(2), cells(1)).value == 2 * GB


def test_a_row_under_a_condition_is_better_than_none():
    assert winner(cells(1, condition="as marketed")).condition == "as marketed"


@pytest.mark.parametrize(
    ("card", "quantity", "value"),
    [
        ("a10g", "peak_bf16_flop_per_s", 70 * TERA),  # not the A10's 125 that several tables print
        ("l40", "peak_bf16_flop_per_s", 181 * TERA),  # not 362
        ("rtx4090", "peak_bf16_flop_per_s", 165.2 * TERA),  # not the non-tensor 82.6
        ("b300-270", "peak_int8_flop_per_s", 153.5 * TERA),  # not 4500
        ("gaudi3", "peak_bf16_flop_per_s", 1677 * TERA),
        ("b200-180", "bandwidth_bytes_per_s", 8000 * GB),
        ("mi300x-192", "bandwidth_bytes_per_s", 5300 * GB),  # not 10300
        ("l40s", "power_limit_w", 350),  # not the database's 300
        ("a100-sxm4-80", "power_limit_w", 400),
        ("p40", "memory_total_bytes", 23040 * MIB),  # ECC on
        ("l20", "memory_total_bytes", 46068 * MIB),
        ("gb200-186", "memory_total_bytes", 189471 * MIB),  # not the mock profile
        ("v100-sxm2-32", "memory_total_bytes", 32768 * MIB),
    ],
)
def test_rows_that_disagree_are_settled_as_written(book, tables, card, quantity, value):
    assert book.accelerators[card].number(quantity) == pytest.approx(value)
    rivals = [
        row
        for row in tables["accelerator_facts.csv"]
        if row["accelerator"] == card and rows.QUANTITIES[row["quantity"]][1] == quantity
    ]
    assert len({row["value"] for row in rivals}) > 1, "the row that lost must stay in the file"


# ---------------------------------------------------------------- numbers


def test_the_a40_is_what_its_datasheet_says(book):
    card = book.accelerators["a40"]
    assert card.memory_sold_gb == 48
    assert card.memory_total_bytes == 46068 * MIB
    assert card.bandwidth_bytes_per_s == pytest.approx(695.8 * GB)
    peaks = {p: card.peak_flop_per_s(p) for p in Precision}
    assert peaks[Precision.BF16] == peaks[Precision.FP16] == pytest.approx(149.7 * TERA)
    assert peaks[Precision.TF32] == pytest.approx(74.8 * TERA)
    assert peaks[Precision.INT8] == pytest.approx(299.3 * TERA)
    assert isinstance(peaks[Precision.FP8], Unknown)
    assert card.number("power_limit_w") == 300
    assert (card.compute_capability, card.cooling, card.ecc, card.rt_cores) == ((8, 6), "passive", True, 84)


def test_links_are_loaded_for_one_direction(book):
    assert book.accelerators["a40"].number("nvlink_bytes_per_s_one_way") == 56.25 * GB
    assert book.accelerators["a100-sxm4-80"].number("nvlink_bytes_per_s_one_way") == 300 * GB
    assert book.accelerators["h100-sxm5-80"].number("nvlink_bytes_per_s_one_way") == 450 * GB


def test_every_card_has_memory_and_every_fact_a_public_source(book):
    for card in book.accelerators.values():
        assert isinstance(card.memory_total_bytes, float), card.id
        for name, fact in card.facts.items():
            assert fact.source.strip(), (card.id, name)
            assert "shared/" not in fact.source
            assert fact.value > 0 or name == "video_encoders", (card.id, name)  # a card can have none


def test_the_total_is_never_above_the_label(book):
    for card in book.accelerators.values():
        assert card.memory_total_bytes <= card.memory_sold_gb * GIB, card.id


def test_what_the_driver_keeps_is_a_small_part_of_the_total(book):
    kept = {
        c.id: c.number("memory_reserved_bytes")
        for c in book.accelerators.values()
        if "memory_reserved_bytes" in c.facts
    }
    assert kept["h100-sxm5-80"] == 480 * MIB
    # What is left is what PyTorch and vLLM print for a B200: 178.36 GiB (vllm-project/vllm issue 21489).
    b200 = book.accelerators["b200-180"]
    assert b200.memory_total_bytes - kept["b200-180"] == pytest.approx(178.36 * GIB, rel=1e-4)
    assert all(value < 0.03 * book.accelerators[name].memory_total_bytes for name, value in kept.items())


# ---------------------------------------------------------------- the rule for totals that nobody reported


def readings(tables):
    """Default driver readings by card: the rows that the rule must not exceed."""
    return {
        row["accelerator"]: float(row["value"])
        for row in tables["accelerator_facts.csv"]
        if row["quantity"] == "memory_total" and not row["condition"] and row["kind"] == "measured"
    }


def ruled_mib(card, tables):
    return float(rows.ruled_memory(card, tables["memory_rules.csv"], "2026-11-30")[2])


def test_the_rule_takes_the_low_side_of_every_reading(tables, capsys):
    cards = {row["id"]: row for row in tables["accelerators.csv"]}
    seen = readings(tables)
    assert len(seen) >= 44
    errors = {
        name: ruled_mib(cards[name], tables) / mib - 1
        for name, mib in seen.items()
        if cards[name]["vendor"] == "NVIDIA" and cards[name]["form_factor"] != "SoC"
    }
    with capsys.disabled():
        worst = min(errors, key=errors.get)
        sys.stdout.write(
            f"\nmemory rule on {len(errors)} readings: {errors[worst]:+.2%} ({worst}) to {max(errors.values()):+.2%}\n"
        )
    assert max(errors.values()) <= 0.005
    assert min(errors.values()) >= -0.02


def test_the_rule_also_holds_for_a_reading_it_was_not_made_from(tables):
    """Without its siblings' lowest member a rule would still stay within 1.5 % above the truth."""
    cards = {row["id"]: row for row in tables["accelerators.csv"]}
    seen = readings(tables)
    for rule in tables["memory_rules.csv"]:
        siblings = [name for name in rule["siblings"].split("|") if name in seen]
        shares = {name: seen[name] * MIB / (float(cards[name]["memory_sold_gb"]) * GIB) for name in siblings}
        for left_out in siblings:
            others = [share for name, share in shares.items() if name != left_out]
            if others:
                assert min(others) / shares[left_out] - 1 <= 0.015, (rule["id"], left_out)


def test_a_total_from_the_rule_says_so(book):
    fact = book.accelerators["l40"].facts["memory_total_bytes"]
    assert fact.kind is Kind.DERIVED
    assert "nvidia-gddr-ecc" in fact.source
    assert "a40" in fact.source
    assert fact.value == pytest.approx(46068 * MIB, rel=0.005)
    assumed = book.accelerators["tpu-v5e"].facts["memory_total_bytes"]
    assert assumed.kind is Kind.ASSUMED
    assert assumed.value <= 16 * GB * 1.0001


def test_the_last_rule_fits_every_card(tables):
    assert {
        key: value
        for key, value in tables["memory_rules.csv"][-1].items()
        if key in {"vendor", "memory_type", "ecc_default", "architectures"}
    } == dict.fromkeys(("vendor", "memory_type", "ecc_default", "architectures"), "")


def test_a_card_of_two_devices_offers_the_memory_of_one(book):
    card = book.accelerators["mi250x-128"]
    assert card.number("devices_per_card") == 2
    assert card.memory_total_bytes == 64 * GIB


# ---------------------------------------------------------------- what joins several cards


@pytest.mark.parametrize(
    ("card", "gpus", "link"),
    [
        ("a40", 1, Interconnect.NONE),
        ("a40", 2, Interconnect.NVLINK_BRIDGE),
        ("a40", 4, Interconnect.PCIE),
        ("a100-pcie-80", 2, Interconnect.NVLINK_BRIDGE),
        ("a100-pcie-80", 8, Interconnect.PCIE),
        ("a100-sxm4-80", 8, Interconnect.NVSWITCH),
        ("a100-sxm4-40", 2, Interconnect.NVSWITCH),
        ("h20-96", 8, Interconnect.NVSWITCH),
        ("h200-nvl-141", 4, Interconnect.NVLINK_BRIDGE),
        ("h200-nvl-141", 8, Interconnect.PCIE),
        ("b200-180", 8, Interconnect.NVSWITCH),
        ("gb200-186", 4, Interconnect.NVSWITCH),
        ("gh200-96", 2, Interconnect.OTHER),  # no switch in the fact rows, no PCIe slot either
        ("v100-sxm2-16", 8, Interconnect.OTHER),  # a cube mesh of NVLink: NVSwitch came with the DGX-2
        ("p100-sxm2", 4, Interconnect.OTHER),
        ("v100-sxm3-32", 16, Interconnect.NVSWITCH),
        ("v100-pcie-16", 2, Interconnect.PCIE),
        ("l40s", 2, Interconnect.PCIE),
        ("rtx4090", 8, Interconnect.PCIE),
        ("rtx3090", 2, Interconnect.NVLINK_BRIDGE),
        ("mi300x-192", 8, Interconnect.OTHER),
        ("mi210-64", 2, Interconnect.PCIE),
        ("gaudi2", 8, Interconnect.OTHER),
        ("tpu-v5e", 4, Interconnect.OTHER),
        ("trainium1", 16, Interconnect.OTHER),
        ("ascend-910b-64", 8, Interconnect.OTHER),
        ("mlu370-x8", 2, Interconnect.OTHER),
        ("mlu370-x8", 8, Interconnect.PCIE),
        ("orin-64", 2, Interconnect.OTHER),
    ],
)
def test_the_link_among_cards_of_one_machine(book, card, gpus, link):
    assert book.accelerators[card].interconnect(gpus) is link


def test_more_cards_never_have_a_better_link(book):
    order = [Interconnect.PCIE, Interconnect.NVLINK_BRIDGE, Interconnect.OTHER, Interconnect.NVSWITCH]
    for card in book.accelerators.values():
        ranks = [order.index(card.interconnect(gpus)) for gpus in (2, 4, 8, 16)]
        assert ranks == sorted(ranks, reverse=True), card.id


# ---------------------------------------------------------------- the files


def test_all_ids_are_there_and_the_changed_cards_are_marked(book):
    assert [c.id for c in book.accelerators.values() if c.modified] == [
        "rtx4090-48-mod",
        "rtx2080ti-22-mod",
        "rtx3080-20-mod",
        "rtx4090d-48-mod",
    ]
    for name in ("a40", "a100-pcie-40", "h100-sxm5-80", "k80", "mi455x-432", "tpu-v7x", "mlu370-x8"):
        assert name in book.accelerators


def test_vendors_and_targets(book):
    assert book.accelerators["mi300x-192"].compute_capability is None
    assert book.accelerators["mi300x-192"].isa == "gfx942"
    assert book.accelerators["h100-sxm5-80"].compute_capability == (9, 0)


def test_a_card_of_two_devices_gives_each_half(book):
    card = book.accelerators["mi250-128"]
    assert card.bandwidth_bytes_per_s == card.number("bandwidth_bytes_per_s") / 2
    assert card.peak_flop_per_s(Precision.BF16) == card.number("peak_bf16_flop_per_s") / 2
    assert card.memory_total_bytes == 64 * 2**30
