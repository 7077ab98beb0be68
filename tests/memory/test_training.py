import pytest
from tests.memory.build import GB, GIB, card, likely, measure, train, with_policy, with_training

from rackrate.evidence import Unknown
from rackrate.facts.accelerator import Precision
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Phase, Verdict
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

LLAMA_7B, LLAMA_13B = "meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-13b-hf"
FULL = Checkpointing.FULL


@pytest.fixture(scope="session")
def a100_80(book):
    return book.accelerators["a100-sxm4-80"]


@pytest.fixture(scope="session")
def trainer(book):
    return book.engine("transformers")


def test_full_fine_tuning_of_7b_in_mixed_precision_shows_54_gb_of_moments_and_does_not_fit_80_gb(
    book, a100_80, trainer
):
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=FULL)
    found = measure(workload, a100_80, trainer)
    assert likely(found, "optimizer_states") == 8 * 6_738_415_616
    assert likely(found, "optimizer_states") / GB == pytest.approx(53.9, abs=0.05)
    assert likely(found, "master_weights") == 4 * 6_738_415_616
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.peak.low > 1.3 * found.usable_bytes


def test_a_nominal_7b_has_56_gb_of_moments(book, a100_80, trainer):
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE)
    nominal = replace(workload, model=replace(workload.model, params_total=7_000_000_000))
    assert likely(measure(nominal, a100_80, trainer), "optimizer_states") == 56e9


def test_pure_16_bit_peaks_at_ten_bytes_a_parameter_at_the_step(book, a100_80, trainer):
    # Two-step simulation of Llama-2-7B with torch's multi-tensor AdamW: 62.76 GiB at the step.
    found = measure(train(book, LLAMA_7B, Task.FULL_FINETUNE, pure_16bit=True), a100_80, trainer)
    assert found.peak_phase is Phase.STEP
    beside = likely(found, "workspace") + likely(found, "unnamed")  # not in the simulation
    assert (found.allocated.likely - beside) / GIB == pytest.approx(62.76, abs=0.05)
    assert found.verdict is Verdict.FITS


def test_a_fused_step_peaks_two_bytes_lower_or_earlier(book, a100_80, trainer):
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, pure_16bit=True, checkpointing=FULL)
    fused = measure(workload, a100_80, with_policy(trainer, optimizer_temporary=False))
    assert 50.2 < fused.allocated.likely / GIB < 52


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"optimizer": "adamw-8bit"}, True),
        ({"optimizer": "paged-adamw-8bit"}, True),
        ({"optimizer": "adafactor"}, True),
        ({}, False),
    ],
)
def test_what_makes_7b_full_fine_tuning_fit_80_gb(book, a100_80, trainer, change, fits):
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=FULL, **change)
    assert (measure(workload, a100_80, trainer).verdict is Verdict.FITS) is fits


def test_8b_full_fine_tuning_has_128_gb_of_states_and_dies_at_the_step(book, a100_80):
    # OpenRLHF/OpenRLHF#698: ZeRO 2 on one A100 80GB, out of memory in the optimizer step.
    workload = train(book, "meta-llama/Meta-Llama-3-8B", Task.FULL_FINETUNE, tokens=128, checkpointing=FULL)
    found = measure(workload, a100_80, book.engine("deepspeed"))
    states = sum(likely(found, n) for n in ("weights", "gradients", "optimizer_states", "master_weights"))
    assert states / GB == pytest.approx(128, rel=0.05)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.peak_phase is Phase.STEP


def test_32b_on_seven_80_gb_cards_has_75_gb_of_states_each_and_does_not_fit(book, a100_80):
    # hiyouga/LlamaFactory#6999
    workload = train(
        book,
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        Task.FULL_FINETUNE,
        tokens=1024,
        checkpointing=FULL,
        global_batch=7,
    )
    found = measure(workload, a100_80, book.engine("deepspeed"), Layout(data=7, zero_stage=3))
    states = sum(likely(found, n) for n in ("weights", "gradients", "optimizer_states", "master_weights"))
    assert states / GB == pytest.approx(75, rel=0.05)
    assert found.verdict is Verdict.DOES_NOT_FIT


