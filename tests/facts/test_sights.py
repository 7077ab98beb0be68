"""Tests of how images become tokens: against what the processors themselves count."""

import csv
from itertools import groupby
from pathlib import Path

import pytest

from rackrate.facts import sight_rules
from rackrate.facts.architecture.read import rotary_positions
from rackrate.facts.architecture.reader import Reader
from rackrate.facts.architecture.vision import tower_shape
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
        look = sight_rules.look(sight, int(row["width"]), int(row["height"]))
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
        look = sight_rules.look(sight, *size)
        assert 0 <= look.made <= look.tokens
        assert look.made <= look.patches


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
def test_no_image_makes_more_than_the_largest(sight):
    sizes = ((64, 64), (224, 224), (640, 480), (1000, 3000), (2000, 2000), (4096, 4096), (8192, 8192), (6000, 2000))
    assert all(sight_rules.look(sight, *size).made <= 1.05 * sight_rules.largest(sight).made for size in sizes)


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
    assert sight_rules.largest(SIGHTS[family]).made == made


def test_a_family_takes_the_sizes_of_a_models_own_tower():
    # SmolVLM-500M: tiles of 512 pixels, 64 tokens each (arXiv 2504.05299); transformers 5.24.0 counts as below
    small = SIGHTS["smolvlm"].fitted(Tower(width=768, feed=3072, layers=12, side=512, patch=16, merge=4))
    assert (small.width, small.tile_tokens) == (768, 64)
    assert [sight_rules.image_tokens(small, *size) for size in ((1024, 768), (224, 224))] == [
        64 + 3 + 3 * (4 * 66 + 1),
        1127,
    ]
    # PaliGemma at 448 pixels: 1,024 tokens (arXiv 2407.07726)
    assert (
        sight_rules.image_tokens(SIGHTS["paligemma"].fitted(Tower(width=0, feed=0, layers=0, side=448)), 9, 9) == 1024
    )
    assert SIGHTS["paligemma"].fitted(None) == SIGHTS["paligemma"]


def test_sizes_that_are_bounds_stay_the_familys():
    kimi = SIGHTS["kimi-k2.5"].fitted(Tower(width=1152, feed=4304, layers=27, side=64))
    assert kimi.side == SIGHTS["kimi-k2.5"].side


def test_wide_and_tall_images_of_tiles_count_the_same():
    for sight in SIGHTS.values():
        if sight.rule in {"canvas", "cross", "ratio", "one"}:
            assert sight_rules.image_tokens(sight, 2000, 500) == sight_rules.image_tokens(sight, 500, 2000)


def test_a_thin_image_still_makes_a_token():
    assert sight_rules.look(SIGHTS["gemma-4"], 20_000, 10).made == 280
    assert sight_rules.look(SIGHTS["gemma-4"], 10, 20_000).made == 280
    assert sight_rules.look(SIGHTS["qwen2-vl"], 28, 28 * 150).made >= 150
    assert sight_rules.look(replace(SIGHTS["gemma-4"], fixed=70), 640, 480).made <= 70


@pytest.mark.parametrize(
    ("config", "tower"),
    [
        # under the names that families give them: Qwen2-VL, Qwen2.5-VL, InternVL, Kimi K2.5, Llama 3.2 Vision
        (
            {"embed_dim": 1280, "depth": 32, "mlp_ratio": 4, "hidden_size": 3584, "patch_size": 14},
            (1280, 5120, 32, 0, 14),
        ),
        ({"hidden_size": 1280, "depth": 32, "intermediate_size": 3420, "patch_size": 14}, (1280, 3420, 32, 0, 14)),
        (
            {
                "hidden_size": 3200,
                "num_hidden_layers": 45,
                "intermediate_size": 12800,
                "image_size": [448, 448],
                "patch_size": [14, 14],
            },
            (3200, 12800, 45, 448, 14),
        ),
        ({"vt_hidden_size": 1152, "vt_num_hidden_layers": 27, "vt_intermediate_size": 4304}, (1152, 4304, 27, 0, 0)),
        ({"hidden_size": 1280, "num_hidden_layers": 32, "num_global_layers": 8}, (1280, 0, 40, 0, 0)),
        ({"model_name": "a name of another library"}, (0, 0, 0, 0, 0)),
    ],
)
def test_the_tower_of_a_configuration_is_read(config, tower):
    found = tower_shape(Reader({"vision_config": config}, "a test"))
    assert (found.width, found.feed, found.layers, found.side, found.patch) == tower


def test_a_configuration_without_a_tower_has_none():
    assert tower_shape(Reader({"hidden_size": 64}, "a test")) is None


def test_internvl_says_its_tile_and_smolvlm_its_merge_outside_the_tower():
    found = tower_shape(Reader({"vision_config": {"patch_size": 16}, "force_image_size": 448}, "a test"))
    assert found.side == 448
    found = tower_shape(Reader({"vision_config": {"image_size": 512}, "scale_factor": 4}, "a test"))
    assert (found.side, found.merge) == (512, 4)


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        # Gemma 3, as transformers 4 and 5 write it: eight times 131,072, and 131,072 for windows
        ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_local_base_freq": 10000.0}, 9 * 131_072),
        (
            {
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8.0},
                    "sliding_attention": {"rope_type": "default"},
                }
            },
            9 * 131_072,
        ),
        ({"rope_scaling": {"type": "linear", "factor": 4}}, 4 * 131_072),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, None),
        ({"rope_scaling": {"rope_type": "linear", "factor": 1e99}}, None),
        ({"rope_scaling": None}, None),
        ({}, None),
    ],
)
def test_linear_scaling_stretches_tables_of_angles(text, positions):
    assert rotary_positions(Reader({"text_config": text}, "a test"), 131_072) == positions
    assert rotary_positions(Reader(text, "a test"), 131_072) == positions
