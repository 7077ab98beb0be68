"""A request becomes a workload with every default listed, or findings that name all that is wrong."""

from datetime import timedelta

import pytest

from rackrate.facts import bundled
from rackrate.facts.accelerator import Precision
from rackrate.facts.book import with_model
from rackrate.facts.sight import Sight
from rackrate.problems import Code, Finding, Severity
from rackrate.values import replace
from rackrate.workload.decide_use import download_bytes
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.reasons import REASONS, explain, reason_code
from rackrate.workload.request import request_from_flags, request_from_table
from rackrate.workload.workload import Checkpointing, Task

LLAMA = "meta-llama/Llama-2-7b-hf"
QWEN = "Qwen/Qwen2.5-7B-Instruct"
EYE = Sight(
    id="eye",
    names=("eye",),
    rule="one",
    patch=14,
    merge=1,
    side=336,
    width=1024,
    feed=4096,
    layers=24,
    source="a test",
)


def flags(book, /, **said):
    return parse(request_from_flags({path.replace("__", "."): value for path, value in said.items()}), book)


def workload(book, /, **said):
    parsed = flags(book, **said)
    assert isinstance(parsed, Parsed), parsed
    return parsed.workload


def refused(book, /, **said):
    findings = flags(book, **said)
    assert isinstance(findings, tuple), findings
    return findings


def of_code(findings, code):
    return [f for f in findings if f.code is code]


def assumed(work):
    return {a.key: (a.value, reason_code(a)) for a in work.assumptions}


# ---------------------------------------------------------------- defaults


def test_a_lora_fine_tune_with_its_defaults(book):
    work = workload(book, model=LLAMA, task="lora", training__tokens="30M")
    training = work.training
    assert (work.task, work.engine_id, work.precision, work.weights.id) == (
        Task.LORA,
        "peft-trl",
        Precision.BF16,
        "bf16",
    )
    assert (training.sequence_tokens, training.micro_batch, training.global_batch, training.tokens) == (
        2048,
        1,
        16,
        30e6,
    )
    assert (training.optimizer, training.checkpointing) == ("adamw", Checkpointing.FULL)
    assert (training.lora_rank, training.lora_targets) == (16, ("all",))
    assert (training.pure_16bit, training.packed) == (False, False)
    assert work.serving is None
    assert not work.is_service


def test_every_default_made_is_listed_and_nothing_that_was_said(book):
    said = {"model": LLAMA, "task": "lora", "training.tokens": "30M", "training.lora_rank": 8}
    work = parse(request_from_flags(said), book).workload
    assert not set(said) & set(assumed(work))
    assert {
        "engine", "precision", "quantization", "currency", "training.sequence_tokens", "training.micro_batch",
        "training.global_batch", "training.optimizer", "training.checkpointing", "training.pure_16bit",
        "training.packed", "training.lora_targets", "use.starts", "use.disk", "use.data_in", "use.data_out",
        "use.keep_disk_days", "limits.interruptible", "training.checkpoint_every", "training.evaluate_every",
    } == set(assumed(work))  # fmt: skip


FACTS = bundled.load()