def test_13b_full_fine_tuning_fits_eight_cards_and_not_two(book, a100_80):
    # meta-llama/llama-cookbook#25: 8 x 80 GB work at batch 4, 2 x 80 GB do not.
    fsdp = book.engine("fsdp")
    workload = train(book, LLAMA_13B, Task.FULL_FINETUNE, batch=4, checkpointing=FULL)
    eight = measure(with_training(workload, global_batch=32), a100_80, fsdp, Layout(data=8, zero_stage=3))
    two = measure(with_training(workload, global_batch=8), a100_80, fsdp, Layout(data=2, zero_stage=3))
    assert (eight.verdict, two.verdict) == (Verdict.FITS, Verdict.DOES_NOT_FIT)
    assert likely(two, "optimizer_states") * 2 / GB == pytest.approx(104, abs=0.5)


def test_plain_data_parallelism_keeps_the_whole_mixture_on_every_card(book, a100_80):
    # hiyouga/LlamaFactory#2379
    engine = book.engine("peft-trl")
    workload = train(
        book, "mistralai/Mixtral-8x7B-v0.1", Task.LORA, tokens=512, batch=2, lora_rank=8, lora_targets=("q", "v"),
        form="fp16", precision=Precision.FP16, checkpointing=FULL, global_batch=16,
    )  # fmt: skip
    plain = measure(workload, a100_80, engine, Layout(data=8))
    assert likely(plain, "weights") / GB == pytest.approx(93.4, rel=0.02)
    assert plain.verdict is Verdict.DOES_NOT_FIT
    assert measure(workload, a100_80, engine, Layout(data=8, zero_stage=3)).verdict is Verdict.FITS


def test_loss_of_a_large_vocabulary_is_where_a_small_model_peaks(book, a100_80):
    # NVIDIA-NeMo/Automodel#2336: 5 to 7 GiB more at each call of the loss.
    workload = train(book, "Qwen/Qwen2.5-3B-Instruct", Task.FULL_FINETUNE, tokens=4096, global_batch=32)
    found = measure(workload, a100_80, book.engine("fsdp"), Layout(data=8, zero_stage=3))
    assert found.peak_phase is Phase.LOSS
    assert 5 < (likely(found, "logits") + likely(found, "loss_gradient")) / GIB < 7.1


def test_lora_of_mistral_7b_on_40_gb_fits_at_two_and_is_not_safe_at_four(book):
    # Lightning-AI/litgpt#781
    engine = book.engine("peft-trl")
    workload = train(book, "mistralai/Mistral-7B-v0.1", Task.LORA, tokens=1024, lora_rank=8, lora_targets=("q", "v"))
    four, two = (measure(with_training(workload, micro_batch=b), card(40_960), engine) for b in (4, 2))
    assert four.verdict is not Verdict.FITS
    assert two.verdict is Verdict.FITS


def test_quantised_weights_save_little_at_long_sequences(book, a100_80):
    # bitsandbytes-foundation/bitsandbytes#1569: 72,840 MB for LoRA, 63,082 for QLoRA whose norms stay narrow.
    engine = book.engine("axolotl")
    model = "mistralai/Ministral-8B-Instruct-2410"
    settings = {"tokens": 4096, "lora_rank": 16, "lora_targets": ("all",)}
    plain = measure(train(book, model, Task.LORA, **settings), a100_80, engine)
    quantised = measure(train(book, model, Task.QLORA, form="nf4", **settings), a100_80, engine)
    assert (plain.peak.likely - quantised.peak.likely) / 2**20 == pytest.approx(72_840 - 63_082, rel=0.10)
    assert quantised.peak.likely > 0.8 * plain.peak.likely


def test_adapters_cost_sixteen_bytes_a_parameter(book, a100_80):
    workload = train(book, LLAMA_7B, Task.LORA, lora_rank=8, lora_targets=("q", "v"))
    for engine, master in (("peft-trl", 0), ("deepspeed", 4)):
        found = measure(workload, a100_80, book.engine(engine))
        names = ["adapters", "gradients", "optimizer_states"] + ["master_weights"] * bool(master)
        assert sum(likely(found, n) for n in names) == 16 * 4_194_304


def test_qlora_keeps_half_a_byte_a_parameter(book, a100_80):
    found = measure(train(book, LLAMA_7B, Task.QLORA, form="nf4", lora_rank=8), a100_80, book.engine("peft-trl"))
    assert 0.5 < likely(found, "weights") / 6_738_415_616 < 0.65


def test_zero_divides_states_then_gradients_then_weights(book, a100_80):
    engine = book.engine("deepspeed")
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=FULL, global_batch=4)
    found = [measure(workload, a100_80, engine, Layout(data=4, zero_stage=stage)) for stage in range(4)]
    for name, first in (("optimizer_states", 1), ("master_weights", 1), ("gradients", 2), ("weights", 3)):
        sizes = [likely(f, name) for f in found]
        assert sizes == [sizes[0]] * first + [sizes[0] / 4] * (4 - first)
    assert [f.peak.likely for f in found] == sorted((f.peak.likely for f in found), reverse=True)


