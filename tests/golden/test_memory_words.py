"""Spellings of published rows: each is read as what it means, or left as it is."""

import pytest
import score
from scoring import memory
from scoring.cells import Row
from scoring.memory_columns import filled
from scoring.memory_rows import known_formats
from scoring.memory_words import divided, kin_of, length_of, optimizer_of, rank_of, task_of, weight_format


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("Q4_K_M", "gguf-q4_k_m"), ("q8_0", "gguf-q8_0"), ("GGUF Q5_K_M", "gguf-q5_k_m"), ("IQ4_XS", "gguf-iq4_xs"),
        ("Q4_1", "gguf-q4_1"), ("gptq-4bit-128g", "gptq-int4"), ("GPTQ Int8", "gptq-int8"),
        ("8-bit GPTQ", "gptq-int8"), ("AWQ 4-bit g128", "awq-int4"), ("int4wo-64", "gptq-int4"),
        ("int8wo", "int8-plain"), ("W4A16", "gptq-int4"), ("W8A8", "int8-w8a8"), ("FP8 dynamic", "fp8"),
        ("float8_e4m3fn", "fp8"), ("bnb-4bit", "nf4"), ("4bit", "nf4"), ("NF4 (double quant)", "nf4-dq"),
        ("load_in_8bit", "int8"), ("int8", "int8"), ("exl2 4.0bpw", "exl2-4"), ("EXL2-5", "exl2-5"),
        ("MXFP4", "mxfp4"), ("NVFP4", "nvfp4"), ("bfloat16", ""), ("16-bit", ""), ("ternary", "ternary"),
    ],
)  # fmt: skip
def test_formats(words, means):
    assert weight_format(words, known_formats()) == means


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("LoRA r=16 all-linear", "lora"), ("QLoRA", "qlora"), ("lora (4-bit)", "qlora"), ("DoRA", "lora"),
        ("full fine-tuning (bf16)", "full_finetune"), ("full_ft", "full_finetune"), ("SFT", "full_finetune"),
        ("continued pre-training", "pretrain"), ("Inference", "inference"), ("text generation", "inference"),
        ("serving", "inference"), ("reranker", "inference"), ("peft:ia3", ""), ("adapter_v2", ""), ("load", ""),
    ],
)  # fmt: skip
def test_tasks(words, means):
    assert task_of(words) == means


@pytest.mark.parametrize(
    ("words", "cards", "means"),
    [
        ("TP=2", 2, {"tp": "2"}),
        ("tp4", 4, {"tp": "4"}),
        ("tensor parallel 8", 8, {"tp": "8"}),
        ("fsdp x8", 8, {"dp": "8", "zero_stage": "3"}),
        ("FSDP", 4, {"dp": "4", "zero_stage": "3"}),
        ("fsdp8 tp2", 16, {"dp": "8", "tp": "2", "zero_stage": "3"}),
        ("zero2", 8, {"dp": "8", "zero_stage": "2"}),
        ("ZeRO-3 offload", 2, {"dp": "2", "zero_stage": "3", "offload": "params+optimizer"}),
        ("dp4 pp2 tp1", 8, {"dp": "4", "pp": "2", "tp": "1"}),
        ("ddp", 4, {"dp": "4"}),
        ("single", 1, {}),
        ("", 1, {}),
    ],
)
def test_divisions(words, cards, means):
    assert divided(words, cards) == means


def test_numbers_in_words():
    assert rank_of("LoRA r=16") == "16"
    assert rank_of("rank 64, alpha 16") == "64"
    assert rank_of("LoRA") == ""
    assert [length_of(t) for t in ("2,048", "2k", "4096 (packed)", "b4", "")] == ["2048", "2048", "4096", "", ""]


def test_optimizers():
    names = {
        "AdamW": "adamw", "adamw_torch": "adamw", "AdamW (fused)": "adamw-fused", "adamw_torch_fused": "adamw-fused",
        "adamw_hf": "adamw-loop", "AdamW 8-bit": "adamw-8bit", "PagedAdamW8bit": "paged-adamw-8bit",
        "paged_adamw_32bit": "paged-adamw", "bnb Lion8bit": "lion-8bit", "SGD": "sgd", "Adafactor": "adafactor",
        "none": "", "": "", "galore_adamw": "galore-adamw",
    }  # fmt: skip
    assert {name: optimizer_of(name) for name in names} == names


def test_kin_of_engines():
    assert kin_of("ms-swift") == "llama-factory"
    assert kin_of("TGI") == "vllm"
    assert kin_of("exllama v1") == "exllamav2"
    assert kin_of("something else") == ""


ROWS = [
    {"task": "LoRA r=16 all-linear", "framework": "ms-swift 3.1", "model": "qwen2.5-7b-instruct", "precision": "bf16",
     "batch_micro": "1", "seq_len": "2k", "parallelism": "single", "metric": "nvidia-smi"},
    {"task": "full fine-tuning", "framework": "LLaMA-Factory", "model": "Llama-2-7b-hf", "precision": "bf16",
     "batch_micro": "2", "seq_len": "2,048", "parallelism": "ZeRO-3 offload", "n_gpus": "4", "metric": "GPU memory"},
    {"task": "inference", "framework": "TGI 2.0", "model": "mistral-7b-instruct-v0.3", "quant": "AWQ 4-bit",
     "precision": "fp16", "batch_micro": "1", "seq_len": "4096", "parallelism": "TP=2", "n_gpus": "2"},
    {"task": "inference", "framework": "ollama", "model": "llama-3-8b", "quant": "Q4_K_M", "batch_micro": "1",
     "seq_len": "8192", "metric": "VRAM"},
    {"task": "QLoRA", "framework": "a trainer nobody knows", "model": "LLAMA-3.1-8B", "quant": "bnb-4bit",
     "precision": "bf16-mixed", "optimizer": "AdamW 8-bit", "batch_micro": "4", "seq_len": "512"},
    {"task": "pretraining", "framework": "nanotron", "model": "meta-llama/Meta-Llama-3-8B", "precision": "bf16",
     "optimizer": "AdamW (fused)", "batch_micro": "1", "seq_len": "8192", "parallelism": "fsdp x8", "n_gpus": "8"},
]  # fmt: skip


def test_rows_in_the_words_of_publishers_are_scored():
    rows = [Row({"id": str(n), "measured_gib": "20", **cells}) for n, cells in enumerate(ROWS)]
    found = memory.score(rows, score.book_with(None))
    assert found["skipped"] == {}
    assert found["scored"] == len(ROWS)


def test_kin_have_a_wider_range():
    known = {"task": "lora", "framework": "llama-factory", "model": "Llama-2-7b-hf", "precision": "bf16",
             "batch_micro": "1", "seq_len": "512", "measured_gib": "20", "id": "k"}  # fmt: skip
    book = score.book_with(None)
    mine = memory.scored(filled(Row(known)), book)
    kin = memory.scored(filled(Row({**known, "framework": "xtuner"})), book)
    assert kin.predicted.likely == pytest.approx(mine.predicted.likely)
    assert kin.width > mine.width