def test_every_reason_can_be_explained_and_none_is_dead(book):
    seen = set()
    book = with_model(
        replace(book, sights=lambda: (EYE,)), replace(book.model(QWEN), id="eye", family="eye", modality="image+text")
    )
    sdxl = book.pipelines["stabilityai/sdxl"]
    film = replace(sdxl, denoiser=replace(sdxl.denoiser, kind="wan", frames=81))
    book = with_model(book, replace(book.model("stabilityai/sdxl"), id="film", pipeline=film))
    requests = [
        {"model": LLAMA},
        {"model": LLAMA, "currency": "CNY", "limits.budget": "1 USD", "serving.requests": 5},
        {"model": LLAMA, "limits.budget": "1 USD", "quantization": "fp32", "context": 512},
        {"model": "openai-community/gpt2", "serving.requests_per_s": 3},
        {"model": "openai/gpt-oss-20b"},
        {"model": LLAMA, "training.rows": 5, "training.mean_tokens": 3000},
        {"model": LLAMA, "training.rows": 5, "quantization": "nf4"},
        {"model": LLAMA, "task": "qlora", "training.evaluate_every": 100},
        {"model": LLAMA, "quantization": "gguf-q4_k_m"},
        {"model": LLAMA, "task": "pretrain"},
        {"model": LLAMA, "task": "full_finetune", "engine": "torchtune"},
        {"model": "stabilityai/sdxl", "images.pipeline_offload": "model"},
        {"model": "stabilityai/sdxl", "images.width": 512},
        {"model": "stabilityai/sdxl", "task": "lora"},
        {"model": "film", "task": "diffusion"},
        {"model": "eye", "serving.images_per_request": 1},
    ]
    cases = [(said, book) for said in requests]
    for said, known in [
        *cases,
        ({"model": "openai/whisper-tiny"}, FACTS),
        ({"model": "google/flan-t5-base", "task": "lora"}, FACTS),
        ({"model": LLAMA, "engine": "vllm", "serving.draft_model": LLAMA}, FACTS),
    ]:
        parsed = parse(request_from_flags(said), known)
        assert isinstance(parsed, Parsed), (said, parsed)
        for assumption in parsed.workload.assumptions:
            assert explain(assumption)
            assert assumption.value
            seen.add(reason_code(assumption))
    by_verbs = {
        "fresh_machine",
        "bridge_assumed",
        "usual_network",
        "most_rented",
        "requests_alike",
        "cheapest_holding",
        "largest_rented",
    }
    assert seen | by_verbs == set(REASONS)


def test_an_online_service_with_its_defaults(book):
    work = workload(book, model=QWEN)
    serving = work.serving
    assert (work.task, work.engine_id, work.precision) == (Task.INFERENCE, "vllm", Precision.BF16)
    assert (serving.online, serving.prompt_tokens, serving.output_tokens, serving.context_tokens) == (
        True,
        1024,
        128,
        1152,
    )
    assert (serving.concurrency, serving.cache_bits) == (1, 16)
    assert work.is_service
    assert work.horizon == timedelta(days=30)
    assert (work.use.hours_per_day, work.use.horizon_days) == (24, 30)


def test_inference_computes_in_the_checkpoints_type_and_fp32_checkpoints_in_fp16(book):
    assert workload(book, model=LLAMA).precision is Precision.FP16
    assert workload(book, model=QWEN).precision is Precision.BF16
    assert workload(book, model="EleutherAI/gpt-neo-2.7B").precision is Precision.FP16
    assert assumed(workload(book, model="openai-community/gpt2"))["precision"] == ("bf16", "native_dtype_unknown")


def test_a_quantised_checkpoint_keeps_its_format(book):
    work = workload(book, model="openai/gpt-oss-20b")
    assert (work.weights.id, work.precision) == ("mxfp4", Precision.BF16)
    assert workload(book, model="openai/gpt-oss-20b", engine="transformers").weights.id == "bf16"
    assert workload(book, model="moonshotai/Kimi-K2.5").weights.id == "gptq-int4"


def test_fp8_compute_takes_fp8_weights_and_fp8_weights_alone_do_not_ask_for_fp8_compute(book):
    compute = workload(book, model=LLAMA, precision="fp8")
    assert (compute.precision, compute.weights.id) == (Precision.FP8, "fp8")
    weights = workload(book, model=LLAMA, quantization="fp8")
    assert (weights.precision, weights.weights.id) == (Precision.FP16, "fp8")


def test_qlora_takes_nf4_and_the_format_that_the_engine_loads(book):
    assert workload(book, model=LLAMA, task="qlora").weights.id == "nf4-dq"
    assert workload(book, model=LLAMA, task="qlora", engine="torchtune").weights.id == "nf4"


