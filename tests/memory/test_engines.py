"""What single engines do: each mechanism moves the part that it is about."""

import pytest
from tests.memory.build import GIB, card, likely, measure, serve, train, with_training

from rackrate.app.asking import read_workload
from rackrate.facts import bundled
from rackrate.facts.accelerator import Precision
from rackrate.memory.inference_activations import eager_prefill_bytes_per_token, planned_graph_bytes
from rackrate.memory.kv_cache import grouped_layers
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

LLAMA_8B = "meta-llama/Meta-Llama-3.1-8B"
BOOK = bundled.load()
BIG = card(1_000_000, (8, 0))


def part(found, *names):
    return sum(p.bytes.likely for p in found.components if p.name in names)


@pytest.mark.parametrize(
    ("engine", "tokens", "card_gib"),
    [
        # unslothai/unsloth docs: the longest sequences of Llama-3.1-8B, QLoRA of rank 32, that ran on each card.
        ("unsloth", 21_848, 12),
        ("unsloth", 78_475, 24),
        ("unsloth", 342_733, 80),
        ("peft-trl", 932, 12),
        ("peft-trl", 5_789, 24),
        ("peft-trl", 28_454, 80),
    ],
)
def test_the_longest_sequences_that_ran_nearly_fill_the_card(book, engine, tokens, card_gib):
    asked = train(
        book, LLAMA_8B, Task.QLORA, tokens=tokens, form="nf4", lora_rank=32, lora_targets=("all",), optimizer="adamw-8bit",
        checkpointing=Checkpointing.FULL,
    )  # fmt: skip
    found = measure(asked, card(card_gib * 1024), book.engine(engine))
    assert 0.85 * found.usable_bytes <= found.peak.likely <= 1.0 * found.usable_bytes


def test_bitsandbytes_kept_inputs_and_litgpt_kept_the_batch_before(book):
    asked = train(
        book,
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
        Task.QLORA,
        batch=8,
        tokens=512,
        form="nf4",
        lora_rank=32,
        lora_targets=("all",),
    )
    found = measure(asked, BIG, book.engine("litgpt"))
    plain = measure(with_training(asked, packed=False), BIG, book.engine("litgpt"))
    assert likely(found, "previous_inputs") > 0
    assert likely(plain, "previous_inputs") == 0
    assert next(p.bytes.high for p in plain.components if p.name == "previous_inputs") > 0


def test_qlora_takes_more_than_lora_where_inputs_stay(book):
    # Lightning-AI/litgpt#1112: TinyLlama, micro-batch 8, adapters everywhere: 16.24 GB against 13.50.
    sizes = {"batch": 8, "tokens": 512, "lora_rank": 32, "lora_targets": ("all",)}
    model = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"
    wide = measure(train(book, model, Task.LORA, **sizes), BIG, book.engine("litgpt"))
    narrow = measure(train(book, model, Task.QLORA, form="nf4", **sizes), BIG, book.engine("litgpt"))
    assert narrow.allocated.likely > wide.allocated.likely


def test_a_prompt_holds_three_intermediate_and_four_hidden_vectors(book):
    model = book.model("Qwen/Qwen2.5-0.5B-Instruct")
    assert eager_prefill_bytes_per_token(model, 2) == 2 * (3 * 4864 + 4 * 896 + 2 * 64) + 24


def test_versions_of_transformers(book):
    asked = serve(book, "Qwen/Qwen2.5-0.5B-Instruct", "bf16", tokens=16_384, output=2048, precision=Precision.BF16)
    now, then, between = (
        measure(asked, BIG, book.engine(name))
        for name in ("transformers", "transformers==4.38.2", "transformers==4.51.3")
    )
    assert part(then, "rotary_tables") == 24 * 4 * 32_768 * 64
    assert part(now, "rotary_tables") == 0
    assert part(then, "cache_copy") > 10 * part(now, "cache_copy")
    assert part(between, "activations") == 0
    assert part(now, "activations") > 0


def test_a_version_without_numbers_is_refused(book):
    from rackrate.app.asking import read_workload
    from rackrate.problems import Refused

    with pytest.raises(Refused):
        read_workload({"model": LLAMA_8B, "task": "inference", "engine": "vllm==newest"}, {}, book)


