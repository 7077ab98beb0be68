"""Scaling: the numbers by which more cards are compared, and the targets that they are held to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.test_to_fit import BOOK, CHAT, FULL, estimator

from rackrate.offers.offer import MachineShape
from rackrate.plan.answer import NoEstimate, Reason, ShapeEstimate
from rackrate.plan.machines import UTILISATION_AT_MOST
from rackrate.plan.pricing import finish_hours
from rackrate.plan.scaling import Target, fastest, fewest_that_meet, on_cards

COUNTS = (1, 2, 4, 8)
LORA = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"tokens": "100M"}}


def found(table, card, counts=COUNTS):
    return on_cards(estimator(table), BOOK.accelerators[card], counts)


def test_speedups_are_over_the_fewest_cards_that_do_the_work():
    machines = found(FULL, "a100-sxm4-80")
    assert isinstance(machines[0].found, NoEstimate)
    assert machines[0].speedup is machines[0].efficiency is None
    assert (machines[1].speedup, machines[1].efficiency) == (1, 1)
    for each in machines[2:]:
        ratio = each.found.tokens_per_s.likely / machines[1].found.tokens_per_s.likely
        assert each.speedup == pytest.approx(ratio)
        assert each.efficiency == pytest.approx(ratio / (each.shape.gpus / 2))


def test_over_pcie_more_cards_answer_one_reader_hardly_faster():
    """One stream on L40S: a second card divides the weights, eight divide no further than PCIe lets them."""
    machines = found(CHAT, "l40s")
    assert machines[1].speedup > 1.2
    assert machines[3].efficiency < 0.5
    assert fastest(machines).shape.gpus == min(
        m.shape.gpus for m in machines if m.speedup == max(n.speedup for n in machines)
    )


def test_the_fewest_cards_that_meet_a_deadline():
    hours = [finish_hours(each.found).likely for each in found(LORA, "a40")]
    assert hours == sorted(hours, reverse=True)
    limit = (hours[1] + hours[2]) / 2
    machines = found({**LORA, "limits": {"deadline": f"{limit} h"}}, "a40")
    assert fewest_that_meet(machines).shape.gpus == 4
    assert [bool(each.missed) for each in machines] == [True, True, False, False]
    (missed,) = machines[0].missed
    assert (missed.target, missed.observed, missed.unit) == (Target.DEADLINE, pytest.approx(hours[0]), "hours")
    assert missed.limit == pytest.approx(limit)


def test_no_number_of_cards_may_meet_it():
    machines = found({**LORA, "limits": {"deadline": "0.05 h"}}, "a40")
    assert fewest_that_meet(machines) is None
    assert fastest(machines) is not None


def test_latency_is_judged_and_a_layout_that_meets_it_is_preferred():
    free = found({**CHAT, "serving": {"concurrency": 32}}, "a100-sxm4-80")
    steps = [1 / each.found.speed.serving.per_user_tokens_per_s.likely for each in free]
    limit_ms = 1000 * min(steps) * 1.2
    held = found({**CHAT, "serving": {"concurrency": 32, "output_token_ms": limit_ms}}, "a100-sxm4-80")
    for each in held:
        step = 1 / each.found.speed.serving.per_user_tokens_per_s.likely
        late = [m for m in each.missed if m.target is Target.LATENCY]
        assert bool(late) == (step * 1000 > limit_ms)
    assert not held[-1].missed


def test_a_load_is_held_against_what_a_machine_carries():
    machines = found({**CHAT, "serving": {"requests_per_s": 40}}, "a100-sxm4-80")
    for each in machines:
        capacity = each.found.speed.serving.capacity_requests_per_s.likely * UTILISATION_AT_MOST
        late = [m for m in each.missed if m.target is Target.LOAD]
        assert bool(late) == (capacity < 40)
        assert all(m.observed == pytest.approx(capacity) for m in late)
    assert machines[3].speedup > machines[0].speedup
    assert machines[0].missed
    assert not machines[3].missed


@pytest.mark.parametrize(
    ("table", "card", "reason"),
    [
        (CHAT, "p40", Reason.ENGINE_UNSUPPORTED),
        ({**CHAT, "precision": "fp8"}, "a40", Reason.ARITHMETIC),
        (CHAT, "ascend-910b-64", Reason.SPEED_UNKNOWN),
        (FULL, "rtx4090", Reason.DOES_NOT_FIT),
    ],
)
def test_a_card_that_cannot_says_why(table, card, reason):
    (one,) = found(table, card, (1,))
    assert one.found.reason is reason
    assert one.found.detail or reason is Reason.DOES_NOT_FIT
    assert one.roofs is one.hours is one.speedup is None


@given(counts=st.lists(st.integers(1, 16), min_size=1, max_size=4), card=st.sampled_from(["a40", "h100-sxm5-80"]))
def test_every_number_asked_for_is_answered_once(counts, card):
    machines = found(LORA, card, counts)
    assert [each.shape.gpus for each in machines] == sorted(set(counts))
    for each in machines:
        assert isinstance(each.found, ShapeEstimate)
        assert each.found.machines == 1
        assert each.found.layout.gpus <= each.shape.gpus


def test_alone_and_with_targets_off_the_estimator_agrees():
    asking = estimator(LORA)
    for gpus in COUNTS:
        shape = MachineShape(accelerator="a40", gpus=gpus, bridged=True)
        assert asking.alone(shape) == asking.outcome(shape)


def test_what_is_just_done_at_the_deadline_is_not_late():
    hours = found(LORA, "a40", (2,))[0].hours.likely
    assert not found({**LORA, "limits": {"deadline": f"{hours!r} h"}}, "a40", (2,))[0].missed
    assert found({**LORA, "limits": {"deadline": f"{hours * 0.999!r} h"}}, "a40", (2,))[0].missed


def test_a_load_that_is_just_carried_is_carried_and_counts_in_the_speedup():
    some = found({**CHAT, "serving": {"requests_per_s": 1}}, "a100-sxm4-80")
    carried = [each.found.speed.serving.capacity_requests_per_s.likely for each in some]
    assert [each.speedup for each in some] == pytest.approx([each / carried[0] for each in carried])
    tokens = [each.found.tokens_per_s.likely for each in some]
    assert some[3].speedup != pytest.approx(tokens[3] / tokens[0])
    full = carried[0] * UTILISATION_AT_MOST
    for load, late in ((full, False), (full * 1.001, True)):
        (one,) = found({**CHAT, "serving": {"requests_per_s": load}}, "a100-sxm4-80", (1,))
        assert one.found.speed.serving.capacity_requests_per_s.likely == carried[0]
        assert bool(one.missed) is late


def test_without_a_load_the_speedup_is_that_of_tokens():
    some = found({**CHAT, "serving": {"concurrency": 8}}, "a100-sxm4-80")
    tokens = [each.found.tokens_per_s.likely for each in some]
    assert [each.speedup for each in some] == pytest.approx([each / tokens[0] for each in tokens])