def test_the_engine_follows_the_format_and_the_vendor(book):
    assert workload(book, model=LLAMA, quantization="gguf-q4_k_m").engine_id == "llama.cpp"
    assert workload(book, model=LLAMA, task="full_finetune").engine_id == "fsdp"
    amd = workload(book, model=LLAMA, limits__vendors="amd")
    assert (amd.engine_id, amd.limits.vendors) == ("vllm", ("AMD",))


def test_an_engine_without_master_weights_trains_in_16_bits(book):
    assert not workload(book, model=LLAMA, task="full_finetune").training.pure_16bit
    assert workload(book, model=LLAMA, task="full_finetune", engine="torchtune").training.pure_16bit


@pytest.mark.parametrize(
    ("said", "task"),
    [
        ({}, Task.INFERENCE),
        ({"batch": 4}, Task.INFERENCE),
        ({"serving.concurrency": 4}, Task.INFERENCE),
        ({"training.tokens": "1M"}, Task.LORA),
        ({"training.tokens": "1M", "quantization": "nf4"}, Task.QLORA),
        ({"training.tokens": "1M", "quantization": "bf16"}, Task.LORA),
    ],
)
def test_the_task_is_told_from_the_keys(book, said, task):
    work = parse(request_from_flags({"model": LLAMA, **said}), book).workload
    assert work.task is task
    assert assumed(work)["task"][0] == task


# ---------------------------------------------------------------- sizes


def test_rows_x_epochs_x_mean_tokens(book):
    training = workload(
        book, model=LLAMA, task="lora", training__rows="50k", training__epochs=2, training__mean_tokens=400
    ).training
    assert training.tokens == 50_000 * 2 * 400
    training = workload(book, model=LLAMA, task="lora", training__rows="50k").training
    assert training.tokens == 50_000 * 3 * 512


def test_pretraining_is_sized_by_parameters_and_tokens_a_step(book):
    training = workload(book, model=LLAMA, task="pretrain").training
    assert training.tokens == 20 * 6_738_415_616
    assert (training.sequence_tokens, training.global_batch, training.packed) == (4096, 512, True)


def test_the_default_sequence_is_capped_at_the_models_maximum_and_holds_the_mean_row(book):
    assert workload(book, model="openai-community/gpt2", task="lora").training.sequence_tokens == 1024
    long_rows = workload(book, model=QWEN, task="lora", training__rows=10, training__mean_tokens=3000.5)
    assert long_rows.training.sequence_tokens == 3001


def test_the_default_global_batch_is_a_multiple_of_the_micro_batch(book):
    assert workload(book, model=LLAMA, task="lora", batch=3).training.global_batch == 18
    assert workload(book, model=LLAMA, task="lora", batch=64).training.global_batch == 64


def test_batch_and_context_mean_what_the_task_makes_of_them(book):
    training = workload(book, model=LLAMA, task="lora", batch=4, context=512).training
    assert (training.micro_batch, training.sequence_tokens) == (4, 512)
    serving = workload(book, model=LLAMA, task="inference", batch=4, context=4096).serving
    assert (serving.concurrency, serving.context_tokens) == (4, 4096)
    assert serving.prompt_tokens + serving.output_tokens == 4096


@pytest.mark.parametrize(
    ("said", "request_tokens"),
    [
        ({"context": 4096, "serving.prompt_tokens": 1000}, (1000, 128, 4096)),
        ({"context": 4096, "serving.output_tokens": 1000}, (3096, 1000, 4096)),
        ({"context": 100}, (75, 25, 100)),
        ({"context": 1010, "serving.prompt_tokens": 1000}, (1000, 10, 1010)),
        ({"serving.prompt_tokens": 2000}, (2000, 128, 2128)),
        ({"serving.output_tokens": 2000}, (1024, 2000, 3024)),
        ({"context": 2}, (1, 1, 2)),
    ],
)
def test_prompt_output_and_context_fit_each_other(book, said, request_tokens):
    serving = parse(request_from_flags({"model": LLAMA, **said}), book).workload.serving
    assert (serving.prompt_tokens, serving.output_tokens, serving.context_tokens) == request_tokens


