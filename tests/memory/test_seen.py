"""Images in prompts: tokens by published figures, the tower by hand from configurations."""

import pytest
from tests.memory.build import likely, measure

from rackrate.evidence import Range
from rackrate.facts import sight_rules
from rackrate.memory.fit_settings import shortened
from rackrate.memory.seen import AtOnce, images_at_once, tower_bytes
from rackrate.plan.largest import lengthened
from rackrate.values import replace
from rackrate.workload.parse import parse
from rackrate.workload.request import Request
from rackrate.workload.settings import settings

QWEN2, QWEN25 = "Qwen/Qwen2-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"
QWEN3, LLAVA, GEMMA = "Qwen/Qwen3-VL-8B-Instruct", "llava-hf/llava-1.5-7b-hf", "google/gemma-3-4b-it"
SCOUT, VISION = "meta-llama/Llama-4-Scout-17B-16E-Instruct", "meta-llama/Llama-3.2-11B-Vision-Instruct"


def asked(book, model, **serving):
    engine = {key: serving.pop(key) for key in ("engine", "quantization") if key in serving}
    sizes = {f"serving.{key}": value for key, value in serving.items()}
    values = {"model": model, "task": "inference"} | engine | sizes
    return parse(Request(values=values, origins={}), book)


def work(book, model, **serving):
    found = asked(book, model, **serving)
    assert not isinstance(found, tuple), found
    return found.workload


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # arXiv 2409.12191, figure 2: 11,427, 8 and 1,125 tokens; section 2.1: 66 for 224 x 224 with both marks
        (QWEN2, 8204, 1092, 11_427 + 2),
        (QWEN2, 1260, 700, 1_125 + 2),
        (QWEN2, 28, 224, 8 + 2),
        (QWEN2, 224, 224, 66),
        # forbo7.github.io/bitsandbobs, 2025-08-11: the processor makes 391 tokens of 644 x 476 pixels
        (QWEN25, 644, 476, 391 + 2),
        # by hand: 1024 / 28 = 36.6, so 37 x 37; 1024 / 32 = 32, so 32 x 32
        (QWEN25, 1024, 1024, 37 * 37 + 2),
        (QWEN3, 1024, 1024, 32 * 32 + 2),
        # the largest: 16,777,216 pixels are 4,096 x 4,096; the smallest 65,536 are 256 x 256, 8 x 8 tokens
        (QWEN3, 8192, 8192, 128 * 128 + 2),
        (QWEN3, 64, 64, 8 * 8 + 2),
        # arXiv 2310.03744: (336 / 14)^2; arXiv 2503.19786: 256 whatever the size
        (LLAVA, 1024, 768, 576),
        (GEMMA, 4000, 3000, 256 + 4),
    ],
)
def test_tokens_of_an_image_are_as_published(book, model, width, height, tokens):
    sight = book.sight_of(book.model(model))
    assert sight_rules.image_tokens(sight, width, height) == tokens


def test_images_are_part_of_the_prompt_and_of_the_context(book):
    seen = work(book, QWEN2, images_per_request=3, image_width=1260, image_height=700, prompt_tokens=100).serving
    assert seen.image_tokens == 3 * 1_127
    assert seen.prompt_tokens == 100 + 3 * 1_127
    assert seen.context_tokens == seen.prompt_tokens + seen.output_tokens


def test_a_workload_with_images_is_the_same_when_its_settings_are_asked_again(book):
    first = work(book, QWEN3, images_per_request=2, image_width=640, prompt_tokens=300)
    again = parse(Request(values=settings(first), origins={}), book)
    assert again.workload.serving == first.serving


def test_a_shorter_context_keeps_the_images(book):
    serving = work(book, QWEN3, images_per_request=2, prompt_tokens=300).serving
    assert shortened(serving, 100).prompt_tokens == serving.image_tokens + 1
    assert lengthened(serving, 100).prompt_tokens == serving.image_tokens + 1
    assert lengthened(serving, 8192).prompt_tokens == 8192 - serving.output_tokens


def test_a_model_read_from_its_own_configuration_sees_too(book):
    own = replace(book.model(QWEN25), id="own", family="qwen2_5_vl")
    assert book.sight_of(own).id == "qwen2.5-vl"
    assert book.sight_of(replace(own, modality="text")) is None


def test_the_cache_grows_by_the_images(book):
    card, engine = book.accelerators["a100-sxm4-80"], book.engine("vllm")
    sizes = {"prompt_tokens": 1024, "output_tokens": 128}
    plain = measure(work(book, QWEN25, **sizes), card, engine)
    seen = measure(work(book, QWEN25, images_per_request=2, **sizes), card, engine)
    # 28 layers x 2 x 4 heads x 128 x 2 B = 57,344 B a token; pages of 16: 1,152 and 1,152 + 2,742 = 3,894 -> 3,904
    assert likely(plain, "kv_cache") == 1_152 * 57_344
    assert likely(seen, "kv_cache") == 3_904 * 57_344


def test_the_tower_of_qwen2_5_vl_by_hand(book):
    sight = book.sight_of(book.model(QWEN25))
    # 4 patches a token; 2 x 1,280, gate, up and product of 3,420 each; 2 B
    most = AtOnce(made=16_384, patches=65_536)
    assert tower_bytes(sight, most, 1, 2) == 65_536 * (2_560 + 3 * 3_420) * 2
    assert sight_rules.largest(sight).made == 16_384


