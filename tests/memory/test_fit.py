import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.build import GIB, SINGLE, card, measure, serve, train, with_serving, with_training

from rackrate.facts import bundled
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit import RANKS, smallest_changes
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_settings import shortened
from rackrate.values import replace
from rackrate.workload.resolve import is_quantised
from rackrate.workload.workload import Checkpointing, Serving, Task

BOOK = bundled.load()
ALL = Candidates(formats=tuple(BOOK.formats.values()))
LLAMA_7B = "meta-llama/Llama-2-7b-hf"


def changes(workload, accelerator, engine, candidates=ALL):
    """The first change of each setting."""
    found = smallest_changes(workload, accelerator, SINGLE, BOOK.engine(engine), candidates)
    return {c.knob: c for c in reversed(found)}


def formats(workload, accelerator, engine):
    found = smallest_changes(workload, accelerator, SINGLE, BOOK.engine(engine), ALL)
    return [c.after for c in found if c.knob == "quantization"]


def test_what_fits_needs_no_change():
    assert changes(serve(BOOK, LLAMA_7B), card(40_960), "vllm") == {}


def test_what_is_unknown_has_no_change():
    assert changes(serve(BOOK, "google/flan-t5-base"), card(40_960), "vllm") == {}


def test_full_fine_tuning_of_7b_on_80_gb_is_saved_by_offload_16_bits_8_bit_moments_or_sharding():
    workload = train(BOOK, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=Checkpointing.FULL)
    found = changes(workload, card(81_920), "axolotl")
    assert set(found) == {"training.offload", "training.optimizer", "training.pure_16bit", "limits.gpu_counts"}
    assert found["training.offload"].after == "optimizer"
    assert (found["training.optimizer"].before, found["training.optimizer"].after) == ("adamw", "adamw-8bit")
    assert (found["limits.gpu_counts"].before, found["limits.gpu_counts"].after) == ("1", "2")
    assert found["training.pure_16bit"].peak.high <= 80 * GIB


def test_lora_that_is_too_wide_is_narrowed_checkpointed_or_quantised():
    workload = train(
        BOOK, "mistralai/Mistral-7B-v0.1", Task.LORA, tokens=1024, batch=8, lora_rank=8, lora_targets=("q", "v")
    )
    found = changes(workload, card(40_960), "peft-trl")
    assert int(found["training.micro_batch"].after) == 2  # 3 would divide no step of 8
    assert found["training.checkpointing"].after == "full"
    assert "training.sequence_tokens" in found
    assert "limits.gpu_counts" not in found  # each card would run the same micro-batch
    assert "training.pure_16bit" not in found


def test_no_quantised_format_is_proposed_for_lora():
    """A task of its own is what 8 bits are to adapters too: a plan refuses LoRA with them."""
    workload = train(BOOK, "meta-llama/Llama-2-13b-hf", Task.LORA, tokens=512, lora_rank=8)
    every = smallest_changes(workload, card(24_564, (8, 9)), SINGLE, BOOK.engine("peft-trl"), ALL)
    assert [c.after for c in every if c.knob == "task"] == ["qlora (nf4)"]
    assert all(not is_quantised(c.case.workload.weights) or c.case.workload.task is Task.QLORA for c in every)
    assert [c for c in every if c.knob == "quantization"] == []


def test_qlora_is_offered_in_place_of_lora():
    workload = train(
        BOOK, "meta-llama/Llama-2-13b-hf", Task.LORA, tokens=512, lora_rank=8, checkpointing=Checkpointing.FULL
    )
    found = smallest_changes(workload, card(24_564), SINGLE, BOOK.engine("peft-trl"), ALL)
    assert [c.after for c in found if c.knob == "task"] == ["qlora (int8)", "qlora (nf4)"]


def test_a_70b_that_does_not_load_is_quantised_or_spread():
    found = changes(serve(BOOK, "meta-llama/Meta-Llama-3.1-70B", "bf16", tokens=8192), card(81_559), "vllm")
    assert found["limits.gpu_counts"].after in {"2", "4"}
    assert "serving.concurrency" not in found
    assert "serving.context_tokens" not in found


def test_formats_go_from_eight_bits_down_and_keep_to_the_kind_the_engine_usually_loads():
    large = serve(BOOK, "meta-llama/Meta-Llama-3.1-70B", "bf16", tokens=8192)
    small = serve(BOOK, "meta-llama/Llama-2-13b-hf", "fp16")
    assert formats(large, card(81_559, (9, 0)), "vllm")[-1] in {"nf4", "nvfp4-weight-only"}
    assert [BOOK.formats[f].bits_per_weight > 6 for f in formats(small, card(24_564), "vllm")] == [True, False, False]
    assert formats(small, card(24_564), "llama.cpp") == ["gguf-q8_0", "gguf-q5_k_m", "gguf-q4_k_m"]