def test_a_default_request_fits_a_short_model(book):
    serving = workload(book, model="openai-community/gpt2").serving
    assert serving.context_tokens == 1024


def test_a_rate_becomes_requests_in_flight_by_littles_law(book):
    targets = {"serving__first_token_ms": 500, "serving__output_token_ms": 50}
    serving = workload(book, model=LLAMA, serving__requests_per_s=2, serving__output_tokens=100, **targets).serving
    assert serving.concurrency == 11  # 2 x (0.5 + 100 x 0.05)
    assert (serving.max_first_token_s, serving.max_s_per_output_token) == (0.5, 0.05)


def test_a_batch_job_is_offline_and_needs_its_size(book):
    work = workload(book, model=LLAMA, serving__requests="10k", limits__deadline="2 days")
    assert (work.serving.online, work.serving.requests, work.serving.concurrency) == (False, 10_000, 32)
    assert work.limits.deadline_hours == 48
    assert workload(book, model=LLAMA, serving__requests=5, engine="llama.cpp").serving.concurrency == 4
    assert of_code(refused(book, model=LLAMA, serving__mode="offline"), Code.MISSING_VALUE)


def test_disk_is_planned_for_weights_and_checkpoints(book):
    """By hand: Llama-2-7B in BF16 is 13.477 GB; 50 + 2 x 13.477 = 76.95; a checkpoint of 14 B is 94.34 GB more."""
    assert workload(book, model=LLAMA, task="lora").use.disk_bytes == 77e9
    assert workload(book, model=LLAMA, task="full_finetune").use.disk_bytes == 172e9
    assert workload(book, model=LLAMA, task="full_finetune").use.data_out_bytes == 14e9


def test_qlora_downloads_16_bits_and_a_quantised_checkpoint_its_own(book):
    def fetched(**keys):
        work = workload(book, model=LLAMA, **keys)
        return download_bytes(work.model, work.weights, work.task)

    assert fetched(task="qlora") == pytest.approx(13.477e9, rel=1e-3)
    # by hand: 2 x 131 M embedding and head weights in 16 bits, 6,476 M of 4.16 bits: 0.52 + 3.37 GB
    assert fetched(quantization="awq-int4") == pytest.approx(3.89e9, rel=1e-2)
    assert workload(book, model=LLAMA, task="qlora").use.data_in_bytes == 0


def test_costs_are_shown_in_the_currency_asked_for_or_the_budgets(book):
    assert workload(book, model=LLAMA).display_currency == "USD"
    assert workload(book, model=LLAMA, limits__budget="3000 CNY/month").display_currency == "CNY"
    assert workload(book, model=LLAMA, limits__budget="3000 CNY/month", currency="eur").display_currency == "EUR"


# ---------------------------------------------------------------- limits


def test_limits_are_carried_over(book):
    limits = workload(
        book,
        model=LLAMA,
        limits__gpus="a100, A40",
        limits__gpu_counts="1,2",
        limits__max_gpus=2,
        limits__markets="On-Demand, spot",
        limits__interruptible=True,
        limits__require="FP8-compute, min_memory_gb = 40.0, fp8_compute",
        limits__providers="runpod",
    ).limits
    assert limits.gpus == ("a100-sxm4-40", "a100-sxm4-80", "a40")
    assert (limits.gpu_counts, limits.max_gpus) == ((1, 2), 2)
    assert limits.markets == ("on_demand", "spot")
    assert limits.interruptible
    assert limits.require == ("fp8_compute", "min_memory_gb=40")
    assert limits.providers == ("runpod",)


