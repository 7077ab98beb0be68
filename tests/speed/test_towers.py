"""Images in prompts: the tower's arithmetic by hand, and what it does to the time to the first token."""

import pytest
from tests.speed.build import one_replica, speed

from rackrate.facts import sight_rules
from rackrate.memory.towers import block_params, params_inside
from rackrate.speed.flops import multiplied_params
from rackrate.speed.prefill import matrix_flop, prefill_s
from rackrate.speed.towers import image_flop_per_token, tower_flop
from rackrate.values import replace
from rackrate.workload.parse import parse
from rackrate.workload.request import Request

CARD = "a100-sxm4-80"
QWEN2, QWEN25, GEMMA = "Qwen/Qwen2-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct", "google/gemma-3-4b-it"


def work(book, model, **serving):
    values = {"model": model, "task": "inference"} | {f"serving.{key}": value for key, value in serving.items()}
    found = parse(Request(values=values, origins={}), book)
    assert not isinstance(found, tuple), found
    return found.workload


def test_the_towers_layers_by_hand(book):
    sights = {sight.id: sight for sight in book.sights()}
    assert block_params(sights["qwen2-vl"]) == 32 * (4 * 1_280**2 + 2 * 1_280 * 5_120)
    assert block_params(sights["qwen2.5-vl"]) == 32 * (4 * 1_280**2 + 3 * 1_280 * 3_420)
    # SigLIP so400m: 411e6 parameters in its 27 layers (arXiv 2303.15343: 400M)
    assert block_params(sights["gemma-3"]) == pytest.approx(411e6, rel=0.005)


def test_most_of_a_tower_is_its_layers(book):
    for model, whole in ((QWEN2, 675_759_104), (QWEN25, 676_550_144)):  # transformers 5.24.0, with the projection
        assert 0.9 < params_inside(book.model(model), book.sight_of(book.model(model))) / whole <= 1


def test_arithmetic_of_an_image_by_hand(book):
    sights = {sight.id: sight for sight in book.sights()}
    qwen, windowed, tiled = sights["qwen2-vl"], sights["qwen2.5-vl"], sights["llama-4"]
    look = sight_rules.look(qwen, 1_120, 1_120)  # 40 x 40 tokens, 6,400 patches
    assert tower_flop(qwen, look) == 6_400 * (2 * block_params(qwen) + 4 * 1_280 * 32 * 6_400)
    # four layers see the whole image, 28 their window of 64 patches
    attended = 4 * 6_400 + 28 * 64
    assert tower_flop(windowed, look) == 6_400 * (2 * block_params(windowed) + 4 * 1_280 * attended)
    # two tiles and the whole image of 24 x 24 patches, each for itself
    two = sight_rules.look(tiled, 672, 336)
    assert tower_flop(tiled, two) == 3 * 576 * (2 * block_params(tiled) + 4 * 1_408 * 34 * 576)


def test_towers_that_are_counted_apart_are_not_taken_off(book):
    gemma = book.model(GEMMA)
    assert params_inside(gemma, book.sight_of(gemma)) == 0
    small = book.model("google/gemma-4-E2B-it")
    assert params_inside(small, book.sight_of(small)) == 0
    counted = replace(book.model(QWEN2), params_by_group=(("vision", 123_456_789),))
    assert params_inside(counted, book.sight_of(counted)) == 123_456_789


def test_text_is_not_multiplied_with_the_tower(book):
    asked = work(book, QWEN2, prompt_tokens=1_000)
    one = one_replica(book, asked, CARD)
    inside = params_inside(asked.model, asked.sight)
    assert one.multiplied_params == multiplied_params(asked.model) - inside
    assert one.image_flop == 0


def test_the_first_token_waits_for_the_tower(book):
    sizes = {"prompt_tokens": 200, "concurrency": 1, "image_width": 1_120, "image_height": 1_120}
    seen = work(book, QWEN2, images_per_request=2, **sizes)
    prompt = 200 + 2 * (1_600 + 2)
    plain = work(book, QWEN2, prompt_tokens=prompt, concurrency=1)
    one, other = one_replica(book, seen, CARD), one_replica(book, plain, CARD)
    added = 2 * tower_flop(seen.sight, sight_rules.look(seen.sight, 1_120, 1_120))
    assert image_flop_per_token(seen) * prompt == pytest.approx(added)
    assert matrix_flop(one, 1, prompt) - matrix_flop(other, 1, prompt) == pytest.approx(added)
    assert prefill_s(one, 1, prompt) - prefill_s(other, 1, prompt) == pytest.approx(added / one.flop_per_s, rel=0.05)
    first, without = (speed(book, each, CARD).serving.first_token_s.likely for each in (seen, plain))
    assert first > without
