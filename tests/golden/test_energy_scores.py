"""Published power of cards while they serve, against the estimate from their measured speed."""

import csv
from functools import cache
from pathlib import Path
from statistics import median

from scoring.statistics import percentile, share

from rackrate.facts.accelerator import Precision
from rackrate.facts.bundled import load
from rackrate.speed.energy import drawn
from rackrate.speed.flops import multiplied_params
from rackrate.speed.replica import routed_expert_params

ROWS = list(csv.DictReader((Path(__file__).parent / "energy-measured.csv").read_text("utf-8").splitlines()))
STORED = {"fp8": 1.0, "mxfp4": 0.53}
"""Bytes of a weight; other formats have 2."""


@cache
def book():
    return load()


def shares(row):
    """What the measured speed uses of memory (weights alone) and arithmetic."""
    card, model = book().accelerators[row["gpu_id"]], book().model(row["model"])
    gpus, rate, batch = int(row["gpu_count"]), float(row["output_tokens_per_s"]), float(row["batch"])
    touched = float(model.params_total)
    if model.experts:
        touched -= routed_expert_params(model) * (1 - model.experts_per_token / model.experts) ** batch
    stored = next((size for name, size in STORED.items() if name in row["precision"].lower()), 2.0)
    read = touched * stored * rate / batch / gpus / card.bandwidth_bytes_per_s
    tokens = rate * (1 + float(row["input_len"] or 0) / float(row["output_len"]))
    done = 2 * multiplied_params(model) * tokens / gpus / card.peak_flop_per_s(Precision.BF16)
    return min(1.0, read), min(1.0, done)


def ratios():
    """Estimate over measurement of each row, and whether the interval holds it."""
    for row in ROWS:
        limit = book().accelerators[row["gpu_id"]].number("power_limit_w")
        found, measured = drawn(limit, *shares(row)), float(row["avg_power_w_per_gpu"])
        yield found.likely / measured, found.low <= measured <= found.high


def test_power_is_within_a_quarter_for_nine_of_ten():
    missed = [abs(ratio - 1) for ratio, _ in ratios()]
    assert len(missed) >= 100
    assert median(missed) <= 0.13
    assert percentile(missed, 0.9) <= 0.30


def test_intervals_hold_four_of_five():
    assert 0.75 <= share([held for _, held in ratios()]) <= 0.90


def test_it_beats_one_share_for_all():
    powers = [
        float(row["avg_power_w_per_gpu"]) / book().accelerators[row["gpu_id"]].number("power_limit_w") for row in ROWS
    ]
    alone = median(abs(median(powers) / each - 1) for each in powers)
    assert median(abs(ratio - 1) for ratio, _ in ratios()) < alone


def test_every_row_says_where_it_was_published():
    assert all(row["source"] and row["source_path"] for row in ROWS)