@pytest.mark.parametrize(
    ("said", "code", "subject", "action"),
    [
        ({"limits.gpus": "a41"}, Code.UNKNOWN_NAME, "--gpu", "a40"),
        ({"limits.vendors": "NVIDA"}, Code.UNKNOWN_NAME, "--vendor", "NVIDIA"),
        ({"limits.require": "fp8"}, Code.BAD_VALUE, "--require", "fp8_compute"),
        ({"limits.require": "min_memory_gb"}, Code.BAD_VALUE, "--require", "min_memory_gb=NUMBER"),
        ({"limits.budget": "5 CHF"}, Code.UNKNOWN_NAME, "--budget", "CNY, EUR, USD"),
        ({"currency": "CHF"}, Code.UNKNOWN_NAME, "--currency", "CNY, EUR, USD"),
        ({"limits.gpu_counts": "8", "limits.max_gpus": 4}, Code.CONFLICT, "--max-gpus", "raise"),
        (
            {"limits.providers": "a,b", "limits.exclude_providers": "b"},
            Code.CONFLICT,
            "--exclude-provider",
            "take b out",
        ),
        ({"engine": "vlm"}, Code.UNKNOWN_NAME, "--engine", "vllm"),
        ({"quantization": "awq"}, Code.UNKNOWN_NAME, "--quantization", "awq-int4"),
        ({"engine": "vllm", "quantization": "gguf-q4_k_m"}, Code.CONFLICT, "--quantization", "llama.cpp"),
        ({"engine": "vllm", "limits.vendors": "NVIDIA", "task": "lora"}, Code.CONFLICT, "--engine", "peft-trl"),
        ({"engine": "torchtune", "limits.vendors": "AMD", "task": "lora"}, Code.CONFLICT, "--vendor", "NVIDIA"),
        ({"task": "lora", "quantization": "nf4"}, Code.CONFLICT, "--quantization", "qlora"),
        ({"task": "qlora", "quantization": "bf16"}, Code.CONFLICT, "--quantization", "nf4-dq"),
        ({"task": "full_finetune", "quantization": "nf4"}, Code.CONFLICT, "--quantization", "qlora"),
        ({"task": "qlora", "quantization": "gguf-q4_k_m"}, Code.CONFLICT, "--quantization", "another quantization"),
        ({"task": "lora", "training.tokens": 5, "training.rows": 5}, Code.CONFLICT, "--tokens", "leave one out"),
        ({"task": "lora", "training.epochs": 2}, Code.MISSING_VALUE, "--epochs", "--rows"),
        ({"task": "lora", "batch": 3, "training.global_batch": 16}, Code.CONFLICT, "--global-batch", "choose 15 or 18"),
        (
            {"task": "lora", "training.rows": 1, "context": 9, "training.mean_tokens": 10},
            Code.CONFLICT,
            "--mean-tokens",
            "raise",
        ),
        ({"context": 99, "serving.prompt_tokens": 99}, Code.CONFLICT, "--context", "to 100"),
        ({"batch": 4, "serving.concurrency": 8}, Code.CONFLICT, "--batch", "leave one out"),
        ({"task": "lora", "serving.concurrency": 8}, Code.CONFLICT, "--concurrency", "choose task inference"),
        ({"task": "inference", "training.rows": 8}, Code.CONFLICT, "--rows", "training task"),
        ({"task": "full_finetune", "training.lora_rank": 8}, Code.CONFLICT, "--rank", "lora or qlora"),
        ({"limits.deadline": 8}, Code.CONFLICT, "--deadline", "serving.requests"),
        ({"serving.requests": 8, "serving.requests_per_s": 1}, Code.CONFLICT, "--requests-per-s", "leave it out"),
        ({"training.rows": 8, "serving.requests": 1}, Code.MISSING_VALUE, "task", "task"),
        ({"model": "meta-llama/Llama-2-7b-hff"}, Code.UNKNOWN_NAME, "--model", LLAMA),
        ({"model": "stabilityai/sdxl"}, Code.NOT_YET, "--model", "--task diffusion"),
        ({"model": "stabilityai/sdxl", "task": "pretrain"}, Code.NOT_YET, "--task", "--task diffusion"),
        ({"task": "diffusion"}, Code.NOT_YET, "--model", "choose"),
        ({"task": "render"}, Code.NOT_YET, "--task", "choose"),
    ],
)
def test_refused_with_the_next_step(book, said, code, subject, action):
    findings = parse(request_from_flags({"model": LLAMA, **said}), book)
    assert isinstance(findings, tuple)
    assert len(findings) == 1, findings
    finding = findings[0]
    assert (finding.code, finding.subject) == (code, subject)
    assert action in finding.action + finding.expected


