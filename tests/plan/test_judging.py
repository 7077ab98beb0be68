"""A measured speed is judged beside the estimate, and corrects what shares its mechanism and nothing else."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackrate.evidence import known
from rackrate.facts.bundled import load
from rackrate.facts.engine_speed import EXPECTED
from rackrate.memory.estimate import estimate as memory_estimate
from rackrate.plan.gaps import Cause, gaps
from rackrate.plan.judging import Case, Meaning, Standing, judged, pace_of, readings
from rackrate.speed.replica import times_of
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.measured import Counted, Measured
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table

CHAT = {"model": "meta-llama/Llama-2-13b-hf", "task": "inference"}
BUSY = {**CHAT, "serving": {"concurrency": 16}}
LORA = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora", "training": {"packed": True, "micro_batch": 2}}
IMAGES = {"model": "stabilityai/stable-diffusion-xl-base-1.0", "task": "diffusion"}
WORKS = {
    "chat": (CHAT, "l40s", Layout()),
    "busy": (BUSY, "a100-sxm4-80", Layout()),
    "pair": (BUSY, "a40", Layout(tensor=2)),
    "lora": (LORA, "a100-pcie-40", Layout(data=2)),
    "images": (IMAGES, "a40", Layout()),
}
SERVED = (
    Counted.EACH,
    Counted.OUTPUT,
    Counted.ALL_TOKENS,
    Counted.REQUESTS,
    Counted.PROMPT,
    Counted.FIRST_TOKEN,
)
COUNTS = {
    **dict.fromkeys(("chat", "busy", "pair"), SERVED),
    "lora": (Counted.TRAINED, Counted.STEPS, Counted.SAMPLES),
    "images": (Counted.IMAGES, Counted.IMAGE_STEPS),
}
EVERY = [(name, counted) for name, counts in COUNTS.items() for counted in counts]


def case_of(name, **changes):
    table, card, layout = WORKS[name]
    book = load()
    parsed = parse(request_from_table({**table, **changes}), book)
    assert isinstance(parsed, Parsed)
    work, engine = parsed.workload, book.engine(parsed.workload.engine_id)
    memory = known(memory_estimate(work, book.accelerators[card], layout, engine))
    return Case(workload=work, card=book.accelerators[card], layout=layout, engine=engine, memory=memory)


def seen(case, counted, per_s, **more):
    return judged(Measured(text="as told", per_s=per_s, counted=counted, **more), case)


def corrected(case, found):
    return replace(case, engine=replace(case.engine, calibration=found.calibration))


@pytest.mark.parametrize(("name", "counted"), EVERY)
def test_the_expected_value_changes_nothing(name, counted):
    case = case_of(name)
    pace = pace_of(counted, case)
    found = seen(case, counted, pace.expected.likely)
    assert found.standing is Standing.NORMAL
    assert found.calibration.near == found.calibration.elsewhere == EXPECTED
    for other in COUNTS[name]:
        assert pace_of(other, corrected(case, found)).expected.likely == pace_of(other, case).expected.likely


@pytest.mark.parametrize(("name", "counted"), EVERY)
@settings(max_examples=12, deadline=None)
@given(part=st.floats(0.02, 1.0))
def test_the_estimate_becomes_what_was_measured_and_never_exceeds_the_ceiling(name, counted, part):
    case = case_of(name)
    pace = pace_of(counted, case)
    found = seen(case, counted, pace.ceiling * part)
    if found.calibration is None:
        assert counted is Counted.FIRST_TOKEN  # the front end alone takes longer
        return
    after = pace_of(counted, corrected(case, found))
    assert after.expected.likely == pytest.approx(pace.ceiling * part, rel=1e-6)
    assert after.ceiling == pytest.approx(pace.ceiling)
    for other in COUNTS[name]:
        each = pace_of(other, corrected(case, found))
        if other is not Counted.FIRST_TOKEN:
            assert each.expected.high <= each.ceiling * (1 + 1e-9)


@pytest.mark.parametrize(("name", "counted"), EVERY)
def test_slower_measurements_make_slower_estimates(name, counted):
    case = case_of(name)
    pace = pace_of(counted, case)
    speeds = [pace.expected.likely * part for part in (0.2, 0.5, 0.9)]
    found = [seen(case, counted, per_s).calibration for per_s in speeds]
    for attribute in ("near", "elsewhere"):
        for phase in ("prefill", "decode", "training", "images"):
            times = [getattr(getattr(each, attribute), phase) for each in found]
            assert times == sorted(times, reverse=True)
    assert all(
        abs(math.log(getattr(each.elsewhere, phase))) <= abs(math.log(getattr(each.near, phase))) + 1e-12
        for each in found
        for phase in ("prefill", "decode", "training", "images")
    )


def test_only_what_shares_the_mechanism_is_corrected():
    case = case_of("busy")
    slow = seen(case, Counted.PROMPT, pace_of(Counted.PROMPT, case).expected.likely / 2)
    assert (slow.calibration.near.prefill, slow.calibration.near.decode) == (pytest.approx(2), 1.0)
    slow = seen(case, Counted.EACH, pace_of(Counted.EACH, case).expected.likely * 0.7)
    assert slow.calibration.near.decode > 1
    assert slow.calibration.near.prefill == 1.0
    assert slow.calibration.near.training == 1.0


def test_a_relative_gets_a_part_of_it_and_another_card_nothing():
    book, case = load(), case_of("chat")
    found = seen(case, Counted.EACH, pace_of(Counted.EACH, case).expected.likely / 2)
    engine = replace(case.engine, calibration=found.calibration)
    assert times_of(case.workload, case.card, case.layout, engine).decode == pytest.approx(2)
    other = replace(case.workload, model=book.model("meta-llama/Llama-2-7b-hf"))
    assert 1 < times_of(other, case.card, case.layout, engine).decode < 2
    assert 1 < times_of(case.workload, case.card, Layout(tensor=2), engine).decode < 2
    assert times_of(case.workload, book.accelerators["a40"], case.layout, engine) == EXPECTED


def test_the_range_narrows_for_the_phase_that_was_measured():
    case = case_of("chat")
    before = pace_of(Counted.EACH, case)
    found = seen(case, Counted.EACH, before.expected.likely)
    after = pace_of(Counted.EACH, corrected(case, found))
    assert before.expected.low < after.expected.low < after.expected.high < before.expected.high
    prompts = [pace_of(Counted.PROMPT, each).expected for each in (case, corrected(case, found))]
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize(("name", "counted"), EVERY)
def test_verdicts(name, counted):
    case = case_of(name)
    pace = pace_of(counted, case)
    told = {
        Standing.SLOW: pace.expected.low * 0.9,
        Standing.NORMAL: (pace.expected.low + pace.expected.likely) / 2,
        Standing.IMPOSSIBLE: pace.ceiling * 1.1,
    }
    for standing, per_s in told.items():
        found = seen(case, counted, per_s)
        assert found.standing is standing
        assert (found.calibration is None) == (standing is Standing.IMPOSSIBLE)
    if pace.expected.high < pace.ceiling * 0.99:
        assert seen(case, counted, (pace.expected.high + pace.ceiling) / 2).standing is Standing.FAST


# ---------------------------------------------------------------- reasons


def causes(case, counted, per_s):
    return {gap.cause: gap for gap in gaps(seen(case, counted, per_s), load())}


@pytest.mark.parametrize(("name", "counted"), EVERY)
@pytest.mark.parametrize("part", [0.05, 0.3, 0.6])
def test_reasons_are_in_order_and_say_what_they_explain(name, counted, part):
    case = case_of(name)
    found = seen(case, counted, pace_of(counted, case).expected.likely * part)
    told = gaps(found, load())
    assert told
    for gap in told:
        assert 0 < gap.explains < 3
        left = found.pace.expected.likely * (found.per_s / found.pace.expected.likely) ** gap.explains
        assert gap.per_s == pytest.approx(left)


@pytest.mark.parametrize(
    ("name", "changes", "cause"),
    [
        ("lora", {"precision": "fp32"}, Cause.COMPUTED_IN_FP32),
        ("lora", {"training": {"packed": False, "micro_batch": 8}}, Cause.PADDING),
        ("lora", {"training": {"packed": True, "micro_batch": 2, "attention": "eager"}}, Cause.NO_FLASH_ATTENTION),
    ],
)
def test_a_machine_that_has_the_fault_is_explained_by_it(name, changes, cause):
    healthy = case_of(name, **({"training": {"packed": True, "micro_batch": 8}} if cause is Cause.PADDING else {}))
    faulty = case_of(name, **changes)
    per_s = pace_of(Counted.TRAINED, faulty).expected.likely
    found = causes(healthy, Counted.TRAINED, per_s)
    assert found[cause].per_s == pytest.approx(per_s)
    assert found[cause].explains == pytest.approx(1)


def test_weights_that_were_never_quantised_explain_the_speed_of_wide_ones():
    packed = case_of("chat", quantization="awq-int4")
    wide = pace_of(Counted.EACH, case_of("chat")).expected.likely
    first = gaps(seen(packed, Counted.EACH, wide), load())[0]
    assert first.cause in {Cause.NOT_QUANTISED, Cause.EAGER_LAUNCH}
    assert causes(packed, Counted.EACH, wide)[Cause.NOT_QUANTISED].explains == pytest.approx(1, abs=0.05)


def test_the_share_in_the_hosts_memory_makes_up_the_gap_or_is_all_of_it():
    case = case_of("chat")
    likely = pace_of(Counted.EACH, case).expected.likely
    half = causes(case, Counted.EACH, likely / 2)[Cause.HOST_MEMORY]
    assert half.explains == pytest.approx(1)
    assert 0 < float(half.setting.rstrip(" %")) < 100
    crawl = causes(case, Counted.EACH, likely / 500)[Cause.HOST_MEMORY]
    assert crawl.setting == "100.0 %"
    assert crawl.explains < 1


def test_pcie_explains_only_cards_that_have_more():
    found = causes(case_of("pair"), Counted.OUTPUT, pace_of(Counted.OUTPUT, case_of("pair")).expected.likely / 2)
    assert Cause.SLICE not in found
    single = causes(case_of("chat"), Counted.EACH, pace_of(Counted.EACH, case_of("chat")).expected.likely / 2)
    assert Cause.SLOW_LINK not in single
    assert Cause.IDLE_CARDS not in single


# ---------------------------------------------------------------- other meanings


def test_a_number_of_one_card_or_of_all_is_recognised():
    case = case_of("lora")
    likely = pace_of(Counted.TRAINED, case).expected.likely
    assert [each.meaning for each in readings(seen(case, Counted.TRAINED, likely / 2))] == [Meaning.OF_ONE_CARD]
    twice = seen(case, Counted.TRAINED, likely, per_gpu=True)
    assert twice.per_s == 2 * likely
    assert [each.meaning for each in readings(twice)] == [Meaning.OF_ALL_CARDS]


def test_steps_upside_down_and_micro_steps_are_recognised():
    case = case_of("lora")
    likely = pace_of(Counted.STEPS, case).expected.likely
    run = case.workload.training
    pieces = run.global_batch // (run.micro_batch * case.layout.data)
    assert pieces > 1
    told = [each.meaning for each in readings(seen(case, Counted.STEPS, likely * pieces))]
    assert Meaning.MICRO_STEPS in told
    assert Meaning.UPSIDE_DOWN in [each.meaning for each in readings(seen(case, Counted.STEPS, 1 / likely))]


def test_tokens_of_all_requests_are_recognised_where_one_was_meant():
    case = case_of("busy")
    of_all = pace_of(Counted.OUTPUT, case).expected.likely
    assert Counted.OUTPUT in [each.meaning for each in readings(seen(case, Counted.EACH, of_all))]
    assert readings(seen(case, Counted.OUTPUT, of_all)) == ()