def test_formats_that_the_card_cannot_compute_are_not_offered():
    only = Candidates(formats=(BOOK.formats["fp8"],))
    workload = serve(BOOK, "meta-llama/Llama-2-13b-hf", "bf16")
    assert "quantization" not in changes(workload, card(24_564, (8, 6)), "vllm", only)
    assert changes(workload, card(24_564, (8, 9)), "vllm", only)["quantization"].after == "fp8"


def test_an_engine_that_cannot_queue_is_offered_fewer_requests():
    workload = serve(BOOK, LLAMA_7B, concurrency=64)
    found = changes(workload, card(40_960), "transformers")
    most = int(found["serving.concurrency"].after)
    fits = measure(with_serving(workload, concurrency=most), card(40_960), BOOK.engine("transformers"))
    fails = measure(with_serving(workload, concurrency=most + 1), card(40_960), BOOK.engine("transformers"))
    assert fits.verdict is Verdict.FITS
    assert fails.verdict is not Verdict.FITS
    assert found["serving.concurrency"].peak == fits.peak


@given(mib=st.integers(min_value=20_000, max_value=90_000), batch=st.integers(min_value=1, max_value=64))
def test_the_batch_found_is_the_largest_that_fits(mib, batch):
    engine = BOOK.engine("peft-trl")
    workload = train(BOOK, LLAMA_7B, Task.LORA, tokens=1024, batch=batch, lora_rank=8, lora_targets=("q", "v"))
    found = {c.knob: c for c in smallest_changes(workload, card(mib), SINGLE, engine)}
    if "training.micro_batch" not in found or found["training.micro_batch"].verdict is not Verdict.FITS:
        return
    best = int(found["training.micro_batch"].after)
    assert 1 <= best < batch
    assert measure(with_training(workload, micro_batch=best), card(mib), engine).verdict is Verdict.FITS
    following = next(n for n in range(best + 1, batch + 1) if batch % n == 0)  # others divide no step
    assert batch % best == 0
    assert measure(with_training(workload, micro_batch=following), card(mib), engine).verdict is not Verdict.FITS


@given(mib=st.integers(min_value=8_000, max_value=90_000), tokens=st.integers(min_value=512, max_value=200_000))
def test_every_change_leads_to_what_it_claims(mib, tokens):
    workload = serve(BOOK, "meta-llama/Meta-Llama-3-8B", "bf16", tokens=tokens)
    now = measure(workload, card(mib), BOOK.engine("vllm"))
    found = smallest_changes(workload, card(mib), SINGLE, BOOK.engine("vllm"), ALL)
    ranks = [RANKS.index(c.knob) for c in found]
    assert ranks == sorted(ranks)
    assert all(c.before != c.after for c in found)
    verdicts = {c.verdict for c in found}
    assert Verdict.DOES_NOT_FIT not in verdicts
    assert now.verdict is not Verdict.FITS or not found
    assert Verdict.TIGHT not in verdicts or now.verdict is Verdict.DOES_NOT_FIT
    for change in found:
        if change.knob == "serving.context_tokens":
            again = with_serving(workload, **fields(shortened(workload.serving, int(change.after))))
            assert measure(again, card(mib), BOOK.engine("vllm")).verdict is change.verdict


def fields(serving):
    return {name: getattr(serving, name) for name in ("context_tokens", "prompt_tokens", "output_tokens")}


@pytest.mark.parametrize(
    ("context", "prompt", "output"),
    [(1000, 500, 500), (600, 300, 300), (2, 1, 1), (1, 0, 1), (4096, 3584, 512)],
)
def test_a_shorter_context_takes_from_the_prompt_first(context, prompt, output):
    full = Serving(online=True, prompt_tokens=8000, output_tokens=512, context_tokens=8512, concurrency=1)
    short = shortened(full, context)
    assert (short.context_tokens, short.prompt_tokens, short.output_tokens) == (context, prompt, output)


def test_a_wider_layout_keeps_to_what_the_engine_can_divide():
    workload = serve(BOOK, "meta-llama/Meta-Llama-3.1-70B", "bf16")
    engine = replace(BOOK.engine("vllm"), parallel=frozenset({"data"}))
    assert "limits.gpu_counts" not in {c.knob for c in smallest_changes(workload, card(81_559), SINGLE, engine)}
    split = smallest_changes(
        serve(BOOK, "meta-llama/Meta-Llama-3.1-70B", "gguf-q4_k_m"), card(24_564), SINGLE, BOOK.engine("llama.cpp")
    )
    assert {c.knob: c.after for c in split}["limits.gpu_counts"] == "2"
