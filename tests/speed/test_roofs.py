"""Roofs: the parts of the work beside published rates, by hand for simple cases and in bounds for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import LLAMA_7B, LLAMA_70B, SINGLE, room, serve, speed, train, without_fact

from rackrate.evidence import Unknown, known
from rackrate.facts import bundled
from rackrate.facts.engine_speed import EXPECTED, Calibration, Times
from rackrate.speed.estimate import estimate
from rackrate.speed.estimate_types import Bound, longest
from rackrate.speed.roofs import Part, roofs
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Task

BOOK = bundled.load()


def beside(workload, card, engine="vllm", layout=SINGLE):
    """The roofs, which must be known, and the estimate that they were made for."""
    found = speed(BOOK, workload, card, engine, layout)
    return known(roofs(workload, BOOK.accelerators[card], layout, BOOK.engine(engine), found)), found


def part(found, name):
    return next(each for each in found.parts if each.part is name)


def test_one_stream_reads_the_weights_once_a_token():
    """Llama-2-7B in 16 bits: 2 x (6.738e9 - 32,000 x 4,096) bytes of weights and 0.52 MB of cache a token."""
    found, _ = beside(serve(BOOK, LLAMA_7B), "a100-sxm4-80")
    read = 2 * (6_738_415_616 - 32_000 * 4_096) + 1_100 * 2 * 2 * 32 * 4_096
    decode = part(found, Part.DECODE)
    assert decode.ceiling_tokens_per_s == pytest.approx(2.039e12 / read, rel=1e-3)
    assert decode.bandwidth_share == pytest.approx(read / 2.039e12 / decode.seconds.likely, rel=1e-3)
    assert decode.limited_by is Bound.BANDWIDTH
    busy = dict(decode.busy)
    assert busy[Bound.BANDWIDTH] == max(busy.values()) > 0.8


def test_a_prompt_is_two_flops_a_parameter_and_token():
    """1,000 tokens of Llama-2-7B: 2 x 6.476e9 x 1,000 of the layers, the head once, 4 d s of attention a layer."""
    found, _ = beside(serve(BOOK, LLAMA_7B), "a100-sxm4-80")
    layers = 6_738_415_616 - 2 * 32_000 * 4_096
    flop = 2 * (layers * 1_000 + 32_000 * 4_096) + 4 * 32 * 4_096 * 500 * 1_000
    prefill = part(found, Part.PREFILL)
    assert prefill.ceiling_tokens_per_s == pytest.approx(1_000 * 312e12 / flop, rel=1e-3)
    assert prefill.limited_by is Bound.COMPUTE


def test_the_share_of_a_training_step_is_its_flop_utilisation():
    for task in (Task.LORA, Task.FULL_FINETUNE):
        found, estimated = beside(
            train(BOOK, LLAMA_7B, task), "a100-sxm4-80", "fsdp" if task is not Task.LORA else "peft-trl"
        )
        (step,) = found.parts
        assert step.part is Part.STEP
        assert step.arithmetic_share == pytest.approx(estimated.training.model_flop_utilisation.likely)
        assert step.tokens_per_s == estimated.training.tokens_per_s
        assert step.bandwidth_share is None


@pytest.mark.parametrize("cards", [1, 2, 8])
def test_the_share_of_a_step_on_several_cards_is_of_all_of_them(cards):
    found, estimated = beside(
        train(BOOK, LLAMA_7B, Task.FULL_FINETUNE), "a100-sxm4-80", "fsdp", Layout(data=cards, zero_stage=3)
    )
    (step,) = found.parts
    assert step.arithmetic_share == pytest.approx(estimated.training.model_flop_utilisation.likely)


def test_work_without_a_prompt_has_no_prefill():
    found, _ = beside(serve(BOOK, LLAMA_7B, prompt_tokens=0, output_tokens=200), "a40")
    assert [each.part for each in found.parts] == [Part.DECODE]


def test_replicas_add_up_and_a_serial_split_does_not():
    served = serve(BOOK, LLAMA_7B, concurrency=8)
    one, _ = beside(serve(BOOK, LLAMA_7B, concurrency=4), "a40")
    two, _ = beside(served, "a40", layout=Layout(data=2))
    decode = part(two, Part.DECODE)
    assert decode.tokens_per_s.likely == pytest.approx(2 * part(one, Part.DECODE).tokens_per_s.likely)
    split, _ = beside(serve(BOOK, LLAMA_7B), "a40", "llama.cpp", Layout(pipeline=2, layer_split=True))
    alone, _ = beside(serve(BOOK, LLAMA_7B), "a40", "llama.cpp")
    assert part(split, Part.DECODE).ceiling_tokens_per_s == part(alone, Part.DECODE).ceiling_tokens_per_s


@pytest.mark.parametrize("layout", [SINGLE, Layout(tensor=2), Layout(data=2), Layout(data=2, tensor=2)])
def test_each_request_in_flight_gets_a_token_of_two_flops_a_parameter(layout):
    """64 requests of Llama-2-7B over 312 TFLOPS a card; the token table is looked up, not multiplied."""
    found, _ = beside(serve(BOOK, LLAMA_7B, concurrency=64), "a100-sxm4-80", layout=layout)
    decode = part(found, Part.DECODE)
    assert decode.tokens_per_s.likely * decode.seconds.likely == pytest.approx(64)
    flop = 2 * (6_738_415_616 - 32_000 * 4_096) * 64 / (312e12 * layout.gpus)
    assert decode.arithmetic_share * decode.seconds.likely == pytest.approx(flop, rel=1e-3)


def test_a_card_without_bandwidth_has_no_roof():
    card = without_fact(BOOK.accelerators["a40"], "bandwidth_bytes_per_s")
    work = serve(BOOK, LLAMA_7B)
    found = estimate(work, BOOK.accelerators["a40"], SINGLE, BOOK.engine("vllm"), room())
    assert isinstance(roofs(work, card, SINGLE, BOOK.engine("vllm"), found), Unknown)


@given(
    model=st.sampled_from([LLAMA_7B, LLAMA_70B, "Qwen/Qwen3-30B-A3B"]),
    form=st.sampled_from(
        [("vllm", "fp16"), ("vllm", "awq-int4"), ("llama.cpp", "gguf-q4_k_m"), ("transformers", "nf4")]
    ),
    card=st.sampled_from(["a40", "rtx4090", "h100-sxm5-80", "mi300x-192", "t4"]),
    sizes=st.tuples(st.integers(0, 8000), st.integers(1, 2000), st.integers(1, 200)),
    layout=st.sampled_from([SINGLE, Layout(tensor=4), Layout(pipeline=4), Layout(data=2, tensor=2)]),
)
def test_no_part_is_faster_than_its_roof(model, form, card, sizes, layout):
    engine, weights = form
    prompt, output, concurrency = sizes
    work = serve(BOOK, model, weights, prompt_tokens=prompt, output_tokens=output, concurrency=concurrency)
    found = estimate(work, BOOK.accelerators[card], layout, BOOK.engine(engine), room())
    if isinstance(found, Unknown):
        return
    for each in known(roofs(work, BOOK.accelerators[card], layout, BOOK.engine(engine), found)).parts:
        assert 0 < each.share_of_ceiling <= 1 + 1e-9
        assert each.share_of_ceiling == pytest.approx(max(each.bandwidth_share, each.arithmetic_share))
        assert each.tokens_per_s.high <= each.ceiling_tokens_per_s * (1 + 1e-9)
        assert each.limited_by in dict(each.busy)
        assert all(0 < share <= 1 + 1e-9 for _, share in each.busy)


def test_a_hidden_host_limits_nothing():
    busy = {Bound.COMPUTE: 2.0, Bound.BANDWIDTH: 1.0, Bound.HOST: 2.5, Bound.COMMUNICATION: 0.5}
    assert longest(busy, eager=True) is Bound.COMPUTE
    assert longest(busy, eager=False) is Bound.HOST
    assert longest({**busy, Bound.HOST: 3.5}, eager=True) is Bound.HOST


@pytest.mark.parametrize("times", [0.7, 1.0, 1.6])
def test_a_measured_speed_changes_no_share_of_the_time(times):
    """What was measured does not say which resource is slower, so that all take as much longer."""
    workload, card = serve(BOOK, LLAMA_7B), BOOK.accelerators["a100-sxm4-80"]
    engine, seen = BOOK.engine("transformers"), Times(prefill=times, decode=times)
    found = Calibration(
        accelerator=card.id, gpus=1, model="", weights="", phases=frozenset(), near=EXPECTED, elsewhere=seen
    )

    def shares(one):
        made = known(estimate(workload, card, SINGLE, one, room()))
        parts = known(roofs(workload, card, SINGLE, one, made)).parts
        return [dict(each.busy) for each in parts]

    assert shares(replace(engine, calibration=found)) == [pytest.approx(each) for each in shares(engine)]
