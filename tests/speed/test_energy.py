"""Energy: power under the limit, watt-hours that follow the speed, and what is not known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, MIXTRAL, serve, speed, train, without_fact

from rackrate.evidence import Unknown, known
from rackrate.speed.energy import AWAKE_SHARE, drawn, energy
from rackrate.speed.pictures import pictured
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.workload import Task

H100 = "h100-sxm5-80"


def used(book, job, card=H100, engine="vllm", layout=Layout()):  # noqa: B008
    found = speed(book, job, card, engine, layout)
    return found, energy(job, book.accelerators[card], layout, book.engine(engine), found)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_card_never_draws_more_than_its_limit_nor_less_than_awake(memory, arithmetic):
    found = drawn(700.0, memory, arithmetic)
    assert 0 < found.low <= found.likely <= found.high <= 700
    assert found.likely >= 700 * AWAKE_SHARE
    assert drawn(700.0, 1.0, 1.0).likely == 700


def test_watt_hours_are_power_over_speed(book):
    found, each = used(book, serve(book, LLAMA_7B, concurrency=32))
    per_hour = found.serving.output_tokens_per_s.likely * 3600
    assert each.wh_per_million_tokens.likely == pytest.approx(each.watts.likely / per_hour * 1e6)
    assert each.watts.likely == each.watts_per_gpu.likely


def test_more_requests_draw_more_and_take_less_each(book):
    few, many = (known(used(book, serve(book, LLAMA_7B, concurrency=n))[1]) for n in (1, 64))
    assert few.watts.likely < many.watts.likely
    assert many.wh_per_million_tokens.likely < few.wh_per_million_tokens.likely / 5


def test_training_draws_close_to_the_limit_and_counts_all_cards(book):
    job = train(book, LLAMA_7B, Task.FULL_FINETUNE, micro_batch=4, global_batch=64)
    _, one = used(book, job, "a100-sxm4-80", "fsdp")
    _, eight = used(book, job, "a100-sxm4-80", "fsdp", Layout(data=8, zero_stage=3))
    assert 0.85 * 400 < one.watts_per_gpu.likely <= 400
    assert eight.watts.likely == pytest.approx(8 * eight.watts_per_gpu.likely)


def test_experts_that_are_not_touched_are_not_read(book):
    _, found = used(book, serve(book, MIXTRAL), "h200-sxm-141")
    assert found.watts_per_gpu.likely < 700


def test_without_a_power_limit_or_a_speed_it_is_not_known(book):
    job = serve(book, LLAMA_7B)
    found = speed(book, job, H100)
    card = without_fact(book.accelerators[H100], "power_limit_w")
    assert isinstance(energy(job, card, Layout(), book.engine("vllm"), found), Unknown)
    nothing = replace(found, serving=None)
    assert isinstance(energy(job, book.accelerators[H100], Layout(), book.engine("vllm"), nothing), Unknown)
    blind = without_fact(book.accelerators[H100], "bandwidth_bytes_per_s")
    assert isinstance(energy(job, blind, Layout(), book.engine("vllm"), found), Unknown)


def test_images_take_watt_hours_each(book):
    said = {"model": "black-forest-labs/FLUX.1-dev", "task": "diffusion"}
    few, many = (drawn_by_images(book, said | {"images.steps": steps}) for steps in (10, 20))
    assert few.wh_per_million_tokens is None
    assert many.wh_per_image.likely == pytest.approx(2 * few.wh_per_image.likely, rel=0.1)
    limit = known(book.accelerators["h100-sxm5-80"].number("power_limit_w"))
    assert 0.4 * limit < many.watts_per_gpu.likely <= limit


def drawn_by_images(book, said):
    parsed = parse(request_from_flags(said), book)
    card, engine = book.accelerators["h100-sxm5-80"], book.engine("diffusers")
    speed = known(pictured(parsed.workload, parsed.workload.images, card, Layout()))
    return known(energy(parsed.workload, card, Layout(), engine, speed))
