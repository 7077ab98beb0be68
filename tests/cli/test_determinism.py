"""Same input, same answer: byte for byte, in any process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.ask import CARDS, DAY, FACTS, FITS, MODELS, OFFERS, PLANS, ROOT, name_of, run

RACKRATE = Path(sys.executable).with_name("rackrate")


@pytest.mark.parametrize("args", [*PLANS, FITS[1], CARDS[2], *MODELS, *FACTS[:-1], *OFFERS], ids=name_of)
def test_asked_twice(args):
    assert run(*args, "--json", "--as-of", DAY) == run(*args, "--json", "--as-of", DAY)


@pytest.mark.parametrize(
    "args", [PLANS[0], PLANS[3], MODELS[2], FACTS[2], FACTS[8], FACTS[10], OFFERS[0], OFFERS[2]], ids=name_of
)
def test_asked_in_other_processes(args):
    said = {
        subprocess.run(
            [RACKRATE, *args, "--json", "--as-of", DAY],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(said) == 1
    assert said == {run(*args, "--json", "--as-of", DAY).out.encode()}


def test_the_day_is_an_input():
    """Ages count to the day asked for; without one it is today."""
    early, late = (run(*PLANS[0], "--json", "--as-of", day).document for day in (DAY, "2027-02-01"))
    assert (early["as_of"], late["as_of"]) == (DAY, "2027-02-01")
    ages = [{plan["offer_id"]: plan["price_age_days"] for plan in found["plans"]} for found in (early, late)]
    both = {offer for offer in ages[0].keys() & ages[1].keys() if ages[0][offer] is not None}
    assert both
    assert all(ages[1][offer] - ages[0][offer] == 63 for offer in both)
