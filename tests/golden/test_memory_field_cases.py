"""Questions that people asked about memory, with the right answers (``memory-field-cases.csv``: one test a row)."""

import csv
from pathlib import Path

import pytest

from rackrate.app.asking import read_workload
from rackrate.app.context import facts
from rackrate.evidence import known
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.kv_cache import layer_bytes_per_token
from rackrate.memory.logits import Loss, loss_bytes
from rackrate.values import replace
from rackrate.workload.layout import Layout

GIB, GB = 2**30, 10**9
A100_40, A100_80, H100 = "a100-sxm4-40", "a100-sxm4-80", "h100-sxm5-80"


def found(card, layout=None, **keys):
    """The estimate that a user gets for a table of keys on one card of a layout."""
    book = facts()
    workload = read_workload(keys, {}, book).workload
    return known(estimate(workload, book.accelerators[card], layout or Layout(), book.engine(workload.engine_id)))


def serve(card, model, engine, form, layout=None, **serving):
    keys = {"model": model, "task": "inference", "engine": engine, "quantization": form, "serving": serving}
    return found(card, layout, **keys)


def train(card, model, task, engine, layout=None, **training):
    return found(card, layout, model=model, task=task, engine=engine, training=training)


def part(answer, *names):
    return sum(p.bytes.likely for p in answer.components if p.name in names)


