"""What must hold for every workload, not only for those that someone measured."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.memory.build import card, likely, measure, serve, train, with_serving, with_training

from rackrate.facts import bundled
from rackrate.memory.estimate_types import Phase, Verdict
from rackrate.memory.phases import verdict
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

BOOK = bundled.load()
MODELS = st.sampled_from(
    [
        "meta-llama/Llama-2-7b-hf",
        "meta-llama/Meta-Llama-3-8B",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen/Qwen3-30B-A3B",
        "google/gemma-3-27b-it",
        "deepseek-ai/DeepSeek-V2-Lite",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "microsoft/phi-2",
    ]
)
SERVERS = st.sampled_from(["vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"])
TRAINERS = st.sampled_from(["transformers", "peft-trl", "torchtune", "deepspeed", "fsdp", "axolotl"])
TRAINING_TASKS = st.sampled_from([Task.LORA, Task.QLORA, Task.FULL_FINETUNE, Task.PRETRAIN])
CARDS = st.sampled_from([16_384, 24_564, 40_960, 81_559, 143_771])
SIZES = st.integers(min_value=1, max_value=16_384)
FACTORS = st.integers(min_value=1, max_value=8)


@st.composite
def trainings(draw):
    task = draw(TRAINING_TASKS)
    settings = {"lora_rank": 16, "lora_targets": ("all",)} if task.trains_adapters else {}
    form = "nf4" if task is Task.QLORA else "bf16"
    checkpointing = draw(st.sampled_from(list(Checkpointing)))
    batch = draw(st.integers(min_value=1, max_value=16))
    return train(
        BOOK, draw(MODELS), task, tokens=draw(SIZES), batch=batch, form=form, checkpointing=checkpointing,
        global_batch=batch * draw(FACTORS), **settings,
    )  # fmt: skip


@given(model=MODELS, server=SERVERS, mib=CARDS, tokens=SIZES, more=FACTORS, concurrency=FACTORS)
def test_longer_sequences_never_need_less(*, model, server, mib, tokens, more, concurrency):
    engine, accelerator = BOOK.engine(server), card(mib)
    short, long = (
        measure(serve(BOOK, model, tokens=n, concurrency=concurrency), accelerator, engine)
        for n in (tokens, tokens * more)
    )
    assert long.peak.likely >= short.peak.likely * (1 - 1e-12)
    assert long.cache.full_sequences <= short.cache.full_sequences


@given(model=MODELS, server=SERVERS, mib=CARDS, tokens=SIZES, concurrency=st.integers(1, 64), more=FACTORS)
def test_more_requests_never_need_less_and_never_change_the_verdict_where_they_queue(
    *, model, server, mib, tokens, concurrency, more
):
    engine, accelerator = BOOK.engine(server), card(mib)
    workload = serve(BOOK, model, tokens=tokens, concurrency=concurrency)
    few = measure(workload, accelerator, engine)
    many = measure(with_serving(workload, concurrency=concurrency * more), accelerator, engine)
    assert many.peak.likely >= few.peak.likely * (1 - 1e-12)
    if engine.serving.share_of == "total" and engine.serving.continuous_batching and engine.serving.memory_share:
        assert many.verdict is few.verdict


@given(model=MODELS, server=SERVERS, mib=CARDS, tokens=SIZES, concurrency=FACTORS)
def test_serving_answers_hang_together(model, server, mib, tokens, concurrency):
    found = measure(serve(BOOK, model, tokens=tokens, concurrency=concurrency), card(mib), BOOK.engine(server))
    consistent(found)
    assert found.usable_bytes <= mib * 2**20
    assert found.sequences_held <= found.sequences_asked == concurrency
    assert 0 <= found.cache.room_bytes.low <= found.cache.room_bytes.high
    if found.queues:
        assert found.peak.likely >= found.usable_bytes * (1 - 1e-9)


@given(workload=trainings(), trainer=TRAINERS, mib=CARDS)
def test_training_answers_hang_together(workload, trainer, mib):
    found = measure(workload, card(mib), BOOK.engine(trainer))
    consistent(found)
    assert found.allocated.likely <= found.reserved.likely <= found.peak.likely


def consistent(found):
    assert 0 <= found.peak.low <= found.peak.likely <= found.peak.high
    assert found.verdict is verdict(found.peak, found.usable_bytes)
    peaks = dict(found.phases)
    assert found.peak == peaks[found.peak_phase]
    assert found.peak.likely == max(peak.likely for peak in peaks.values())
    for part in found.components:
        assert 0 <= part.bytes.low <= part.bytes.likely <= part.bytes.high
    held = [p.bytes.likely for p in found.components if {found.peak_phase, Phase.ALWAYS} & set(p.phases)]
    assert sum(held) == pytest.approx(found.peak.likely)


@given(workload=trainings(), trainer=TRAINERS, more=st.integers(min_value=2, max_value=8))
def test_a_larger_micro_batch_or_a_longer_sequence_never_needs_less(workload, trainer, more):
    engine, accelerator = BOOK.engine(trainer), card(81_559)
    now = workload.training
    once = with_training(workload, global_batch=now.micro_batch * more)
    base = measure(with_training(once, micro_batch=now.micro_batch, global_batch=now.micro_batch), accelerator, engine)
    wider = with_training(once, micro_batch=now.micro_batch * more)
    longer = with_training(once, sequence_tokens=now.sequence_tokens * more, global_batch=now.micro_batch)
    assert measure(wider, accelerator, engine).peak.likely >= base.peak.likely
    assert measure(longer, accelerator, engine).peak.likely >= base.peak.likely


@given(workload=trainings(), trainer=TRAINERS)
def test_checkpointing_never_needs_more(workload, trainer):
    engine, accelerator = BOOK.engine(trainer), card(81_559)
    order = (Checkpointing.FULL, Checkpointing.SELECTIVE, Checkpointing.NONE)
    peaks = [measure(with_training(workload, checkpointing=c), accelerator, engine).peak.likely for c in order]
    assert peaks[0] <= peaks[1] * (1 + 1e-9)
    assert peaks[1] <= peaks[2] * (1 + 1e-9)


@given(workload=trainings(), trainer=TRAINERS, stage=st.integers(min_value=0, max_value=2))
def test_sharding_further_never_holds_more_states(workload, trainer, stage):
    engine, accelerator = BOOK.engine(trainer), card(81_559)
    less, more = (measure(workload, accelerator, engine, Layout(data=4, zero_stage=z)) for z in (stage, stage + 1))
    assert states(more) <= states(less)


def states(found):
    names = {"weights", "gradients", "optimizer_states", "master_weights", "adapters"}
    return sum(p.bytes.likely for p in found.components if p.name in names)


@given(
    model=MODELS,
    server=st.sampled_from(["vllm", "sglang", "tensorrt-llm"]),
    tokens=SIZES,
    tensor=st.sampled_from([1, 2, 4]),
)
def test_more_tensor_parallelism_never_needs_more_on_a_card(model, server, tokens, tensor):
    engine, accelerator = BOOK.engine(server), card(143_771)
    workload = serve(BOOK, model, tokens=tokens)
    few, many = (measure(workload, accelerator, engine, Layout(tensor=t)) for t in (tensor, tensor * 2))
    assume(not few.queues)
    assert many.peak.likely <= few.peak.likely * (1 + 1e-12)


@given(workload=trainings(), trainer=TRAINERS, tensor=st.sampled_from([2, 4]))
def test_more_tensor_parallelism_never_needs_more_in_training(workload, trainer, tensor):
    engine, accelerator = BOOK.engine(trainer), card(81_559)
    few, many = (measure(workload, accelerator, engine, Layout(tensor=t)) for t in (tensor, tensor * 2))
    assert many.peak.likely <= few.peak.likely * (1 + 1e-12)


@given(model=MODELS, tokens=SIZES, trainer=st.sampled_from(["peft-trl", "axolotl", "torchtune", "deepspeed"]))
def test_quantised_weights_are_smaller(model, tokens, trainer):
    plain, quantised = (
        measure(train(BOOK, model, task, tokens=tokens, form=form, lora_rank=16), card(81_559), BOOK.engine(trainer))
        for task, form in ((Task.LORA, "bf16"), (Task.QLORA, "nf4"))
    )
    assert likely(quantised, "weights") < likely(plain, "weights")


@given(model=MODELS, server=SERVERS, tokens=SIZES, mib=CARDS)
def test_more_memory_never_turns_a_fit_into_a_failure(model, server, tokens, mib):
    order = (Verdict.FITS, Verdict.TIGHT, Verdict.DOES_NOT_FIT)
    workload, engine = serve(BOOK, model, tokens=tokens), BOOK.engine(server)
    small, large = (measure(workload, card(size), engine) for size in (mib, mib * 2))
    assert order.index(large.verdict) <= order.index(small.verdict)


@given(model=MODELS, server=SERVERS, tokens=SIZES)
def test_an_eight_bit_cache_never_needs_more(model, server, tokens):
    workload, engine, accelerator = serve(BOOK, model, tokens=tokens), BOOK.engine(server), card(143_771)
    wide, narrow = (measure(with_serving(workload, cache_bits=b), accelerator, engine) for b in (16, 8))
    assert narrow.peak.likely <= wide.peak.likely * (1 + 1e-12)


@pytest.mark.parametrize("server", ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"])
def test_every_bundled_model_gets_an_answer_or_a_reason(server):
    from rackrate.evidence import Unknown
    from rackrate.memory.estimate import estimate

    engine, accelerator = BOOK.engine(server), card(81_559)
    base = serve(BOOK, "meta-llama/Llama-2-7b-hf")
    for model in map(BOOK.model, BOOK.model_ids):
        for layout in (Layout(), Layout(tensor=2), Layout(pipeline=2)):
            found = estimate(replace(base, model=model), accelerator, layout, engine)
            if isinstance(found, Unknown):
                assert model.id in found.reason
            else:
                assert found.peak.likely > 0


@pytest.mark.parametrize("server", ["vllm", "sglang", "llama.cpp", "transformers", "autoawq"])
@pytest.mark.parametrize("model", ["facebook/opt-125m", "Qwen/Qwen2.5-0.5B-Instruct"])
@pytest.mark.parametrize("tensor", [1, 8])
def test_no_reading_of_a_small_job_is_below_nothing(server, model, tensor):
    found = measure(serve(BOOK, model, tokens=2), card(188_416), BOOK.engine(server), Layout(tensor=tensor))
    for reading in (found.peak, found.reserved, found.allocated):
        assert 0 <= reading.low <= reading.likely <= reading.high


@given(
    model=MODELS,
    data=st.sampled_from([1, 2, 4]),
    stage=st.sampled_from([0, 2, 3]),
    what=st.sampled_from(["optimizer", ""]),
)
def test_weights_stay_on_the_card_while_the_optimizer_waits_with_the_host(*, model, data, stage, what):
    """An optimizer in the host's memory takes its FP32 weights along; those that are computed with are here."""
    workload = train(BOOK, model, Task.FULL_FINETUNE, tokens=16, batch=1, global_batch=data, offload=what)
    found = measure(workload, card(81_559), BOOK.engine("deepspeed"), Layout(data=data, zero_stage=stage))
    shards = data if stage == 3 else 1
    assert found.peak.likely >= 2 * workload.model.params_total / shards


@given(workload=trainings(), trainer=TRAINERS, offload=st.sampled_from(["optimizer", "parameters"]))
def test_what_waits_with_the_host_never_adds_to_the_card(workload, trainer, offload):
    engine, accelerator = BOOK.engine(trainer), card(81_559)
    here, waits = (measure(with_training(workload, offload=o), accelerator, engine) for o in ("", offload))
    assert waits.peak.likely <= here.peak.likely * (1 + 1e-9)


@pytest.mark.parametrize("tokens", [64, 512, 2048])
@pytest.mark.parametrize("model", ["zai-org/GLM-5", "deepseek-ai/DeepSeek-V3"])
def test_checkpoints_beyond_growing_gradients_are_never_below_nothing(model, tokens):
    for batch in range(1, 9):
        workload = train(BOOK, model, Task.QLORA, tokens=tokens, batch=batch, form="nf4", lora_rank=16,
                         lora_targets=("gate", "up", "down"), checkpointing=Checkpointing.FULL)  # fmt: skip
        consistent(measure(workload, card(81_559), BOOK.engine("peft-trl"), Layout(data=4, zero_stage=3)))