def test_vllm_tries_the_largest_image_and_others_what_is_asked(book):
    work_of = work(book, QWEN3, images_per_request=2)
    sight, serving = work_of.sight, work_of.serving
    vllm, sglang, plain = (book.engine(name).serving for name in ("vllm", "sglang", "transformers"))

    def made(requests, policy, batch):
        return images_at_once(sight, serving, requests, policy, batch).made

    # vLLM logs for Qwen3-VL: a budget of 16,384 tokens, profiled with 1 image of the maximum size; 2 in 32,768
    assert made(1, vllm, 8_192) == 16_384
    assert made(1, vllm, 32_768) == 2 * 16_384
    assert made(1, sglang, 8_192) == 2 * 1_024
    assert made(100, sglang, 8_192) == 8 * 1_024
    assert made(100, plain, 8_192) == 200 * 1_024


@pytest.mark.parametrize(("model", "images"), [(GEMMA, 32), (SCOUT, 3)])
def test_vllm_tries_as_many_images_as_its_logs_say(book, model, images):
    # start-up logs of vLLM 0.19 with 8,192 tokens (llm-d-incubation/llm-d-planner)
    asked = work(book, model)
    found = images_at_once(asked.sight, asked.serving, 1, book.engine("vllm").serving, 8_192)
    assert found.made == images * sight_rules.largest(asked.sight).made


def test_the_tower_of_llava_by_hand(book):
    sight = book.sight_of(book.model(LLAVA))
    assert tower_bytes(sight, AtOnce(made=576, patches=576), 1, 2) == 576 * (2_048 + 2 * 4_096) * 2


def test_gemmas_tower_is_counted_beside_the_text_model(book):
    card = book.accelerators["a100-sxm4-80"]
    for sizes in ({}, {"images_per_request": 1}):
        found = measure(work(book, GEMMA, **sizes), card, book.engine("vllm"))
        assert likely(found, "vision_tower") == 2 * 419_816_304  # transformers 5.24.0, tower and projection to 2,560
        qwen = measure(work(book, QWEN25, **sizes), card, book.engine("vllm"))
        assert not any(part.name == "vision_tower" for part in qwen.components)
    plain = measure(work(book, GEMMA, engine="transformers"), card, book.engine("transformers"))
    assert not any(part.name == "vision_tower" for part in plain.components)


def test_pixels_and_what_the_tower_made_stay_while_vllm_draws(book):
    found = measure(work(book, GEMMA), book.accelerators["h100-sxm5-80"], book.engine("vllm"))
    # 32 images of 3 x 896 x 896 values and 256 hidden states of 2,560 each, 2 B
    assert likely(found, "image_inputs") == 32 * 2 * (3 * 896 * 896 + 256 * 2_560)


def test_llama_3_2_keeps_keys_and_values_of_every_tile(book):
    asked = work(book, VISION, images_per_request=2, image_width=560, image_height=560, engine="transformers")
    assert asked.serving.image_tokens == 2
    found = measure(asked, book.accelerators["h100-sxm5-80"], book.engine("transformers"))
    # 8 layers, 2 images of 4 x 1,601 positions for each request, keys and values of 8 heads of 128, 2 B
    assert likely(found, "image_cache") == asked.serving.concurrency * 2 * 6_404 * 8 * 2 * 8 * 128 * 2


def test_larger_images_never_need_less(book):
    card, engine = book.accelerators["a100-sxm4-80"], book.engine("transformers")
    peaks: list[Range] = []
    for side in (256, 512, 1024, 2048, 4096):
        sizes = {"images_per_request": 2, "image_width": side, "image_height": side}
        peaks.append(measure(work(book, QWEN25, **sizes), card, engine).peak)
    assert [p.likely for p in peaks] == sorted(p.likely for p in peaks)
    assert peaks[0].likely < peaks[-1].likely


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "google/gemma-3n-E4B"])
def test_images_are_refused_where_their_tokens_are_not_known(book, model):
    found = asked(book, model, images_per_request=1)
    assert [f.subject for f in found] == ["serving.images_per_request"]


def test_a_size_without_images_and_a_context_too_short_for_them_are_refused(book):
    assert [f.subject for f in asked(book, QWEN2, image_width=512)] == ["serving.image_width"]
    short = asked(book, QWEN2, images_per_request=4, context_tokens=4096)
    assert [f.subject for f in short] == ["serving.context_tokens"]
    assert "5486" in short[0].observed


def test_quantised_models_keep_their_tower_in_16_bits(book):
    card, engine = book.accelerators["a100-sxm4-80"], book.engine("vllm")
    narrow = likely(measure(work(book, QWEN2, quantization="awq-int4"), card, engine), "weights")
    wide = likely(measure(work(book, QWEN2), card, engine), "weights")
    tower = 32 * (4 * 1_280**2 + 2 * 1_280 * 5_120)
    kept = tower + 2 * 152_064 * 3_584
    assert wide - narrow == pytest.approx((book.model(QWEN2).params_total - kept) * (2 - 4.16 / 8), rel=0.002)
