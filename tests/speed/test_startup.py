"""Start-up: what is on the meter before work begins."""

import pytest
from tests.speed.build import LLAMA_7B, LLAMA_70B, serve, train

from rackrate.evidence import add_independent
from rackrate.speed.startup import startup_hours
from rackrate.values import replace
from rackrate.workload.workload import Task

GB = 1e9


def test_parts_add_up_and_are_all_named(book):
    parts = startup_hours(serve(book, LLAMA_7B), book.engine("vllm"))
    assert list(parts.parts) == ["boot", "image", "model_download", "data", "load", "warm_up"]
    assert parts.total_hours == add_independent(parts.parts.values())
    assert parts.total_hours.likely == pytest.approx(sum(p.likely for p in parts.parts.values()))
    assert 0.05 < parts.total_hours.low < parts.total_hours.likely < parts.total_hours.high < 0.6


def test_a_big_model_waits_for_its_download(book):
    small, big = (startup_hours(serve(book, model), book.engine("vllm")) for model in (LLAMA_7B, LLAMA_70B))
    assert big.model_download.likely == pytest.approx(small.model_download.likely * 70.55 / 6.74, rel=0.01)
    assert big.model_download.likely * 60 == pytest.approx(141.1 * GB / 300e6 / 60, rel=0.01)
    assert big.boot == small.boot


def test_quantising_on_the_machine_downloads_16_bit_weights(book):
    nf4 = startup_hours(train(book, LLAMA_7B, Task.QLORA, "nf4"), book.engine("peft-trl")).model_download.likely
    awq = startup_hours(serve(book, LLAMA_7B, "awq-int4"), book.engine("vllm")).model_download.likely
    assert nf4 * 3600 == pytest.approx(2 * 6_738_415_616 / 300e6)
    assert awq < nf4 / 3


def test_own_data_comes_in_too(book):
    workload = serve(book, LLAMA_7B)
    with_data = replace(workload, use=replace(workload.use, data_in_bytes=540 * GB))
    assert startup_hours(workload, book.engine("vllm")).data.high == 0
    assert startup_hours(with_data, book.engine("vllm")).data.likely == pytest.approx(0.5)


def test_compiled_engines_warm_up_longer(book):
    graphs, eager = (startup_hours(serve(book, LLAMA_7B), book.engine(name)) for name in ("vllm", "transformers"))
    assert graphs.warm_up.likely > eager.warm_up.likely


@pytest.mark.parametrize("regions", [("cn",), ("China",), (" 中国 ", "CN")])
def test_models_come_slower_to_mainland_china(book, regions):
    there = _asked_for(book, regions)
    assert there.model_download.likely == pytest.approx(6 * _asked_for(book, ()).model_download.likely)
    assert there.boot == _asked_for(book, ()).boot


@pytest.mark.parametrize("regions", [(), ("cn", "us"), ("hk",), ("asia",), ("cn-north-1",), ("",)])
def test_elsewhere_or_not_surely_there_the_rate_is_the_usual_one(book, regions):
    assert _asked_for(book, regions) == _asked_for(book, ())


def _asked_for(book, regions):
    work = serve(book, LLAMA_7B)
    return startup_hours(replace(work, limits=replace(work.limits, regions=regions)), book.engine("vllm"))
