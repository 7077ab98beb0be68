import pytest

from rackrate.evidence import Range
from rackrate.memory.estimate_types import Phase, Verdict
from rackrate.memory.phases import by_phase, held, highest, part, verdict
from rackrate.memory.stages import stages
from rackrate.workload.layout import Layout

PARTS = (
    part("weights", 10.0),
    part("activations", Range(2.0, 5.0, 9.0), Phase.FORWARD, Phase.LOSS),
    part("logits", Range(3.0, 6.0, 9.0), Phase.LOSS),
    part("states", 4.0, Phase.STEP),
)


def test_the_peak_is_the_highest_phase_and_not_the_sum():
    peaks = by_phase(PARTS, (Phase.FORWARD, Phase.LOSS, Phase.STEP))
    assert [peak.likely for _, peak in peaks] == [15, 21, 14]
    assert highest(peaks)[0] is Phase.LOSS


def test_half_widths_add_as_squares():
    peak = held(PARTS, Phase.LOSS)
    assert peak.low == pytest.approx(21 - (3**2 + 3**2) ** 0.5)
    assert peak.high == pytest.approx(21 + (4**2 + 3**2) ** 0.5)


@pytest.mark.parametrize(
    ("usable", "expected"),
    [(30.0, Verdict.FITS), (26.0, Verdict.FITS), (25.9, Verdict.TIGHT), (20.9, Verdict.DOES_NOT_FIT)],
)
def test_verdict_is_about_the_high_end(usable, expected):
    assert verdict(Range(15.0, 21.0, 26.0), usable) is expected


@pytest.mark.parametrize(("pipeline", "layers"), [(1, 32), (2, 16), (3, 11), (4, 8), (64, 1)])
def test_a_stage_has_the_most_layers_that_a_card_gets(pipeline, layers):
    found = stages(32, Layout(pipeline=pipeline))
    assert {stage.layers for stage in found} == {layers}
    assert found[0].first
    assert found[-1].last
    assert len(found) == (1 if pipeline == 1 else 2)


def test_the_first_stage_waits_for_as_many_micro_batches_as_there_are_stages():
    first, last = stages(32, Layout(pipeline=4), micro_batches=16)
    assert (first.in_flight, last.in_flight) == (4, 1)
    assert stages(32, Layout(pipeline=4), micro_batches=2)[0].in_flight == 2


def test_layers_of_one_kind_are_spread_over_stages():
    first, _ = stages(62, Layout(pipeline=2))
    assert first.share_of(10) == 5
    assert first.share_of(1) == 1
