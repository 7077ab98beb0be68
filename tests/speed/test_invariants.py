"""What holds of every speed, whatever model, card, engine, format and layout is asked about."""

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.speed.build import SINGLE, room, serve, train, with_fact

from rackrate.evidence import Unknown
from rackrate.facts import bundled
from rackrate.facts.accelerator import Precision
from rackrate.speed.decode import decode_step_s
from rackrate.speed.estimate import estimate
from rackrate.speed.prefill import prefill_s
from rackrate.speed.replica import replica
from rackrate.speed.serving import requests_per_s
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Task

BOOK = bundled.load()
MODELS = [m for m in BOOK.model_ids if BOOK.model(m).generates_text and not BOOK.model(m).is_encoder_decoder]
ENGINES = [e for e in BOOK.engine_ids if "inference" in BOOK.engine(e).tasks]
LAYOUTS = [SINGLE, Layout(tensor=2), Layout(tensor=8), Layout(pipeline=2), Layout(pipeline=4), Layout(data=4)]
SPLIT = Layout(pipeline=4, layer_split=True)
NEARLY = 1 - 1e-9
MORE = (1, 2, 3, 8, 9, 64, 500)


@st.composite
def asked(draw, formats=tuple(BOOK.formats)):
    """A workload, its card, layout, engine and room, with the replica; only those whose speed is known."""
    engine = draw(st.sampled_from(ENGINES))
    layout = draw(st.sampled_from([*LAYOUTS, SPLIT] if engine == "llama.cpp" else LAYOUTS))
    prompt, output = draw(st.integers(1, 20_000)), draw(st.integers(1, 2_000))
    workload = serve(
        BOOK,
        draw(st.sampled_from(MODELS)),
        draw(st.sampled_from(formats)),
        precision=draw(st.sampled_from([Precision.FP16, Precision.BF16])),
        prompt_tokens=prompt,
        output_tokens=output,
        concurrency=draw(st.sampled_from(MORE)),
    )
    card = BOOK.accelerators[draw(st.sampled_from(sorted(BOOK.accelerators)))]
    question = workload, card, layout, BOOK.engine(engine), room(10_000, prompt + output)
    one = replica(*question[:4])
    assume(not isinstance(one, Unknown) and not isinstance(estimate(*question), Unknown))
    return question, one


def grows(times):
    """Whether none is under the one before it."""
    return all(later >= earlier * NEARLY for earlier, later in itertools.pairwise(times))


@given(asked())
def test_nothing_is_above_its_ceiling_and_ranges_are_ordered(case):
    found = estimate(*case[0])
    for span in (found.serving.output_tokens_per_s, found.serving.first_token_s, found.serving.per_user_tokens_per_s):
        assert 0 < span.low <= span.likely <= span.high
    assert found.serving.output_tokens_per_s.high * NEARLY <= found.ceiling_tokens_per_s


@given(asked())
def test_more_to_do_takes_no_less_time(case):
    (workload, *_), one = case
    batch, prompt = workload.serving.concurrency, workload.serving.prompt_tokens
    assert grows([decode_step_s(one, batch, context) for context in (1, 100, 5_000, 50_000)])
    assert grows([decode_step_s(one, each, prompt) for each in MORE])
    assert grows([prefill_s(one, each, prompt) for each in MORE])
    assert grows([prefill_s(one, batch, each) for each in (1, 2, 100, 511, 513, 1_000, 5_000, 50_000)])


@given(asked(formats=[name for name in BOOK.formats if not name.startswith("nf4")]))
def test_more_in_flight_serve_no_fewer(case):
    """NF4 left out: one sequence is multiplied with packed weights, more with copies that are made each time."""
    (workload, *_), one = case
    assert grows([requests_per_s(one, each * one.layout.data, workload.serving) for each in MORE])


@given(asked(), st.floats(1.01, 3.0))
def test_a_card_with_a_better_fact_is_never_slower(case, times):
    (workload, card, *rest), _ = case
    before = estimate(workload, card, *rest).serving
    rates = [name for name in card.facts if name.startswith("peak_") or name == "bandwidth_bytes_per_s"]
    every = card
    for name in (*rates, *({"power_limit_w"} & set(card.facts))):
        better = with_fact(card, name, card.facts[name].value * times)
        every = with_fact(every, name, card.facts[name].value * times)
        found = estimate(workload, better, *rest).serving
        assert found.output_tokens_per_s.likely >= before.output_tokens_per_s.likely * NEARLY, name
        if workload.serving.concurrency == 1:  # of more, faster decode leaves a larger share of the time to prompts
            assert found.first_token_s.likely * NEARLY <= before.first_token_s.likely, name
    assert estimate(workload, every, *rest).serving.output_tokens_per_s.likely >= before.output_tokens_per_s.likely


@given(asked())
def test_twice_as_many_replicas_serve_no_fewer(case):
    (workload, card, layout, *rest), _ = case
    one, two = (estimate(workload, card, each, *rest) for each in (layout, replace(layout, data=2 * layout.data)))
    assume(not isinstance(two, Unknown))
    assert two.serving.output_tokens_per_s.likely >= one.serving.output_tokens_per_s.likely * NEARLY


@given(asked(formats=["gptq-int4", "awq-int4", "gguf-q4_k_m", "gguf-q8_0", "fp8"]))
def test_one_sequence_is_no_slower_with_quantised_weights_in_fused_kernels(case):
    (workload, card, layout, engine, _), one = case
    assume(not one.eager)
    plain = replica(replace(workload, weights=BOOK.formats["fp16"]), card, layout, engine)
    assume(not isinstance(plain, Unknown))
    assert decode_step_s(one, 1, 100) * NEARLY <= decode_step_s(plain, 1, 100)


@given(st.sampled_from(sorted(BOOK.accelerators)), st.sampled_from([1, 2, 8]), st.integers(64, 8_192))
def test_training_tokens_are_the_rate_times_the_time(card, gpus, sequence):
    layout = Layout(data=gpus)
    workload = train(BOOK, "meta-llama/Meta-Llama-3-8B", Task.LORA, sequence_tokens=sequence)
    found = estimate(workload, BOOK.accelerators[card], layout, BOOK.engine("peft-trl"), room())
    assume(not isinstance(found, Unknown))
    rate, step = found.training.tokens_per_s, found.training.step_s
    assert rate.high * NEARLY <= found.ceiling_tokens_per_s
    assert found.training.model_flop_utilisation.high * NEARLY <= 1
    assert abs(rate.likely * step.likely / (8 * sequence) - 1) < 1e-9
    assert abs(rate.low * step.high / (8 * sequence) - 1) < 1e-9
