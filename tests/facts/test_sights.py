"""Tests of how images become tokens: against what the processors themselves count."""

import csv
from itertools import groupby
from pathlib import Path

import pytest

from rackrate.facts.bundled import load
from rackrate.facts.model import Tower
from rackrate.facts.sight_rules import RULES
from rackrate.values import replace

COUNTED = list(
    csv.DictReader((Path(__file__).parent / "image_tokens_counted.csv").read_text(encoding="utf-8").splitlines())
)
SIGHTS = {sight.id: sight for sight in load().sights()}


@pytest.mark.parametrize("family", sorted({row["family"] for row in COUNTED}))
def test_tokens_are_what_the_processor_counts(family):
    sight = SIGHTS[family]
    for row in (each for each in COUNTED if each["family"] == family):
        look = sight.look(int(row["width"]), int(row["height"]))
        found = look.tokens if row["what"] == "tokens" else look.patches // (sight.tile_patches + 1)
        assert found == int(row["counted"]), row


def test_every_family_was_counted_and_every_rule_is_used():
    assert {row["family"] for row in COUNTED} == set(SIGHTS)
    assert {sight.rule for sight in SIGHTS.values()} == set(RULES)
    assert {sight.rule for sight in SIGHTS.values() if not sight.is_tiled} == {"area", "ended_rows", "padded", "pool"}


def test_no_family_has_two_rows():
    names = sorted(name for sight in SIGHTS.values() for name in sight.names)
    assert [name for name, same in groupby(names) if len(list(same)) > 1] == []


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
def test_what_is_made_is_part_of_the_tokens_and_comes_from_patches(sight):
    for size in ((64, 64), (640, 480), (3000, 400), (4000, 4000)):
        look = sight.look(*size)
        assert 0 <= look.made <= look.tokens
        assert look.made <= look.patches


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
def test_no_image_makes_more_than_the_largest(sight):
    sizes = ((64, 64), (224, 224), (640, 480), (1000, 3000), (2000, 2000), (4096, 4096), (8192, 8192), (6000, 2000))
    assert all(sight.look(*size).made <= 1.05 * sight.largest.made for size in sizes)


@pytest.mark.parametrize(
    ("family", "made"),
    [
        # start-up logs of vLLM 0.19 with a budget of 8,192 tokens: 32, 3 and 2 images (llm-d-planner)
        ("gemma-3", 256),
        ("llama-4", 17 * 144),
        ("mistral-small-3", 55 * 55),
        # of vLLM 0.11: one in 16,384, two in 32,768
        ("qwen3-vl", 16_384),
    ],
)
def test_the_largest_image_is_what_engines_try(family, made):
    assert SIGHTS[family].largest.made == made


def test_a_family_takes_the_sizes_of_a_models_own_tower():
    # SmolVLM-500M: tiles of 512 pixels, 64 tokens each (arXiv 2504.05299); transformers 5.24.0 counts as below
    small = SIGHTS["smolvlm"].fitted(Tower(width=768, feed=3072, layers=12, side=512, patch=16, merge=4))
    assert (small.width, small.tile_tokens) == (768, 64)
    assert [small.image_tokens(*size) for size in ((1024, 768), (224, 224))] == [64 + 3 + 3 * (4 * 66 + 1), 1127]
    # PaliGemma at 448 pixels: 1,024 tokens (arXiv 2407.07726)
    assert SIGHTS["paligemma"].fitted(Tower(width=0, feed=0, layers=0, side=448)).image_tokens(9, 9) == 1024
    assert SIGHTS["paligemma"].fitted(None) == SIGHTS["paligemma"]


def test_sizes_that_are_bounds_stay_the_familys():
    kimi = SIGHTS["kimi-k2.5"].fitted(Tower(width=1152, feed=4304, layers=27, side=64))
    assert kimi.side == SIGHTS["kimi-k2.5"].side


def test_wide_and_tall_images_of_tiles_count_the_same():
    for sight in SIGHTS.values():
        if sight.rule in {"canvas", "cross", "ratio", "one"}:
            assert sight.image_tokens(2000, 500) == sight.image_tokens(500, 2000)


def test_a_thin_image_still_makes_a_token():
    assert SIGHTS["gemma-4"].look(20_000, 10).made == 280
    assert SIGHTS["gemma-4"].look(10, 20_000).made == 280
    assert SIGHTS["qwen2-vl"].look(28, 28 * 150).made >= 150
    assert replace(SIGHTS["gemma-4"], fixed=70).look(640, 480).made <= 70
