"""The estimate as a whole: intervals, flags, unknowns, pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, LLAMA_8B, SINGLE, room, serve, speed, train, without_fact

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.problems import Code
from rackrate.speed.estimate import estimate
from rackrate.speed.spread import SPREADS, Phase
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Task


def test_the_interval_is_the_spread_of_serving_and_cut_at_the_ceiling(book, monkeypatch):
    found = speed(book, serve(book, LLAMA_8B, prompt_tokens=10, output_tokens=500), "a100-sxm4-80")
    rate, spread = found.serving.output_tokens_per_s, SPREADS[Phase.SERVING]
    assert rate.low == pytest.approx(rate.likely / (1 + spread))
    assert rate.high == pytest.approx(min(rate.likely * (1 + spread), found.ceiling_tokens_per_s))
    monkeypatch.setitem(SPREADS, Phase.SERVING, 5.0)
    workload, card = serve(book, LLAMA_8B, prompt_tokens=10, output_tokens=500), book.accelerators["a100-sxm4-80"]
    cut = known(estimate(workload, card, SINGLE, book.engine("vllm"), room()))
    assert cut.serving.output_tokens_per_s.high == cut.ceiling_tokens_per_s


def test_engines_on_kinds_of_cards_never_published_get_wider_intervals(book):
    def width(card, engine):
        workload = serve(book, LLAMA_8B, "bf16", precision=Precision.BF16)
        rate = speed(book, workload, card, engine).serving.requests_per_s
        return rate.likely / rate.low

    assert width("mi300x-192", "vllm") == width("h100-sxm5-80", "vllm")
    assert width("b200-180", "vllm") > width("h100-sxm5-80", "vllm")
    assert width("h100-sxm5-80", "gpt-fast") > width("a100-sxm4-80", "gpt-fast")


def test_emulated_arithmetic_is_said(book):
    found = speed(book, serve(book, LLAMA_7B, "bf16", precision=Precision.BF16), "v100-sxm2-32", "transformers")
    assert found.computes_in is Precision.FP32
    assert [finding.code for finding in found.findings] == [Code.PRECISION_EMULATED]
    plain = speed(book, serve(book, LLAMA_7B), "v100-sxm2-32", "transformers")
    assert plain.computes_in is Precision.FP16
    assert plain.findings == ()
    assert plain.serving.first_token_s.likely < found.serving.first_token_s.likely


@pytest.mark.parametrize("quantity", ["bandwidth_bytes_per_s", "peak_fp16_flop_per_s"])
def test_missing_facts_make_the_speed_unknown(book, quantity):
    card = without_fact(without_fact(book.accelerators["a40"], quantity), "peak_fp32_flop_per_s")
    found = estimate(serve(book, LLAMA_7B), card, SINGLE, book.engine("vllm"), room())
    assert isinstance(found, Unknown)
    assert quantity.split("_")[0] in found.reason or "fp16" in found.reason


def test_an_engine_that_does_not_train_says_so(book):
    found = estimate(train(book, LLAMA_7B), book.accelerators["a40"], SINGLE, book.engine("vllm"), room())
    assert isinstance(found, Unknown)
    assert "vLLM" in found.reason


def test_encoders_do_not_generate(book):
    bert = next(name for name in book.model_ids if "bert-large" in name)
    found = estimate(serve(book, bert), book.accelerators["a40"], SINGLE, book.engine("vllm"), room())
    assert isinstance(found, Unknown)


@given(st.data())
def test_any_model_on_any_card_is_ordered_and_below_the_ceiling_or_unknown_with_a_reason(book, data):
    model = data.draw(st.sampled_from(book.model_ids))
    card = book.accelerators[data.draw(st.sampled_from(sorted(book.accelerators)))]
    engine = book.engine(data.draw(st.sampled_from(["vllm", "llama.cpp", "transformers", "tensorrt-llm", "fsdp"])))
    form = data.draw(st.sampled_from(["bf16", "fp8", "nf4", "awq-int4", "gguf-q4_k_m", "mxfp4"]))
    cards = data.draw(st.sampled_from([1, 2, 8]))
    layout = Layout(data=cards) if engine.id == "fsdp" else Layout(tensor=cards)
    if engine.id == "fsdp":
        workload = train(book, model, Task.LORA, form)
    else:
        workload = serve(book, model, form, precision=Precision.BF16, concurrency=data.draw(st.integers(1, 64)))
    found = estimate(workload, card, layout, engine, room())
    if isinstance(found, Unknown):
        assert found.reason
        return
    rate = found.training.tokens_per_s if found.training else found.serving.output_tokens_per_s
    assert 0 < rate.low <= rate.likely <= rate.high <= found.ceiling_tokens_per_s * (1 + 1e-9)
