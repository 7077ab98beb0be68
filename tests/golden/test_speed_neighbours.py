"""What one measurement is worth: the constants of the correction rest on published rows."""

from functools import cache
from itertools import chain
from pathlib import Path

import pytest
import score
from scoring import speed_neighbours
from scoring.cells import read_rows

from rackrate.speed import calibration
from rackrate.speed.spread import Phase

HERE = Path(__file__).parent
NEAR = {
    "decode": calibration.NEAR[Phase.DECODE],
    "prefill": calibration.NEAR[Phase.PREFILL],
    "decode-eager": calibration.NEAR_EAGER,
    "training": calibration.NEAR_TRAINING,
}


@cache
def found():
    tables = chain.from_iterable(read_rows(path) for path in sorted(HERE.glob("speed-*.csv")))
    rows = speed_neighbours.placed(tables, score.book_with(None))
    return {
        "near": {each.group: each for each in speed_neighbours.near(rows)},
        "elsewhere": {each.group: each for each in speed_neighbours.elsewhere(rows)},
    }


@pytest.mark.parametrize("group", NEAR)
def test_four_of_five_relatives_are_within_the_narrowed_range(group):
    within = found()["near"][group].after[1]
    assert within <= NEAR[group] * 1.15
    assert within >= NEAR[group] * 0.6


def test_the_same_model_is_known_better_by_one_measurement():
    near = found()["near"]
    assert near["decode"].after[0] <= 0.02 < near["decode"].before[0]
    assert near["prefill"].after[0] <= 0.05 < near["prefill"].before[0]
    assert near["serve"].after[0] < near["serve"].before[0]


def test_other_models_are_known_no_worse():
    for group in ("decode", "prefill", "training", "serve"):
        each = found()["elsewhere"][group]
        assert each.rows > 300
        assert each.after[0] <= each.before[0] * 1.1