def test_agreeing_twice_is_no_contradiction(book):
    assert workload(book, model=LLAMA, batch=8, serving__concurrency=8).serving.concurrency == 8


def test_an_encoder_can_be_trained_and_run(book):
    work = workload(book, model="google-bert/bert-large-uncased", task="full_finetune")
    assert work.training.sequence_tokens == 512
    work = workload(book, model="google-bert/bert-large-uncased", task="inference")
    assert work.serving.prompt_tokens + work.serving.output_tokens <= 512


def test_a_task_for_later_is_answered_without_asking_for_a_model(book):
    (finding,) = refused(book, task="render")
    assert finding.code is Code.NOT_YET
    assert "qlora" in finding.expected


def test_nothing_at_all_asks_for_a_model(book):
    (finding,) = parse(request_from_table({}), book)
    assert (finding.code, finding.subject) == (Code.MISSING_VALUE, "model")


def test_all_problems_are_named_at_once(book):
    findings = refused(
        book,
        model="meta-llama/Llama-2-7b-hff",
        task="lora",
        precision="fp9",
        training__tokens="many",
        limits__gpus="a41",
        limits__budget="500",
        engine="vlm",
        quantization="awq",
        serving__concurrency=3,
        traning__rows=5,
    )
    assert {f.subject for f in findings} == {
        "--model", "--precision", "--tokens", "--gpu", "--budget", "--engine", "--quantization", "--concurrency",
        "--traning.rows",
    }  # fmt: skip


# ---------------------------------------------------------------- files, flags and keys


def from_file(table, said, book):
    request = request_from_flags(said).over(request_from_table(table, source="job.toml", lines={"model": 3}))
    return parse(request, book)


def test_a_finding_names_file_line_and_key(book):
    findings = from_file({"model": "x", "training": {"rows": "y"}}, {}, book)
    assert [f.subject for f in findings] == ["job.toml training.rows", "job.toml:3 model"]


def test_a_flag_outranks_the_same_key_of_the_file(book):
    table = {"model": LLAMA, "task": "lora", "training": {"micro_batch": 2, "global_batch": 8}}
    parsed = from_file(table, {"training.global_batch": 32}, book)
    assert (parsed.workload.training.micro_batch, parsed.workload.training.global_batch) == (2, 32)
    assert not parsed.warnings


def test_a_flag_outranks_what_contradicts_it_in_the_file_and_says_so(book):
    table = {"model": LLAMA, "task": "lora", "training": {"micro_batch": 2, "rows": 5, "epochs": 2}}
    parsed = from_file(table, {"training.tokens": "30M", "batch": 4}, book)
    assert (parsed.workload.training.tokens, parsed.workload.training.micro_batch) == (30e6, 4)
    assert [(f.subject, f.severity) for f in parsed.warnings] == [
        ("job.toml training.micro_batch", Severity.WARNING),
        ("job.toml training.rows", Severity.WARNING),
    ]
    parsed = from_file(table | {"training": {"tokens": 5}}, {"training.rows": 7}, book)
    assert parsed.workload.training.tokens == 7 * 3 * 512
    parsed = from_file({"model": LLAMA, "batch": 4}, {"serving.concurrency": 8}, book)
    assert parsed.workload.serving.concurrency == 8
    assert "job.toml batch" in [f.subject for f in parsed.warnings]


def test_a_task_by_flag_sets_the_other_tasks_keys_of_the_file_aside_and_says_so(book):
    table = {"model": LLAMA, "task": "lora", "training": {"rows": 5}, "serving": {"concurrency": 3}}
    parsed = from_file(table, {"task": "inference"}, book)
    assert parsed.workload.serving.concurrency == 3
    assert [f.subject for f in of_code(parsed.warnings, Code.CONFLICT)] == ["job.toml training.rows"]
    assert isinstance(from_file(table, {}, book), tuple)