def test_every_row_has_its_test():
    with (Path(__file__).parent / "memory-field-cases.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert {row["id"] for row in rows} == {name[5:8].upper() for name in globals() if name.startswith("test_a")}
    assert all(row["source"] for row in rows)


def test_a01_grouped_heads_explain_a_cache_eight_times_smaller():
    multi = serve(A100_80, "Qwen/Qwen-72B", "llama.cpp", "gguf-q6_k", context_tokens=8192, concurrency=1)
    grouped = serve(A100_80, "meta-llama/Llama-2-70b-hf", "llama.cpp", "gguf-q6_k", context_tokens=8192, concurrency=1)
    assert multi.cache.bytes_per_token * 8192 / GIB == pytest.approx(20.0, rel=0.02)
    assert grouped.cache.bytes_per_token * 8192 / GIB == pytest.approx(2.5, rel=0.02)


def test_a02_a_405b_in_fp8_on_eight_80_gb_cards_has_no_room_for_its_whole_context():
    sizes = {"context_tokens": 131_072, "prompt_tokens": 130_000, "output_tokens": 1000, "concurrency": 1}
    answer = serve(H100, "meta-llama/Llama-3.1-405B", "vllm==0.5.3", "fp8", Layout(tensor=8), **sizes)
    assert answer.verdict is not Verdict.FITS
    assert answer.cache.bytes_per_token == 63 * 1024
    assert answer.cache.tokens.low <= 79_392 <= answer.cache.tokens.high


def test_a03_a_120b_mixture_in_mxfp4_leaves_little_of_one_80_gb_card():
    answer = serve(H100, "openai/gpt-oss-120b", "vllm", "mxfp4", context_tokens=131_072, concurrency=1)
    weights = part(answer, "weights") / GIB
    assert weights == pytest.approx(64.38, rel=0.02)  # expert shapes that the engine pads are counted
    assert part(answer, "weights") + part(answer, "activations", "graphs", "sampler") > 0.75 * 79.6 * GIB


def test_a04_a_70b_in_4_bits_does_not_go_on_40_gb():
    small = {"context_tokens": 2048, "concurrency": 1}
    answer = serve(A100_40, "meta-llama/Llama-3.1-70B", "llama.cpp", "gguf-q4_k_m", **small)
    on_host = 128_256 * 8192 * 4.5 / 8  # the input embedding, in Q4_K
    assert (part(answer, "weights") + on_host) / GB == pytest.approx(42.52, rel=0.001)
    assert answer.verdict is Verdict.DOES_NOT_FIT
    on_48 = serve("a6000", "meta-llama/Llama-3.1-70B", "llama.cpp", "gguf-q4_k_m", **small)
    assert on_48.verdict is Verdict.FITS


def test_a05_the_latent_cache_of_32768_tokens_is_2196_mib():
    answer = serve(H100, "deepseek-ai/DeepSeek-V3", "llama.cpp", "gguf-q4_k_m", context_tokens=32_768, concurrency=1)
    assert answer.cache.bytes_per_token == 70_272
    assert answer.cache.bytes_per_token * 32_768 / 2**20 == pytest.approx(2196, rel=0.01)


def test_a06_671b_in_fp8_needs_eight_cards_of_96_gb():
    model, sizes = "deepseek-ai/DeepSeek-V3", {"context_tokens": 16_384, "concurrency": 8}
    on_80 = serve(H100, model, "vllm", "fp8", Layout(tensor=8), **sizes)
    on_96 = serve("h20-96", model, "vllm", "fp8", Layout(tensor=8), **sizes)
    assert part(on_96, "weights") / GIB == pytest.approx(79.41, rel=0.03)
    assert on_80.verdict is Verdict.DOES_NOT_FIT
    assert on_96.verdict is Verdict.FITS


def test_a07_a_72b_in_16_bits_has_no_cache_on_four_40_gb_cards():
    answer = serve(
        A100_40, "Qwen/Qwen-72B", "vllm==0.2.6", "bf16", Layout(tensor=4), context_tokens=8192, concurrency=1
    )
    assert part(answer, "weights") / GIB == pytest.approx(33.8, rel=0.05)
    assert answer.verdict is Verdict.DOES_NOT_FIT
    assert answer.cache.room_bytes.likely < 1 * GIB


def test_a08_128k_tokens_of_a_24b_do_not_fit_two_24_gb_cards():
    model, split = "mistralai/Mistral-Small-24B-Instruct-2501", Layout(pipeline=2, layer_split=True)
    each = known(layer_bytes_per_token(facts().model(model), 16, 1, 1))
    assert 40 * each * 131_072 / GIB == pytest.approx(20.0, rel=0.01)
    book = facts()
    keys = {"model": model, "task": "inference", "quantization": "gguf-q4_k_m", "engine": "llama.cpp==b5000"}
    short = read_workload({**keys, "serving": {"context_tokens": 32_768, "concurrency": 1}}, {}, book).workload
    asked = replace(short, serving=replace(short.serving, context_tokens=131_072))
    engine, card = book.engine(short.engine_id), book.accelerators["rtx4090"]
    assert known(estimate(short, card, split, engine)).verdict is Verdict.FITS
    answer = known(estimate(asked, card, split, engine))
    assert answer.verdict is Verdict.DOES_NOT_FIT
    assert part(answer, "activations") > 8 * GIB  # scores, on each card: they do not split


def test_a09_lora_on_a_7b_fits_40_gb_at_micro_batch_2_and_not_at_4():
    sizes = {"sequence_tokens": 1304, "lora_rank": 8, "lora_targets": ["q", "v"], "checkpointing": "none"}
    four = train(A100_40, "mistralai/Mistral-7B-v0.1", "lora", "litgpt", micro_batch=4, **sizes)
    two = train(A100_40, "mistralai/Mistral-7B-v0.1", "lora", "litgpt", micro_batch=2, **sizes)
    assert four.verdict is Verdict.DOES_NOT_FIT
    assert two.verdict is Verdict.FITS


def test_a10_at_4096_tokens_activations_outweigh_what_4_bits_save():
    sizes = {"sequence_tokens": 4096, "micro_batch": 1, "global_batch": 1, "checkpointing": "none"}
    model = "mistralai/Ministral-8B-Instruct-2410"
    wide = train(H100, model, "lora", "peft-trl", **sizes)
    narrow = train(H100, model, "qlora", "axolotl", **sizes)  # widens nothing beside the base
    widened = train(H100, model, "qlora", "peft-trl", **sizes)
    assert wide.peak.likely / 2**20 == pytest.approx(72_840, rel=0.10)
    assert (wide.allocated.likely - narrow.allocated.likely) / 2**20 == pytest.approx(72_840 - 63_082, rel=0.10)
    assert part(narrow, "activations") > 5 * part(narrow, "weights")
    assert widened.allocated.likely > narrow.allocated.likely + 4 * GIB


def test_a11_an_8b_in_full_does_not_fit_one_80_gb_card_at_128_tokens():
    sizes = {"sequence_tokens": 128, "micro_batch": 1, "global_batch": 1, "checkpointing": "full"}
    answer = train(A100_80, "meta-llama/Meta-Llama-3-8B", "full_finetune", "deepspeed", Layout(zero_stage=2), **sizes)
    states = part(answer, "weights", "gradients", "optimizer_states", "master_weights")
    assert states / GB == pytest.approx(128, rel=0.05)
    assert answer.verdict is Verdict.DOES_NOT_FIT
    on_host = {**sizes, "offload": "optimizer"}
    freed = train(A100_80, "meta-llama/Meta-Llama-3-8B", "full_finetune", "deepspeed", Layout(zero_stage=2), **on_host)
    assert freed.verdict is Verdict.FITS


def test_a12_a_13b_in_full_fits_eight_80_gb_cards_and_not_two():
    sizes = {"sequence_tokens": 2048, "micro_batch": 4, "checkpointing": "full"}
    model = "meta-llama/Llama-2-13b-hf"
    eight, two = (
        train(A100_80, model, "full_finetune", "fsdp==0.0.1", Layout(data=n, zero_stage=3), global_batch=4 * n, **sizes)
        for n in (8, 2)  # of 2023: the allocator's segments could not grow
    )
    assert eight.verdict is Verdict.FITS
    assert eight.reserved.likely / GB == pytest.approx(48, rel=0.20)
    assert two.verdict is Verdict.DOES_NOT_FIT
    assert part(two, "optimizer_states", "master_weights") * 2 / GB == pytest.approx(156, rel=0.05)


def test_a13_a_32b_in_full_does_not_fit_seven_80_gb_cards():
    sizes = {"sequence_tokens": 1024, "micro_batch": 1, "global_batch": 7, "checkpointing": "full"}
    layout = Layout(data=7, zero_stage=3)
    answer = train(A100_80, "Qwen/Qwen2.5-32B-Instruct", "full_finetune", "deepspeed", layout, **sizes)
    states = part(answer, "weights", "gradients", "optimizer_states", "master_weights")
    assert states / GB == pytest.approx(75, rel=0.05)
    assert answer.verdict is Verdict.DOES_NOT_FIT


def test_a14_plain_data_parallelism_keeps_a_whole_mixture_on_every_card():
    sizes = {"sequence_tokens": 512, "micro_batch": 2, "global_batch": 16, "checkpointing": "full"}
    model = "mistralai/Mixtral-8x7B-v0.1"
    plain = train(A100_80, model, "lora", "peft-trl", Layout(data=8), **sizes)
    assert part(plain, "weights") / GB == pytest.approx(93.4, rel=0.02)
    assert plain.verdict is Verdict.DOES_NOT_FIT
    sharded = train(A100_80, model, "lora", "peft-trl", Layout(data=8, zero_stage=3), **sizes)
    assert sharded.verdict is Verdict.FITS


def test_a15_full_logits_of_4096_tokens_and_151936_words_take_five_to_seven_gib():
    kept, peak = loss_bytes(Loss(kind="full", chunked_bytes=2.25), 4096, 151_936, 2048)
    assert kept / GIB == pytest.approx(2.32, abs=0.01)
    assert 5 <= peak / GIB <= 7
    fused = loss_bytes(Loss(kind="fused", chunked_bytes=2.25), 4096, 151_936, 2048)[1]
    assert fused < 0.05 * peak