def test_offloading_and_steps_in_the_backward_pass(book):
    asked = train(book, LLAMA_8B, Task.FULL_FINETUNE, tokens=2048, pure_16bit=True, checkpointing=Checkpointing.FULL)
    engine = book.engine("torchtune")
    plain = measure(asked, BIG, engine)
    inside = measure(with_training(asked, step_in_backward=True), BIG, engine)
    assert part(inside, "gradients") < 0.1 * part(plain, "gradients")
    for what, gone in (("optimizer", "optimizer_states"), ("parameters", "weights"), ("activations", "checkpoints")):
        less = measure(with_training(asked, offload=what), BIG, engine)
        assert part(less, gone) < 0.5 * part(plain, gone)
        assert less.peak.likely <= plain.peak.likely


def test_compiled_layers_and_losses_keep_less(book):
    asked = train(
        book, "meta-llama/Llama-3.2-3B", Task.FULL_FINETUNE, batch=2, tokens=4096, pure_16bit=True, loss="full"
    )
    plain, made = (measure(with_training(asked, compiled=c), BIG, book.engine("torchtune")) for c in (False, True))
    assert 8 < (plain.allocated.likely - made.allocated.likely) / GIB < 11  # torchtune README: 9.0


@pytest.mark.parametrize(
    ("finer", "names"),
    [
        ({"tensor": 4, "sequence": True}, ("activations",)),
        ({"tensor": 4, "context": 2}, ("activations", "logits")),
    ],
)
def test_finer_divisions_hold_less(book, finer, names):
    asked = train(book, LLAMA_8B, Task.PRETRAIN, tokens=8192)
    coarse, fine = (measure(asked, BIG, book.engine("fsdp"), Layout(**layout)) for layout in ({"tensor": 4}, finer))
    for name in names:
        assert part(fine, name) < 0.8 * part(coarse, name)


def test_experts_are_shared_by_the_cards_of_their_group(book):
    asked = train(book, "mistralai/Mixtral-8x7B-v0.1", Task.FULL_FINETUNE, global_batch=8, pure_16bit=True)
    whole, shared = (measure(asked, BIG, book.engine("fsdp"), Layout(data=8, expert=e)) for e in (1, 8))
    attention_and_ends = 46.7e9 - 45.1e9
    assert part(shared, "weights") / 2 == pytest.approx(attention_and_ends + 45.1e9 / 8, rel=0.02)
    assert part(whole, "weights") / 2 == pytest.approx(46.7e9, rel=0.01)


def test_interleaved_stages_hold_more_micro_batches(book):
    asked = with_training(train(book, LLAMA_8B, Task.PRETRAIN), global_batch=64)
    plain, chunks = (measure(asked, BIG, book.engine("fsdp"), Layout(pipeline=4, chunks=c)) for c in (1, 2))
    assert part(chunks, "activations") / part(plain, "activations") == pytest.approx(1 + 3 / 8)


def test_megatron_holds_18_bytes_a_parameter_or_6_and_12_shared(book):
    asked = with_training(train(book, LLAMA_8B, Task.PRETRAIN), global_batch=64)
    names = ("weights", "gradients", "optimizer_states", "master_weights", "gradient_buckets")
    n = book.model(LLAMA_8B).params_total
    for zero, expected in ((0, 18), (1, 6 + 12 / 8)):
        found = measure(asked, BIG, book.engine("megatron"), Layout(data=8, zero_stage=zero))
        assert part(found, *names) / n == pytest.approx(expected, rel=0.001)


def test_fused_layers_keep_less(book):
    asked = train(book, LLAMA_8B, Task.PRETRAIN, tokens=4096)
    plain, fused = (measure(asked, BIG, book.engine(name)) for name in ("fsdp", "megatron"))
    h, f = 4096, 14_336 / 4096
    saved = part(plain, "activations") - part(fused, "activations")
    assert saved / (32 * 4096) == pytest.approx(h * (2 * 4 + 2 * f), rel=0.01)


