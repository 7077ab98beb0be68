"""Whose loop trains, what is widened, and how a pipeline of FSDP works: each mechanism moves the part that it is about."""

import pytest
from tests.memory.build import card, measure, serve, train

from rackrate.facts import bundled
from rackrate.workload.layout import Layout
from rackrate.workload.workload import Checkpointing, Task

BOOK = bundled.load()
BIG = card(1_000_000, (8, 0))
LLAMA, MIXTRAL, QWEN = "meta-llama/Meta-Llama-3-8B", "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen2.5-1.5B-Instruct"
TOKENS, VOCABULARY = 2048, 128_256
ENTRIES = TOKENS * VOCABULARY


def trained(engine, model=LLAMA, task=Task.LORA, layout=None, **settings):
    said = {
        "tokens": TOKENS,
        "checkpointing": Checkpointing.FULL,
        "lora_rank": 16,
        "lora_targets": ("q", "v"),
    } | settings
    asked = train(BOOK, model, task, **said)
    return measure(asked, BIG, BOOK.engine(engine), layout=layout or Layout())


def part(found, name):
    return sum(p.bytes.likely for p in found.components if p.name == name)


def loss(found):
    return part(found, "logits") + part(found, "loss_gradient")


@pytest.mark.parametrize(
    ("engine", "bytes_each"),
    [
        ("peft-trl", 12), ("peft-trl==4.48.1", 14), ("peft-trl==4.45.2", 12), ("llama-factory==4.49", 14),
        ("own-loop", 14), ("own-loop==4.48", 14), ("own-loop==4.39", 16),
    ],
)  # fmt: skip
def test_logits_at_the_peak_of_the_loss(engine, bytes_each):
    """transformers 4.46 to 4.49 made one copy more; a loop of one's own holds the output with its logits."""
    assert loss(trained(engine)) == pytest.approx(bytes_each * ENTRIES)


def test_a_trainer_may_hold_logits_on_the_high_side_alone():
    gradient = next(p for p in trained("peft-trl").components if p.name == "loss_gradient")
    assert gradient.bytes.high - gradient.bytes.likely == pytest.approx(2 * ENTRIES)


def test_what_is_widened_beside_a_quantised_base():
    """PEFT's preparation widens nothing beside GPTQ, TRL not where FSDP divides the base, LLaMA-Factory never."""
    two = Layout(data=2, zero_stage=3)
    asked = {"task": Task.QLORA, "form": "nf4"}
    assert part(trained("peft-trl", **asked), "upcast_weights") > 0
    assert part(trained("peft-trl", **asked | {"form": "gptq-int4"}), "upcast_weights") == 0
    assert part(trained("peft-trl", **asked, layout=two), "upcast_weights") == 0
    assert part(trained("llama-factory", **asked), "upcast_weights") == 0


def test_wide_attention_with_grouped_heads_stores_scores():
    settings = {"task": Task.QLORA, "form": "nf4", "model": QWEN, "checkpointing": Checkpointing.NONE}
    new, old = trained("own-loop", **settings), trained("own-loop==4.49", **settings)
    scores = 28 * TOKENS * 12 * TOKENS * 4  # layers x tokens x heads x tokens x FP32
    assert part(new, "activations") - part(old, "activations") == pytest.approx(scores, rel=0.02)


def test_experts_run_one_after_another():
    found = trained("peft-trl", model=MIXTRAL)
    hidden, width, experts, chosen = 4096, 14336, 8, 2
    kept = trained("peft-trl", model=MIXTRAL, checkpointing=Checkpointing.NONE)
    running = part(found, "backward_layer") - part(kept, "activations") / 32
    assert running == pytest.approx(TOKENS * 2 * (2 * width * chosen / experts + hidden), rel=0.2)


def test_a_pipeline_of_fsdp_keeps_its_stage_gathered():
    layout = Layout(data=4, pipeline=4, zero_stage=3)
    whole = trained("fsdp", task=Task.PRETRAIN, layout=layout, batch=1, global_batch=16)
    once = trained("fsdp", task=Task.PRETRAIN, layout=layout, batch=1, global_batch=4)
    stage = part(whole, "gathered_layers")
    assert stage > 2 * part(once, "gathered_layers")
    assert part(whole, "gradient_buckets") == pytest.approx(2 * stage)  # FP32 beside 16 bits


def test_divided_adapters_are_in_doubt_on_the_high_side():
    kept = next(
        p for p in trained("peft-trl", layout=Layout(data=2, zero_stage=3)).components if p.name == "checkpoints"
    )
    assert kept.bytes.high == pytest.approx(2 * kept.bytes.likely)


def test_llama_cpp_leaves_the_embedding_with_the_host():
    """ggml-org/ci, build 4823: 5,049.71 MiB of Pythia 2.8B on the card, 245.62 MiB on the host."""
    found = measure(serve(BOOK, "EleutherAI/pythia-2.8b", "fp16"), BIG, BOOK.engine("llama.cpp"))
    assert part(found, "weights") / 2**20 == pytest.approx(5049.71, rel=0.001)


def test_gpt_fast_keeps_a_square_mask():
    found = measure(serve(BOOK, LLAMA, "bf16", tokens=8192), BIG, BOOK.engine("gpt-fast"))
    assert part(found, "mask") == 8192**2
    assert part(found, "expanded_cache") == 2 * 4096 * 2 * 8192