def test_gradients_that_accumulate_are_held_in_every_phase(book, a100_80, trainer):
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=FULL)
    once = measure(workload, a100_80, trainer)
    often = measure(with_training(workload, global_batch=8), a100_80, trainer)
    forward = [dict(f.phases)[Phase.FORWARD].likely for f in (once, often)]
    assert forward[1] - forward[0] == pytest.approx(likely(once, "gradients"))
    assert often.peak.likely == once.peak.likely


def test_a_pipeline_keeps_more_micro_batches_at_its_start_and_the_head_at_its_end(book, a100_80):
    engine = book.engine("fsdp")
    workload = train(book, LLAMA_7B, Task.FULL_FINETUNE, tokens=4096, batch=4, global_batch=16)
    found = measure(workload, a100_80, engine, Layout(pipeline=4))
    alone = measure(workload, a100_80, engine)
    final_norm = (4 + 2 + 2) * 4096 * 4 * 4096  # of the last stage: its FP32 copy, its output and the head's input
    assert likely(alone, "activations") - likely(found, "activations") == pytest.approx(final_norm)
    assert likely(found, "optimizer_states") < likely(alone, "optimizer_states") / 3


def test_fp32_training_keeps_sixteen_bytes_and_no_copies(book, a100_80, trainer):
    workload = train(
        book, "google-bert/bert-large-uncased", Task.FULL_FINETUNE, tokens=512, form="fp32", precision=Precision.FP32
    )
    found = measure(workload, a100_80, trainer)
    names = [p.name for p in found.components]
    static = sum(likely(found, n) for n in ("weights", "gradients", "optimizer_states"))
    assert static / GIB == pytest.approx(4.99, abs=0.01)
    assert "master_weights" not in names
    assert "logits" not in names


def test_bert_large_at_batch_4_takes_about_13_gib(book):
    # transformers docs, performance: 14,949 MiB with a 1,343 MiB context, gradients kept between steps.
    engine = with_policy(book.engine("transformers"), attention="eager")
    workload = train(
        book, "google-bert/bert-large-uncased", Task.FULL_FINETUNE, tokens=512, batch=4, form="fp32",
        precision=Precision.FP32, global_batch=16,
    )  # fmt: skip
    found = measure(workload, card(32_510, (7, 0)), engine)
    assert found.reserved.likely / GIB == pytest.approx((14_949 - 1343) / 1024, rel=0.10)


def test_driver_reading_is_reserved_plus_context(book, a100_80, trainer):
    found = measure(train(book, LLAMA_7B, Task.FULL_FINETUNE, pure_16bit=True), a100_80, trainer)
    slack, context = likely(found, "allocator_slack"), likely(found, "cuda_context")
    assert found.reserved.likely == pytest.approx(found.allocated.likely + slack)
    assert found.peak.likely == pytest.approx(found.reserved.likely + context)


def test_kepler_contexts_load_every_kernel(book, trainer):
    workload = train(book, "google-bert/bert-base-uncased", Task.FULL_FINETUNE, tokens=128)
    old, new = (measure(workload, card(12_288, c), trainer) for c in ((3, 7), (8, 0)))
    assert likely(old, "cuda_context") > 3 * likely(new, "cuda_context")


@pytest.mark.parametrize("task", [Task.RENDER])
def test_what_does_not_train_a_language_model_is_not_yet_known(book, a100_80, trainer, task):
    workload = replace(train(book, LLAMA_7B, Task.FULL_FINETUNE), task=task)
    found = estimate(workload, a100_80, Layout(), trainer)
    assert isinstance(found, Unknown)
    assert "not modelled yet" in found.reason


def test_an_unknown_optimizer_is_unknown_memory(book, a100_80, trainer):
    found = estimate(train(book, LLAMA_7B, Task.FULL_FINETUNE, optimizer="shampoo"), a100_80, Layout(), trainer)
    assert isinstance(found, Unknown)
    assert "shampoo" in found.reason


def test_a_serving_engine_does_not_train(book, a100_80):
    assert isinstance(
        estimate(train(book, LLAMA_7B, Task.LORA, lora_rank=8), a100_80, Layout(), book.engine("vllm")), Unknown
    )
