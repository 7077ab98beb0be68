"""Properties that a card must have."""

import pytest

from rackrate.evidence import Unknown
from rackrate.workload.requirements import PROPERTIES, meets, parse_requirement, requirements


@pytest.mark.parametrize(
    ("card", "requirement", "answer"),
    [
        ("a40", "fp8_compute", False),  # compute capability 8.6: FP8 needs 8.9
        ("l40s", "fp8_compute", True),
        ("mi300x", "fp8_compute", None),  # no rate seen, and no compute capability to tell
        ("a40", "bf16", True),
        ("a40", "int8_compute", True),
        ("l40s", "int8_compute", True),  # no rate in the hand-made facts, but 8.9 includes it
        ("a40", "fp4_compute", False),
        ("a40", "nvlink", True),
        ("l40s", "nvlink", False),
        ("a40", "nvswitch", False),
        ("a100-sxm4-80", "nvswitch", True),
        ("a40", "ecc", True),
        ("mi300x", "ecc", None),
        ("a40", "rt_cores", None),
        ("a100-sxm4-80", "mig", True),
        ("a40", "mig", False),
        ("a40", "unmodified", True),
        ("a40", "min_memory_gb=48", True),
        ("a40", "min_memory_gb=49", False),
        ("a40", "min_compute_capability=8.6", True),
        ("a40", "min_compute_capability=8.9", False),
        ("a40", "min_compute_capability=8", True),
        ("mi300x", "min_compute_capability=8", False),
        ("a40", "min_bandwidth_gb_per_s=1500", True),
        ("a40", "min_bandwidth_gb_per_s=1501", False),
    ],
)
def test_meets(book, card, requirement, answer):
    found = meets(book.accelerators[card], requirement)
    assert isinstance(found, Unknown) if answer is None else found is answer


@pytest.mark.parametrize(
    "text", ["fp8", "", "ecc=1", "min_memory_gb", "min_memory_gb=big", "min_memory_gb=nan", "min_memory_gb=-1"]
)
def test_what_is_no_requirement_is_refused_with_what_to_write(text):
    with pytest.raises(ValueError, match=r"did you mean|choose from|write"):
        parse_requirement(text)


def test_requirements_are_written_in_one_way_and_once():
    assert requirements(["ECC", "ecc", "min-memory-gb = 40.0", "nonsense"]) == ("ecc", "min_memory_gb=40")


def test_every_property_answers_for_every_card(book):
    for card in book.accelerators.values():
        for name in PROPERTIES:
            answer = meets(card, f"{name}=1" if name.startswith("min_") else name)
            assert isinstance(answer, bool | Unknown)