def test_dora_trains_magnitudes_and_keeps_outputs(book):
    asked = train(book, LLAMA_8B, Task.LORA, lora_rank=8, lora_targets=("q", "v"))
    plain, dora = (measure(with_training(asked, dora=d), BIG, book.engine("peft-trl")) for d in (False, True))
    magnitudes = 32 * (4096 + 1024)
    assert part(dora, "adapters") - part(plain, "adapters") == 4 * magnitudes
    assert part(dora, "activations") - part(plain, "activations") == 2 * 4 * magnitudes * 2048
    assert part(dora, "weight_norms") == 3 * 4 * 4096 * 14_336


@pytest.mark.parametrize(
    ("model_id", "context", "scores", "mib"),
    [
        # Printed by llama.cpp at start ("CUDA0 compute buffer size"), physical batch 512.
        ("meta-llama/Llama-2-7b-hf", 4096, True, 296.0),
        ("meta-llama/Llama-2-7b-hf", 512, True, 70.5),
        ("meta-llama/Meta-Llama-3-8B", 8192, True, 560.0),
        ("meta-llama/Meta-Llama-3-8B", 8192, False, 258.5),
        ("mistralai/Codestral-22B-v0.1", 49_152, False, 192.0),
    ],
)
def test_the_compute_buffer_of_ggml(book, model_id, context, scores, mib):
    assert planned_graph_bytes(book.model(model_id), 512, context, scores=scores) / 2**20 == pytest.approx(
        mib, rel=0.001
    )


def started(model, *, version="0.19", gpu="h100-sxm5-80", tensor=1):
    """The estimate for an engine at its start on a card."""
    told = {"model": model, "task": "inference", "engine": f"vllm=={version}", "serving": {"context_tokens": 8192}}
    workload = read_workload(told, {}, BOOK).workload
    return measure(workload, BOOK.accelerators[gpu], BOOK.engine(workload.engine_id), Layout(tensor=tensor))


def test_vllm_tries_1024_sequences_on_large_cards_but_the_a100():
    large, small = started("Qwen/Qwen3-8B"), started("Qwen/Qwen3-8B", gpu="a100-sxm4-80")
    assert likely(large, "sampler") == pytest.approx(4 * likely(small, "sampler"))


def test_vllm_sorted_logits_until_0_17():
    # llm-d-incubation/llm-d-planner accuracy, logs on an H100: 5.64 GiB of activations of Qwen3-14B in 0.16, 2.23 in 0.17.
    before, after = (likely(started("Qwen/Qwen3-14B", version=v), "sampler") / GIB for v in ("0.16", "0.17"))
    assert before == pytest.approx(5.64, rel=0.08)
    assert after == pytest.approx(2.23, rel=0.08)


def test_vllm_keeps_one_rotary_table_whatever_the_tensor_parallelism():
    one, four = (likely(started(LLAMA_8B, tensor=t), "rotary_tables") for t in (1, 4))
    assert one == four == 2 * BOOK.model(LLAMA_8B).max_context * 128


def test_tensor_parallelism_brings_buffers_outside_the_allocator():
    one, two = (likely(started(LLAMA_8B, tensor=t), "tensor_buffers") for t in (1, 2))
    assert one == 0
    assert 1.7 < two / GIB < 2.0


@pytest.mark.parametrize(
    ("full", "windowed", "paid"), [(10, 52, 70), (5, 29, 35), (8, 40, 48), (13, 13, 26), (12, 0, 12)]
)
def test_layers_of_two_kinds_are_padded_to_groups(full, windowed, paid):
    # llm-d-incubation/llm-d-planner accuracy, logs on an H100: 573,440 and 143,360 bytes a token of gemma-3-27b and gemma-3-4b.
    assert sum(grouped_layers(full, windowed, groups=True)) == paid
    assert grouped_layers(full, windowed, groups=False) == (full, windowed)


def test_graphs_were_captured_on_top_of_the_share_until_0_22():
    before, after = started(LLAMA_8B, version="0.21"), started(LLAMA_8B, version="0.22")
    share = (0.92 - 0.90) * (after.usable_bytes - likely(after, "cuda_context")) / 0.92
    room = after.cache.room_bytes.likely - before.cache.room_bytes.likely
    assert room == pytest.approx(share - likely(after, "graphs"))