@pytest.mark.parametrize(
    ("table", "subject", "action"),
    [
        ({"modle": LLAMA}, "modle", "did you mean model or"),
        ({"training": {"lora_r": 8}}, "training.lora_r", "training.lora_rank"),
        ({"micro_batch": 8}, "micro_batch", "training.micro_batch"),
        ({"per_device_train_batch_size": 8}, "per_device_train_batch_size", "training.micro_batch"),
        ({"serving": {"max_model_len": 8}}, "serving.max_model_len", "context"),
        ({"limits": {"gpu": "a40"}}, "limits.gpu", "limits.gpus"),
        ({"training.rows": 8}, '"training.rows"', "training.rows"),
        ({"qqqqqq": 8}, "qqqqqq", "docs/workload.md"),
        ({"": 8}, "an empty text", "docs/workload.md"),
        ({"other": {"rows": 8}}, "other", "docs/workload.md"),
        ({"training": {"": 8}}, "training.", "training.rows"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_valid_one(book, table, subject, action):
    findings = parse(request_from_table({"model": LLAMA, "task": "lora"} | table), book)
    found = of_code(findings, Code.UNKNOWN_KEY)
    assert [f.subject for f in found] == [subject]
    assert action in found[0].action


def test_a_section_that_is_no_table_is_named(book):
    findings = parse(request_from_table({"model": LLAMA, "training": 5}), book)
    assert [(f.code, f.subject) for f in findings] == [(Code.BAD_VALUE, "training")]
    assert "[training]" in findings[0].action


def test_many_unknown_keys_are_summed_up(book):
    findings = parse(request_from_table({"model": LLAMA} | {f"zzz{n}": n for n in range(500)}), book)
    assert len(findings) == 21
    assert findings[-1].observed == "480 more unknown keys"


def test_null_counts_as_not_said(book):
    parsed = parse(request_from_table({"model": LLAMA, "task": None, "serving": {"requests": None}}), book)
    assert parsed.workload.task is Task.INFERENCE


# ---------------------------------------------------------------- warnings


def test_a_warning_where_the_engine_would_plan_for_more(book):
    parsed = flags(book, model=QWEN, engine="vllm", context=4096)
    (warning,) = parsed.warnings
    assert (warning.code, warning.severity) == (Code.ENGINE_DEFAULT_LARGER, Severity.WARNING)
    assert "131072" in warning.observed
    assert "4096" in warning.expected
    assert not flags(book, model=QWEN, engine="vllm", context=131072).warnings
    assert not flags(book, model=QWEN, engine="transformers", context=4096).warnings


def test_a_warning_where_the_context_is_beyond_the_model(book):
    for said in ({"context": 8192}, {"task": "lora", "context": 8192}):
        (warning,) = flags(book, model=LLAMA, **said).warnings
        assert (warning.code, warning.observed) == (Code.CONTEXT_BEYOND_MODEL, "8192 tokens")
        assert "4096" in warning.expected


def test_findings_are_findings(book):
    assert all(isinstance(f, Finding) for f in refused(book, task="x"))


@pytest.mark.parametrize(
    ("precision", "cached", "bits"),
    [("fp32", "fp32", 32), ("fp16", "fp16", 16), ("bf16", "bf16", 16), ("fp8", "bf16", 16)],
)
def test_the_cache_is_kept_in_the_plain_type_of_the_precision(book, precision, cached, bits):
    work = workload(book, model=LLAMA, precision=precision)
    assert work.serving.cache_bits == bits
    assert assumed(work)["serving.cache_precision"] == (cached, "same_as_precision")


@pytest.mark.parametrize(("said", "bits"), [("fp32", 32), ("bf16", 16), ("fp8", 8), ("int8", 8)])
def test_a_cache_precision_that_is_said_is_kept(book, said, bits):
    assert workload(book, model=LLAMA, serving__cache_precision=said).serving.cache_bits == bits
